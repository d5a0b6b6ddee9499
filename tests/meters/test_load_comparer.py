"""Loads measured by the meters, on a made-up gaming PC."""

from pathlib import Path

from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB, MIB
from qwendesk.engines.measurements import MeasuredLoads
from qwendesk.hardware.planner import best_plan
from qwendesk.meters.load_comparer import LoadComparer
from tests.fakes.gaming_pc import CARD
from tests.gguf_files import mmproj_facts, moe_35b


def read_headers(_options: LoadOptions) -> tuple[ModelFacts, ModelFacts]:
    return moe_35b(), mmproj_facts()


def planned_on_card(measured: MeasuredLoads) -> int:
    """What the next plan counts beside the formulas."""
    machine = MachineMemory(
        devices=(CARD,), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB, drift=measured.drift
    )
    return best_plan(moe_35b(), mmproj_facts(), machine, LoadOptions(model="m")).memory.gpus[0].other_bytes


async def test_load_is_compared_once_and_corrects_later_plans(desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    comparer = LoadComparer(
        desk.engine, desk.meters, measured, read_headers=lambda options: (moe_35b(), mmproj_facts())
    )
    heard: list[object] = []
    comparer.comparisons.subscribe(heard.append)

    await desk.load()
    desk.pc.size += 700 * MIB
    await desk.look(9)
    await comparer.close()

    assert measured.drift == (("CUDA0", 700 * MIB),)
    (row,) = comparer.comparisons.value
    assert row.real_bytes == desk.pc.size
    assert row.predicted_bytes > 20 * GIB
    assert heard == [comparer.comparisons.value]
    assert planned_on_card(measured) == 700 * MIB, "the next plan counts what this load took beyond the formulas"


async def test_a_load_that_spills_is_not_measured(desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    comparer = LoadComparer(
        desk.engine, desk.meters, measured, read_headers=lambda options: (moe_35b(), mmproj_facts())
    )
    await desk.load()
    await desk.look()
    desk.pc.game = 6 * GIB

    await desk.look(9)
    await comparer.close()

    assert measured.drift == ()


async def test_load_without_gpu_or_with_missing_files_is_not_saved(cpu_desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    gone = LoadFailure("missing_file", "Gone", "It is gone.")
    comparer = LoadComparer(cpu_desk.engine, cpu_desk.meters, measured, read_headers=lambda options: gone)

    await cpu_desk.load()
    await cpu_desk.look(9)
    await comparer.close()

    assert (comparer.comparisons.value, measured.drift) == ((), ())


async def test_ram_is_compared_without_a_gpu_but_not_saved(cpu_desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    comparer = LoadComparer(
        cpu_desk.engine, cpu_desk.meters, measured, read_headers=lambda options: (moe_35b(), mmproj_facts())
    )
    await cpu_desk.load()
    await cpu_desk.look(9)
    await comparer.close()

    (row,) = comparer.comparisons.value
    assert (row.device, row.real_bytes) == ("CPU", 21 * GIB), "what the engine says it allocated"
    assert measured.drift == ()
