"""Plans with the engine's own numbers: what they replace, and what happens when they do not fit."""

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import Allocation, Estimated
from qwendesk.hardware.planner import judge
from qwendesk.services.engine.exact import exact_plan
from tests.gguf_files import mmproj_facts, moe_35b

CARD = DeviceInfo("CUDA0", "Card", "gpu", "CUDA", 12 * GIB, 12 * GIB)
PC = Machine(devices=(CARD,), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
OPTIONS = LoadOptions(model="m.gguf")


class Engine:
    """Answers with our own prices, and `more` compute on the GPU."""

    def __init__(self, more: int = 0, *, knows_weights: bool = True) -> None:
        self._more, self._knows_weights = more, knows_weights
        self.asked: list[LoadOptions] = []

    async def __call__(self, options: LoadOptions) -> Estimated:
        self.asked.append(options)
        prices = judge(moe_35b(), mmproj_facts(), PC, options).prices
        rows = [
            Allocation(
                device.name,
                weights_bytes=device.weights_bytes if self._knows_weights else 0,
                kv_bytes=device.kv_bytes if self._knows_weights else 0,
                recurrent_bytes=device.recurrent_bytes,
                compute_bytes=device.compute_bytes + (self._more if device.name == "CUDA0" else 0),
            )
            for device in (*prices.gpus, prices.ram)
        ]
        return Estimated(id=0, allocations=tuple(rows))


async def planned(engine: Engine) -> Plan:
    found = await exact_plan(moe_35b(), mmproj_facts(), PC, OPTIONS, engine)
    assert isinstance(found, Plan)
    return found


@pytest.mark.asyncio
async def test_the_engines_numbers_replace_ours_and_the_plan_says_so() -> None:
    ours = (await planned(Engine())).prices.gpus[0]
    found = await planned(Engine(more=7 * MIB))

    assert found.source == "engine"
    assert found.prices.gpus[0].compute_bytes == ours.compute_bytes + 7 * MIB
    assert found.prices.gpus[0].vision_bytes == ours.vision_bytes > 0
    assert found.fits


@pytest.mark.asyncio
async def test_what_the_engine_needs_more_costs_another_expert_layer() -> None:
    engine = Engine(more=700 * MIB)
    plain, found = await planned(Engine()), await planned(engine)

    assert found.fits
    assert isinstance(plain.options.n_cpu_moe, int)
    assert isinstance(found.options.n_cpu_moe, int)
    assert found.options.n_cpu_moe > plain.options.n_cpu_moe
    assert len(engine.asked) > 1
    assert found.prices.gpus[0].drift_bytes == plain.prices.gpus[0].drift_bytes


@pytest.mark.asyncio
async def test_an_engine_that_does_not_know_weights_leaves_ours() -> None:
    found = await planned(Engine(knows_weights=False))

    assert found.prices.gpus[0].weights_bytes > GIB
    assert found.prices.gpus[0].kv_bytes > 0


@pytest.mark.asyncio
async def test_without_an_answer_the_estimate_says_why() -> None:
    async def silent(_options: LoadOptions) -> Estimated:
        return Estimated(id=0, problem="The engine could not be started: no such file.")

    found = await exact_plan(moe_35b(), None, PC, OPTIONS, silent)

    assert isinstance(found, Plan)
    assert (found.source, found.fits) == ("estimate", True)
    assert "no such file" in found.why[-1]


@pytest.mark.asyncio
async def test_a_bad_pattern_is_told_before_the_engine_is_asked() -> None:
    engine = Engine()
    asked = msgspec.structs.replace(OPTIONS, override_tensor=("blk(=CPU",))

    found = await exact_plan(moe_35b(), None, PC, asked, engine)

    assert not isinstance(found, Plan)
    assert (found.kind, engine.asked) == ("bad_option", [])
