"""Loads measured by the meters, on a made-up gaming PC."""

from pathlib import Path

import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.planner import solve
from qwendesk.services.engine.measured import MeasuredLoads
from qwendesk.services.meters.measuring import LoadMeasuring
from tests.fakes.gaming_pc import CARD
from tests.gguf_files import mmproj_facts, moe_35b

pytestmark = pytest.mark.asyncio


def planned_on_card(measured: MeasuredLoads) -> int:
    """What the next plan counts beside the formulas."""
    machine = Machine(devices=(CARD,), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB, drift=measured.drift)
    return solve(moe_35b(), mmproj_facts(), machine, LoadOptions(model="m")).prices.gpus[0].drift_bytes


async def test_a_load_is_compared_once_and_corrects_what_is_planned_next(desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    measuring = LoadMeasuring(desk.engine, desk.meters, measured, files_of=lambda options: (moe_35b(), mmproj_facts()))
    heard: list[object] = []
    measuring.subscribe(heard.append)

    await desk.load()
    desk.pc.size += 700 * MIB
    await desk.look(9)
    await measuring.close()

    assert measured.drift == (("CUDA0", 700 * MIB),)
    (row,) = measuring.latest
    assert row.real_bytes == desk.pc.size
    assert row.predicted_bytes > 20 * GIB
    assert heard == [measuring.latest]
    assert planned_on_card(measured) == 700 * MIB, "the next plan counts what this load took beyond the formulas"


async def test_a_load_that_spills_is_not_measured(desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    measuring = LoadMeasuring(desk.engine, desk.meters, measured, files_of=lambda options: (moe_35b(), mmproj_facts()))
    await desk.load()
    await desk.look()
    desk.pc.game = 6 * GIB

    await desk.look(9)
    await measuring.close()

    assert measured.drift == ()


async def test_without_a_card_or_with_files_that_are_gone_nothing_is_kept(cpu_desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    gone = LoadFailure("missing_file", "Gone", "It is gone.")
    measuring = LoadMeasuring(cpu_desk.engine, cpu_desk.meters, measured, files_of=lambda options: gone)

    await cpu_desk.load()
    await cpu_desk.look(9)
    await measuring.close()

    assert (measuring.latest, measured.drift) == ((), ())


async def test_without_a_card_the_ram_is_compared_and_nothing_is_kept(cpu_desk, tmp_path: Path) -> None:
    measured = MeasuredLoads(tmp_path / "measured.json")
    measuring = LoadMeasuring(
        cpu_desk.engine, cpu_desk.meters, measured, files_of=lambda options: (moe_35b(), mmproj_facts())
    )
    await cpu_desk.load()
    await cpu_desk.look(9)
    await measuring.close()

    (row,) = measuring.latest
    assert (row.device, row.real_bytes) == ("CPU", 21 * GIB), "what the engine says it allocated"
    assert measured.drift == ()
