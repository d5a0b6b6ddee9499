"""Whether a model in another worker spills, on a made-up gaming PC."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from qwendesk.bench.memory_watch import MemoryMeter, SpillWatch
from qwendesk.core.units import GIB, MIB
from tests.fakes.gaming_pc import CARD, ENGINE, OPTIONS, REPORT, GamingPc, engine_on, reader_of


@pytest.fixture
def pc() -> GamingPc:
    return GamingPc()


@pytest_asyncio.fixture
async def watch(pc: GamingPc) -> AsyncIterator[SpillWatch]:
    await engine_on(pc).load(OPTIONS)
    meter = MemoryMeter(reader_of(pc))
    yield SpillWatch(meter, REPORT, (CARD,), ENGINE, GIB)
    meter.close()


async def test_a_model_that_fits_has_not_spilled(watch: SpillWatch) -> None:
    for _ in range(4):
        await watch.look()

    assert not watch.has_spilled


async def test_one_look_at_a_spill_is_enough_even_if_it_ends(pc: GamingPc, watch: SpillWatch) -> None:
    await watch.look()
    pc.game = 4 * GIB
    await watch.look()
    pc.game = 0
    await watch.look()

    assert watch.has_spilled


async def test_a_few_megabytes_are_no_spill(pc: GamingPc, watch: SpillWatch) -> None:
    await watch.look()
    pc.buffers_in_ram += 50 * MIB
    await watch.look()

    assert not watch.has_spilled
