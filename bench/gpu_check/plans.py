"""Plans against what the engine really allocates, and the meter against nvidia-smi."""

import time
from collections.abc import Mapping
from functools import partial

from bench.gpu_check.models import Models, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.bench.memory_watch import used_by, used_on_cards
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.units import MIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.hardware.snapshot_reader import SnapshotReader

_CASES: tuple[tuple[str, dict[str, object]], ...] = (
    ("35b", {}),
    ("35b", {"n_ctx": 131_072, "type_k": "q8_0", "type_v": "q8_0"}),
    ("35b", {"n_ctx": 1_010_000, "rope_scaling": "yarn", "rope_freq_scale": 0.25}),
    ("35b", {"n_cpu_moe": 20}),
    ("35b", {"n_cpu_moe": 40, "n_ubatch": 2048, "n_batch": 2048}),
    ("35b", {"n_gpu_layers": 20, "n_ctx": 32_768}),
    ("2b", {}),
    ("9b", {}),
    ("27b", {"n_ctx": 32_768}),
    ("27b", {"n_ctx": 32_768, "n_gpu_layers": 40}),
)
_LIMITS = {"weights": 0.02, "kv": 0.02, "recurrent": 0.02, "compute": 0.10}
"""How far a part may be off (docs/measurements.md)."""
_SMALL_BYTES = 32 * MIB
"""Compute buffers below this are not judged."""


async def _plan_and_load(size: str, given: Mapping[str, object], models: Models) -> Found:
    name = _name(size, given)
    async with running_engine() as engine:
        before = sum(used_on_cards())
        plan = await engine.plan(LoadOptions(model=str(models.any(size)), **given))  # type: ignore[arg-type]
        report = await engine.load(plan.options)
        rows, is_close = _parts(name, plan, report)
        meters = _meters(name, plan, engine.client.worker_pid, before)
    return Found((*rows, *meters), is_right=is_close)


def _name(size: str, given: Mapping[str, object]) -> str:
    return f"{size} {', '.join(f'{key} {value}' for key, value in given.items())}".strip()


def _parts(name: str, plan: Plan, report: LoadReport) -> tuple[list[tuple[str, ...]], bool]:
    real = {row.device: row for row in report.allocations}
    rows, is_close = [], True
    for planned in (*plan.memory.gpus, plan.memory.ram):
        row = real.get("CPU" if planned is plan.memory.ram else planned.name)
        if row is None:
            continue
        for part, limit in _LIMITS.items():
            ours, theirs = getattr(planned, f"{part}_bytes"), getattr(row, f"{part}_bytes")
            if not theirs and not ours:
                continue
            off = ours / theirs - 1 if theirs else float("inf")
            is_judged = part != "compute" or theirs >= _SMALL_BYTES
            is_far = is_judged and abs(off) > limit
            is_close = is_close and not is_far
            rows.append(_row(name, planned.name, part, ours, theirs, " !" if is_far else ""))
    return rows, is_close


def _meters(name: str, plan: Plan, pid: int | None, before: int) -> list[tuple[str, ...]]:
    """Return rows of the whole card and of the worker, as the app's meter and nvidia-smi see them."""
    reader = SnapshotReader()
    try:
        seen = reader.read(pid, time.monotonic())
    finally:
        reader.close()
    held = [reading.process(pid) for reading in seen.gpus]
    metered = sum(each.dedicated_bytes or 0 for each in held if each is not None)
    planned = sum(gpu.total_bytes for gpu in plan.memory.gpus)
    return [
        _row(name, "all", "plan against nvidia-smi", planned, sum(used_on_cards()) - before),
        _row(name, "worker", "meter against nvidia-smi", metered, used_by(pid) or 0),
    ]


def _row(name: str, device: str, part: str, ours: int, theirs: int, mark: str = "") -> tuple[str, ...]:
    off = f"{ours / theirs - 1:+.1%}" if theirs else "-"
    return (name, device, part, f"{ours / MIB:.1f}", f"{theirs / MIB:.1f}", f"{off}{mark}")


PLANS = Part(
    "plans",
    ("model", "device", "part", "planned MiB", "allocated MiB", "off"),
    tuple(Step(_name(size, given), 30, partial(_plan_and_load, size, given)) for size, given in _CASES),
)
