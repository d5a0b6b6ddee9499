"""Plans against what the engine really allocates, and the meter against nvidia-smi."""

import time

from bench.gpu_check.models import CheckFailed, Models, running_engine
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


async def check_plans(models: Models) -> int:
    """Print a table for each case. Returns 1 if one is further off than the limits."""
    meters, is_right = [], True
    print("| model | device | part | planned MiB | allocated MiB | off |\n|---|---|---|--:|--:|--:|", flush=True)
    for size, given in _CASES:
        model = models.any(size)
        name = f"{size} {', '.join(f'{key} {value}' for key, value in given.items())}".strip()
        async with running_engine() as engine:
            before = sum(used_on_cards())
            try:
                options = LoadOptions(model=str(model), **given)  # type: ignore[arg-type]
                plan = await engine.plan(options)
                report = await engine.load(plan.options)
            except CheckFailed as error:
                print(f"{name}: {error}", flush=True)
                is_right = False
                continue
            rows, is_close = _parts(name, plan, report)
            print("\n".join(rows), flush=True)
            is_right = is_right and is_close
            meters.append(_meter(name, plan, report, engine.client.worker_pid, before))
    print("\n| model | planned MiB | allocated | of the card, nvidia-smi | worker: meter | worker: nvidia-smi |")
    print("|---|--:|--:|--:|--:|--:|\n" + "\n".join(meters))
    return 0 if is_right else 1


def _parts(name: str, plan: Plan, report: LoadReport) -> tuple[list[str], bool]:
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
            mark = " !" if is_judged and abs(off) > limit else ""
            is_close = is_close and not mark
            rows.append(
                f"| {name} | {planned.name} | {part} | {ours / MIB:.1f} | {theirs / MIB:.1f} | {off:+.1%}{mark} |"
            )
    return rows, is_close


def _meter(name: str, plan: Plan, report: LoadReport, pid: int | None, before: int) -> str:
    reader = SnapshotReader()
    try:
        seen = reader.read(pid, time.monotonic())
    finally:
        reader.close()
    held = [reading.process(pid) for reading in seen.gpus]
    metered = sum(each.dedicated_bytes or 0 for each in held if each is not None)
    names = {gpu.name for gpu in plan.memory.gpus}
    allocated = sum(row.total_bytes for row in report.allocations if row.device in names)
    numbers = (
        sum(gpu.total_bytes for gpu in plan.memory.gpus),
        allocated,
        sum(used_on_cards()) - before,
        metered,
        used_by(pid) or 0,
    )
    return f"| {name} | {' | '.join(f'{number / MIB:.0f}' for number in numbers)} |"
