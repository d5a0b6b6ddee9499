"""Made-up rows and records of runs."""

from qwendesk.bench.records import BenchRecord
from qwendesk.bench.table import BenchRow, Drafts
from qwendesk.core.options import DecidedOptions


def row(test: str, depth: int = 0, *values: float, drafts: Drafts = "off", **more) -> BenchRow:
    return BenchRow(test=test, depth=depth, values=values or (100.0,), drafts=drafts, **more)


def record(*rows: BenchRow, at: str = "2026-11-26T15:30", pc: str = "RTX 3090 · 64 GB RAM", **more) -> BenchRecord:
    fields = {
        "file": "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf",
        "architecture": "qwen35moe",
        "n_params": 35_510_000_000,
        "size_bytes": 22_011_707_392,
        "backend": "CUDA",
        "engine": "0.3.36",
        "options": DecidedOptions(model="Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", n_ctx=131_072, n_gpu_layers=99),
    }
    return BenchRecord(at=at, pc=pc, rows=rows, **fields | more)
