"""Plans for several GPUs, against where the engine would put each buffer on several devices of the software driver.

The files are hollow: dimensions of real models without their data. The sizes of the cards are made up, because the
engine is told the split and does not look at what is free.
"""

from pathlib import Path

import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.dry_run import ask_engine
from qwendesk.hardware.planner import best_plan
from qwendesk.hub.gguf import read_facts
from tools.hollow_model import write_hollow


def pc_with_cards(sizes_gib: tuple[int, ...]) -> MachineMemory:
    cards = tuple(
        DeviceInfo(f"Vulkan{number}", f"Card {number}", "gpu", "Vulkan", size * GIB, size * GIB)
        for number, size in enumerate(sizes_gib)
    )
    return MachineMemory(
        devices=cards, ram_total_bytes=256 * GIB, ram_available_bytes=250 * GIB, reserve_bytes=GIB, physical_cores=8
    )


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("model", "sizes_gib"),
    [
        ("35b", (24, 12)),
        ("35b", (12, 24)),
        ("35b", (8, 8)),
        ("122b", (24, 24)),
        ("122b", (24, 24, 24)),
        ("27b", (16, 12)),
        ("27b", (8, 6)),
    ],
)
async def test_engine_would_put_everything_where_the_plan_says(
    model: str, sizes_gib: tuple[int, ...], tmp_path: Path
) -> None:
    file = write_hollow(tmp_path / f"{model}.gguf", model)
    plan = best_plan(read_facts(file), None, pc_with_cards(sizes_gib), LoadOptions(model=str(file)))
    assert plan.fits, plan

    same_device_often = {"GGML_VK_VISIBLE_DEVICES": ",".join("0" for _ in sizes_gib)}
    answer = await ask_engine(plan.options, environment=same_device_often)

    assert answer.problem == ""
    real = {row.device: row for row in answer.allocations}
    assert set(real) == {"CPU", *(gpu.name for gpu in plan.memory.gpus)}
    for planned in (*plan.memory.gpus, plan.memory.ram):
        row = real[planned.name if planned in plan.memory.gpus else "CPU"]
        assert row.weights_bytes == pytest.approx(planned.weights_bytes, rel=0.02, abs=MIB), (planned, row)
        assert row.kv_bytes == pytest.approx(planned.kv_bytes, rel=0.02, abs=MIB), (planned, row)
        assert row.recurrent_bytes == pytest.approx(planned.recurrent_bytes, rel=0.02, abs=MIB), (planned, row)
        assert row.compute_bytes <= 1.15 * planned.compute_bytes + MIB, (planned, row)
