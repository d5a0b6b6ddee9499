"""On a PC with an NVIDIA card: plans against what is really allocated, and the meter against nvidia-smi.

    python -m bench.gpu_check [--size 35b] [--size 9b]

Loads hollow models of real dimensions (tools/hollow_model.py: zeros from a file that costs a few MB of disk), as the
app would: planned, checked with the engine, loaded by a worker. Without a card it says so and ends.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.units import MIB
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.exact_plan import exact_plan, with_engine_numbers
from qwendesk.engines.load_decision import machine_now
from qwendesk.hardware.nvidia_smi import used_by, used_on_cards
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.hub.gguf import read_facts
from tools.hollow_model import write_hollow
from tools.qwen_header import REAL_SIZES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", action="append", choices=list(REAL_SIZES), help="repeatable; without it: 2b, 9b and 35b"
    )
    sizes = parser.parse_args().size or ["2b", "9b", "35b"]
    if not used_on_cards():
        print("No NVIDIA card was met here (nvidia-smi is missing or lists none): nothing was checked.")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return max(
            asyncio.run(_check(write_hollow(Path(folder) / f"{size}.gguf", size, loadable=True))) for size in sizes
        )


async def _check(model: Path) -> int:
    """One model: planned, asked for, loaded, measured. 0 when the plan held."""
    client = WorkerClient()
    try:
        devices = await client.probe()
        if isinstance(devices, EngineExit):
            print(f"{model.name}: {devices.sentence}")
            return 1
        if not any(device.kind == "gpu" for device in devices.devices):
            print("This engine has no GPU backend: install one with ENGINE=cuda make run.")
            return 1
        plan = await exact_plan(
            read_facts(model), None, machine_now(devices), LoadOptions(model=str(model)), ask_engine
        )
        if isinstance(plan, LoadFailure):
            print(f"{model.name}: {plan.sentence}")
            return 1
        report = await client.load(plan.options)
        if isinstance(report, LoadFailure):
            print(f"{model.name}: {report.sentence}")
            return 1
        return _compare(model, plan, report, client.worker_pid)
    finally:
        await client.close()


def _compare(model: Path, plan: Plan, report: LoadReport, pid: int | None) -> int:
    print(f"\n{model.name}: {plan.kind}, {plan.options.n_ctx} tokens, {plan.options.type_k}, numbers: {plan.source}")
    real = with_engine_numbers(plan, report.allocations, plan.options)
    print("| device | part | planned MiB | allocated MiB | off |")
    print("|---|---|---|---|---|")
    for planned, allocated in zip(plan.memory.gpus, real.memory.gpus, strict=True):
        for part in ("weights", "kv", "recurrent", "compute"):
            ours, theirs = (getattr(row, f"{part}_bytes") / MIB for row in (planned, allocated))
            print(f"| {planned.name} | {part} | {ours:.1f} | {theirs:.1f} | {_off(ours, theirs)} |")
    reader = SnapshotReader()
    try:
        seen = reader.read(pid, time.monotonic())
    finally:
        reader.close()
    smi = used_on_cards()
    print("| card | planned MiB | meter: worker MiB | nvidia-smi: worker MiB | meter: all MiB | nvidia-smi: all MiB |")
    print("|---|---|---|---|---|---|")
    for index, (row, reading) in enumerate(zip(plan.memory.gpus, seen.gpus, strict=False)):
        held = reading.process(pid)
        metered = (held.dedicated_bytes or 0) / MIB if held is not None else 0
        everything = smi[index] / MIB if index < len(smi) else 0
        print(
            f"| {row.name} | {row.total_bytes / MIB:.0f} | {metered:.0f} | {(used_by(pid) or 0) / MIB:.0f} | "
            f"{(reading.used_bytes or 0) / MIB:.0f} | {everything:.0f} |"
        )
    return 0 if real.fits else 1


def _off(ours: float, theirs: float) -> str:
    return f"{ours / theirs - 1:+.1%}" if theirs else "-"


if __name__ == "__main__":
    sys.exit(main())
