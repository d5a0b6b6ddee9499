"""A run as text to share: Markdown with the PC, the options and the table, without names and folders of the user."""

from collections.abc import Sequence

from qwendesk import __version__
from qwendesk.bench.records import BenchRecord
from qwendesk.bench.table import table_lines
from qwendesk.core.number_format import show_date
from qwendesk.core.options import DecidedOptions
from qwendesk.core.redaction import redact_user_paths
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.hub.catalog_schema import SpeedReport


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
        *(tr("Reported: {0}, {1}", report.source, report.date) for report in published[:1]),
        *record.notes,
    ]
    return redact_user_paths("\n".join(lines)) + "\n"
