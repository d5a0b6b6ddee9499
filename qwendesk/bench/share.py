"""A run as text to share: Markdown with the PC, the options and the table, or one row. Without the user's folders."""

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from qwendesk import __version__
from qwendesk.bench.records import BenchRecord
from qwendesk.bench.table import table_lines
from qwendesk.core.file_names import Shard
from qwendesk.core.number_format import show_date
from qwendesk.core.options import DecidedOptions
from qwendesk.core.redaction import redact_user_paths
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB, show_bytes, show_tokens
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.models.expected_speed import origin_text

# A run's end is known to the minute.
_AT_MINUTES: Final = datetime.timedelta(minutes=1)


def options_text(record: BenchRecord) -> str:
    """Return how the model was loaded, in llama.cpp's words: "backend CUDA · ngl 99 · KV f16"."""
    return f"backend {record.backend} · {load_text(record.options)}"


def load_text(options: DecidedOptions) -> str:
    """Return the load options that decide a speed, in llama.cpp's words: "ngl 99 · n_cpu_moe 12 · KV f16"."""
    parts = [
        f"ngl {options.n_gpu_layers}",
        *([f"n_cpu_moe {options.n_cpu_moe}"] if options.n_cpu_moe else []),
        f"ubatch {options.n_ubatch}",
        f"KV {options.type_k}/{options.type_v}" if options.type_k != options.type_v else f"KV {options.type_k}",
        *([f"threads {options.n_threads}"] if options.n_threads else []),
    ]
    return " · ".join(parts)


def share_text(record: BenchRecord, published: Sequence[SpeedReport] = ()) -> str:
    """Return the whole text."""
    head = ("test", tr("with drafts"), tr("plain"), tr("reported"), tr("gain"))
    lines = [
        f"**{record.title}** ({show_bytes(record.size_bytes)})",
        f"{record.pc} · {show_date(record.at)}",
        f"{options_text(record)} · n_ctx {show_tokens(record.options.n_ctx)}",
        "",
        f"| {' | '.join(head)} |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {line.test} | {line.with_drafts} | {line.plain} | {line.reported} | {line.gain} |"
            for line in table_lines(record.rows, published)
        ),
        "",
        tr(
            "Median ± standard deviation in tok/s, measured by QwenDesk {0} (llama-cpp-python {1}).",
            __version__,
            record.engine,
        ),
        *(tr("Reported: {0}", origin_text(report)) for report in published[:1]),
        *record.notes,
    ]
    return redact_user_paths("\n".join(lines)) + "\n"


def row_text(record: BenchRecord, sha256: str = "") -> str:
    """Return the run as one Markdown row, which `models/pasted_table.py` reads. It is the same in every language.

    It has the program, the cards and the RAM, the file with its size and hash, llama.cpp's flags, the planned and the
    allocated memory, the speeds of prompts and of generation by depth, and the day. `sha256` may be "".
    """
    processor, _, ram = record.pc.rpartition(" · ")
    hashed = f", sha256 {sha256}" if sha256 else ""
    memory = (("planned", record.planned_bytes), ("used", record.used_bytes))
    cells = (
        f"QwenDesk {__version__}, llama-cpp-python {record.engine}",
        f"{record.backend}: {' + '.join(record.cards) or processor}, {ram}",
        f"{record.file}, {record.size_bytes} bytes of weights{hashed}",
        f"`{_flags(record)}`",
        ", ".join(f"{name} {n_bytes / MIB:.0f} MiB" for name, n_bytes in memory if n_bytes) or "-",
        _speeds(record, "pp"),
        _speeds(record, "tg"),
        record.at[:10],
    )
    return redact_user_paths(f"| {' | '.join(each.replace('|', '/') for each in cells)} |") + "\n"


def measured_hash(record: BenchRecord, model: Path, sha256_of: Callable[[Path], str]) -> str:
    """Return the SHA-256 of the file at `model`, of a split model that of its last shard; "" if it can't be told.

    That is so if it was changed since the run, or can't be read. Blocks while the file is read.
    """
    shard = Shard.parse(model.name)
    file = model.with_name(shard.sibling(shard.count)) if shard is not None else model
    try:
        changed = datetime.datetime.fromtimestamp(file.stat().st_mtime)
        return sha256_of(file) if changed <= datetime.datetime.fromisoformat(record.at) + _AT_MINUTES else ""
    except OSError:
        return ""


def _flags(record: BenchRecord) -> str:
    """Return the load options that decide speed and memory as llama-server's flags, each with a value."""
    options = record.options
    values: dict[str, object] = {
        "-ngl": options.n_gpu_layers, "-ncmoe": options.n_cpu_moe, "-c": options.n_ctx, "-b": options.n_batch,
        "-ub": options.n_ubatch, "-ctk": options.type_k, "-ctv": options.type_v, "-fa": options.flash_attn,
    }  # fmt: skip
    if record.backend == "CPU":
        values["-t"] = options.n_threads
    if len(record.cards) > 1:
        values |= {"-sm": options.split_mode, "-ts": ",".join(f"{share:g}" for share in options.tensor_split)}
    return " ".join(f"{flag} {value}" for flag, value in values.items() if value != "")


def _speeds(record: BenchRecord, kind: str) -> str:
    """Return "tg128: 118.20, 104.10 @ d8192": the medians of llama-bench's first test of this kind, by depth."""
    rows = [row for row in record.rows if row.test.startswith(kind) and "+" not in row.test and row.unit == "tok/s"]
    if not rows:
        return "-"
    shown = sorted((row for row in rows if row.test == rows[0].test), key=lambda row: row.depth)
    return f"{rows[0].test}: " + ", ".join(
        f"{row.median:.2f} @ d{row.depth}" if row.depth else f"{row.median:.2f}" for row in shown
    )
