"""Plans with the engine's own numbers: what they replace, and what happens when they do not fit."""

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.protocol import Allocation
from qwendesk.engines.exact_plan import exact_plan, with_engine_numbers
from qwendesk.hardware.planner import fixed_plan
from tests.gguf_files import mmproj_facts, moe_35b

CARD = DeviceInfo("CUDA0", "Card", "gpu", "CUDA", 12 * GIB, 12 * GIB)
PC = MachineMemory(devices=(CARD,), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
OPTIONS = LoadOptions(model="m.gguf")


class Engine:
    """Answers with our own memory, and `more` compute on the GPU."""

    def __init__(self, more: int = 0, *, knows_weights: bool = True) -> None:
        self._more, self._knows_weights = more, knows_weights
        self.asked: list[LoadOptions] = []

    async def __call__(self, options: LoadOptions) -> Estimated:
        self.asked.append(options)
        memory = fixed_plan(moe_35b(), mmproj_facts(), PC, options).memory
        rows = [
            Allocation(
                device.name,
                weights_bytes=device.weights_bytes if self._knows_weights else 0,
                kv_bytes=device.kv_bytes if self._knows_weights else 0,
                recurrent_bytes=device.recurrent_bytes,
                compute_bytes=device.compute_bytes + (self._more if device.name == "CUDA0" else 0),
            )
            for device in (*memory.gpus, memory.ram)
        ]
        return Estimated(id=0, allocations=tuple(rows))


async def planned(engine: Engine) -> Plan:
    found = await exact_plan(moe_35b(), mmproj_facts(), PC, OPTIONS, engine)
    assert isinstance(found, Plan)
    return found


async def test_engines_numbers_replace_the_estimates() -> None:
    ours = (await planned(Engine())).memory.gpus[0]
    found = await planned(Engine(more=7 * MIB))

    assert found.source == "engine"
    assert found.memory.gpus[0].compute_bytes == ours.compute_bytes + 7 * MIB
    assert found.memory.gpus[0].vision_bytes == ours.vision_bytes > 0
    assert found.fits


async def test_higher_exact_numbers_move_another_expert_layer() -> None:
    engine = Engine(more=700 * MIB)
    plain, found = await planned(Engine()), await planned(engine)

    assert found.fits
    assert isinstance(plain.options.n_cpu_moe, int)
    assert isinstance(found.options.n_cpu_moe, int)
    assert found.options.n_cpu_moe > plain.options.n_cpu_moe
    assert len(engine.asked) > 1
    assert found.memory.gpus[0].other_bytes == plain.memory.gpus[0].other_bytes


async def test_estimated_weights_are_kept_if_the_engine_reports_none() -> None:
    found = await planned(Engine(knows_weights=False))

    assert found.memory.gpus[0].weights_bytes > GIB
    assert found.memory.gpus[0].kv_bytes > 0


async def test_bad_pattern_is_refused_without_a_dry_run() -> None:
    engine = Engine()
    asked = msgspec.structs.replace(OPTIONS, override_tensor=("blk(=CPU",))

    found = await exact_plan(moe_35b(), None, PC, asked, engine)

    assert not isinstance(found, Plan)
    assert (found.kind, engine.asked) == ("bad_option", [])


async def test_loaded_model_replaces_what_was_said_about_the_numbers() -> None:
    before = await planned(Engine())

    loaded = tuple(
        Allocation(
            device.name,
            weights_bytes=device.weights_bytes,
            recurrent_bytes=device.recurrent_bytes,
            compute_bytes=device.compute_bytes,
            vision_bytes=device.vision_bytes,
        )
        for device in (*before.memory.gpus, before.memory.ram)
    )
    after = with_engine_numbers(before, loaded, OPTIONS)

    assert "vision encoder" in before.accuracy
    assert after.accuracy.startswith("All numbers")  # once the model is loaded, the vision encoder is known too
    assert after.why == before.why
