"""Prints measured rows in the formats of llama-bench: a Markdown table, CSV, JSON and JSON lines.

Fields have llama-bench's names where it has them. The Markdown table shows the median; CSV and JSON have the mean too.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from qwendesk.bench.records import BenchRecord
from qwendesk.bench.table import BenchRow
from qwendesk.core.benchmarks import Divergence, TextScore
from qwendesk.core.units import GIB, MIB

OutputFormat = Literal["md", "row", "csv", "json", "jsonl"]
# llama-bench's short names of columns; the others have the names of the options.
_COLUMN_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "n_gpu_layers": "ngl", "n_cpu_moe": "ncmoe", "n_threads": "threads", "flash_attn": "fa", "split_mode": "sm",
        "tensor_split": "ts", "devices": "dev", "override_tensor": "ot",
    }
)  # fmt: skip
_WIDTHS: Mapping[str, int] = MappingProxyType(
    {
        "model": 30,
        "size": 10,
        "params": 10,
        "backend": 10,
        "ngl": 3,
        "threads": 7,
        "test": 20,
        "drafts": 6,
        "t/s": 20,
        "chunks": 10,
        "PPL": 20,
        "PPL base": 10,
        "KLD": 21,
        "KLD 99%": 9,
        "KLD max": 9,
    }
)
_LEFT = frozenset({"model", "backend", "drafts"})


class Output:
    """Prints the rows of one or more runs as they are measured; a JSON list at the end."""

    def __init__(self, kind: OutputFormat, write: Callable[[str], None]) -> None:
        self._kind, self._write = kind, write
        self._rows: list[Mapping[str, Any]] = []

    def add(self, cells: Mapping[str, str], fields: Mapping[str, Any]) -> None:
        """Print a row: its cells in a table, or all its fields."""
        is_first = not self._rows
        self._rows.append(fields)
        match self._kind:
            case "md":
                if is_first:
                    self._write(_markdown_line({name: name for name in cells}))
                    self._write("".join(f"| {_rule(name)} " for name in cells) + "|\n")
                self._write(_markdown_line(cells))
            case "csv":
                single = {name: value for name, value in fields.items() if not isinstance(value, list)}
                if is_first:
                    self._write(_csv_line(list(single)))
                self._write(_csv_line(["" if value is None else str(value) for value in single.values()]))
            case "jsonl":
                self._write(json.dumps(fields, ensure_ascii=False) + "\n")

    def end(self) -> None:
        if self._kind == "json":
            self._write(json.dumps(self._rows, ensure_ascii=False, indent=2) + "\n")


def speed_cells(record: BenchRecord, row: BenchRow, swept: Sequence[str]) -> dict[str, str]:
    """Return the cells of a speed: the median and the standard deviation. `swept` are options with several values."""
    return {
        **_model_cells(record, swept),
        "drafts": row.drafts + (f" {100 * row.acceptance:.0f}%" if row.acceptance is not None else ""),
        "test": row.name,
        "t/s": f"{row.median:.2f} ± {row.spread:.2f}" + ("" if row.unit == "tok/s" else f" {row.unit}"),
    }


def score_cells(record: BenchRecord, score: TextScore, n_ctx: int, swept: Sequence[str] = ()) -> dict[str, str]:
    """Return the cells of a scored text."""
    cells = {
        **_model_cells(record, ("type_k", "type_v", *swept)),
        "chunks": f"{score.n_chunks} x {n_ctx}",
        "PPL": f"{score.perplexity:.4f} ± {score.error:.4f}",
    }
    found = score.divergence
    if found is None:
        return cells
    return cells | {
        "PPL base": f"{found.base_perplexity:.4f}",
        "KLD": f"{found.mean:.6f} ± {found.error:.6f}",
        "KLD 99%": f"{found.p99:.6f}",
        "KLD max": f"{found.maximum:.6f}",
        "same top": f"{100 * found.same_top:.2f}%",
    }


def score_fields(record: BenchRecord, score: TextScore, n_ctx: int) -> dict[str, Any]:
    """Return what is known of a scored text."""
    return {
        **_model_fields(record), "chunk_n_ctx": n_ctx, "n_chunks": score.n_chunks, "n_tokens": score.n_tokens,
        "ppl": score.perplexity, "ppl_error": score.error,
        **{f"kld_{name}": getattr(score.divergence, name, None) for name in Divergence.__struct_fields__},
    }  # fmt: skip


def speed_fields(record: BenchRecord, row: BenchRow) -> dict[str, Any]:
    """Return what is known of a row, by llama-bench's names as far as it has them."""
    is_speed = row.unit == "tok/s"
    return {
        **_model_fields(record),
        "test": row.name,
        "n_prompt": row.n_prompt,
        "n_gen": row.n_gen,
        "n_depth": row.depth,
        "drafts": row.drafts,
        "drafted": row.drafted,
        "accepted": row.accepted,
        "unit": row.unit,
        "median": round(row.median, 6),
        "stddev": round(row.spread, 6),
        "avg_ts": round(row.mean, 6) if is_speed else None,
        "stddev_ts": round(row.spread, 6) if is_speed else None,
        "samples": [round(value, 6) for value in row.values],
    }


def _model_fields(record: BenchRecord) -> dict[str, Any]:
    options = record.options
    return {
        "engine": f"llama-cpp-python {record.engine}",
        "pc": record.pc,
        "backends": record.backend,
        "model_filename": record.file,
        "model_type": record.architecture,
        "model_size": record.size_bytes,
        "model_n_params": record.n_params,
        "n_ctx": options.n_ctx,
        "n_batch": options.n_batch,
        "n_ubatch": options.n_ubatch,
        "n_threads": options.n_threads,
        "type_k": options.type_k,
        "type_v": options.type_v,
        "n_gpu_layers": options.n_gpu_layers,
        "n_cpu_moe": options.n_cpu_moe,
        "split_mode": options.split_mode,
        "main_gpu": options.main_gpu,
        "no_kv_offload": not options.offload_kqv,
        "flash_attn": options.flash_attn,
        "devices": "/".join(options.devices),
        "tensor_split": "/".join(f"{share:g}" for share in options.tensor_split),
        "test_time": record.at,
    }


def _model_cells(record: BenchRecord, swept: Sequence[str]) -> dict[str, str]:
    options = msgspec.structs.asdict(record.options)
    shown = ["n_gpu_layers"] if record.backend != "CPU" else ["n_threads"]
    shown += ["n_cpu_moe"] if record.options.n_cpu_moe else []
    shown += [key for key in dict.fromkeys(swept) if key not in shown]
    return {
        "model": record.title,
        "size": size_text(record.size_bytes),
        "params": params_text(record.n_params),
        "backend": record.backend,
        **{_COLUMN_NAMES.get(key, key): _option_text(options[key]) for key in shown},
    }


def _markdown_line(cells: Mapping[str, str]) -> str:
    texts = (
        text.ljust(_WIDTHS.get(name, 0)) if name in _LEFT else text.rjust(_WIDTHS.get(name, len(name)))
        for name, text in cells.items()
    )
    return "".join(f"| {text} " for text in texts) + "|\n"


def size_text(n_bytes: int) -> str:
    """Return a size as llama-bench writes it: "20.50 GiB"."""
    return f"{n_bytes / GIB:.2f} GiB" if n_bytes >= GIB else f"{n_bytes / MIB:.2f} MiB"


def params_text(n_params: int) -> str:
    """Return a number of parameters as llama-bench writes it: "35.51 B"."""
    return f"{n_params / 1e9:.2f} B" if n_params >= 1e9 else f"{n_params / 1e6:.2f} M"


def _rule(name: str) -> str:
    width = max(_WIDTHS.get(name, len(name)), len(name))
    return "-" * width if name in _LEFT else "-" * (width - 1) + ":"


def _option_text(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value) or "auto"
    return str(int(value)) if isinstance(value, bool) else str(value)


def _csv_line(values: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(values)
    return line.getvalue()
