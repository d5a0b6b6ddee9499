"""Prints measured rows in the formats of llama-bench: a Markdown table, CSV, JSON and JSON lines.

Fields have llama-bench's names where it has them. The Markdown table shows the median; CSV and JSON have the mean too.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from qwendesk.bench.records import BenchRecord
from qwendesk.bench.rows import BenchRow
from qwendesk.core.units import GIB, MIB

OutputFormat = Literal["md", "csv", "json", "jsonl"]
_COLUMN_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "n_gpu_layers": "ngl", "n_cpu_moe": "ncmoe", "n_threads": "threads", "flash_attn": "fa", "split_mode": "sm",
        "tensor_split": "ts", "devices": "dev", "override_tensor": "ot",
    }
)  # fmt: skip
"""llama-bench's short names of columns; the others have the names of the options."""
_WIDTHS: Mapping[str, int] = MappingProxyType(
    {"model": 30, "size": 10, "params": 10, "backend": 10, "ngl": 3, "threads": 7, "test": 20, "drafts": 6, "t/s": 20}
)
_LEFT = frozenset({"model", "backend", "drafts"})


class Output(Protocol):
    """Takes the rows of one or more runs as they are measured."""

    def add(self, record: BenchRecord, row: BenchRow) -> None:
        """Print a row, or keep it for the end. `record` says what was measured with which options."""

    def end(self) -> None:
        """Print what was kept."""


def make_output(kind: OutputFormat, write: Callable[[str], None], swept: Sequence[str] = ()) -> Output:
    """Return an output that prints with `write`. `swept` are the keys of options that differ between the runs."""
    match kind:
        case "md":
            return MarkdownOutput(write, swept)
        case "csv":
            return CsvOutput(write)
        case "json":
            return JsonOutput(write)
        case "jsonl":
            return JsonLinesOutput(write)


class MarkdownOutput:
    """The table that llama-bench prints, with the median and the standard deviation of each test."""

    def __init__(self, write: Callable[[str], None], swept: Sequence[str]) -> None:
        self._write, self._swept = write, tuple(swept)
        self._columns: tuple[str, ...] = ()

    def add(self, record: BenchRecord, row: BenchRow) -> None:
        values = self._values(record, row)
        if not self._columns:
            self._columns = tuple(values)
            self._write(self._line({name: name for name in values}))
            self._write("".join(f"| {_rule(name)} " for name in values) + "|\n")
        self._write(self._line(values))

    def end(self) -> None:
        """Everything is printed already."""

    def _values(self, record: BenchRecord, row: BenchRow) -> dict[str, str]:
        options = msgspec.structs.asdict(record.options)
        shown = ["n_gpu_layers"] if record.backend != "CPU" else ["n_threads"]
        shown += ["n_cpu_moe"] if record.options.n_cpu_moe else []
        shown += [key for key in self._swept if key not in shown]
        return {
            "model": record.title,
            "size": size_text(record.size_bytes),
            "params": params_text(record.n_params),
            "backend": record.backend,
            **{_COLUMN_NAMES.get(key, key): _option_text(options[key]) for key in shown},
            "drafts": row.drafts + (f" {100 * row.acceptance:.0f}%" if row.acceptance is not None else ""),
            "test": row.name,
            "t/s": f"{row.median:.2f} ± {row.spread:.2f}" + ("" if row.unit == "tok/s" else f" {row.unit}"),
        }

    def _line(self, values: Mapping[str, str]) -> str:
        cells = (
            text.ljust(_WIDTHS.get(name, 0)) if name in _LEFT else text.rjust(_WIDTHS.get(name, len(name)))
            for name, text in values.items()
        )
        return "".join(f"| {cell} " for cell in cells) + "|\n"


class CsvOutput:
    """One line for each row, after a line with the names of the fields."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._has_head = False

    def add(self, record: BenchRecord, row: BenchRow) -> None:
        fields = fields_of(record, row)
        del fields["samples"]
        if not self._has_head:
            self._has_head = True
            self._write(_csv_line(list(fields)))
        self._write(_csv_line([str(value) for value in fields.values()]))

    def end(self) -> None:
        """Everything is printed already."""


class JsonLinesOutput:
    """One JSON object a line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def add(self, record: BenchRecord, row: BenchRow) -> None:
        self._write(json.dumps(fields_of(record, row), ensure_ascii=False) + "\n")

    def end(self) -> None:
        """Everything is printed already."""


class JsonOutput:
    """One JSON list, printed at the end."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._rows: list[dict[str, Any]] = []

    def add(self, record: BenchRecord, row: BenchRow) -> None:
        self._rows.append(fields_of(record, row))

    def end(self) -> None:
        self._write(json.dumps(self._rows, ensure_ascii=False, indent=2) + "\n")


def fields_of(record: BenchRecord, row: BenchRow) -> dict[str, Any]:
    """Return what is known of a row, by llama-bench's names as far as it has them."""
    options, is_speed = record.options, row.unit == "tok/s"
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
        "test": row.name,
        "n_prompt": row.n_prompt,
        "n_gen": row.n_gen,
        "n_depth": row.depth,
        "test_time": record.at,
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
