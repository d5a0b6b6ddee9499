"""What fixes would free, by the planner, on the demo model's real files."""

import msgspec

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.state import EngineState
from qwendesk.services.meters.pricing import prices_of
from qwendesk.services.meters.relief import fixes

CARD = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)
DEMO = LoadOptions(
    model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()), n_ctx=32_768, n_gpu_layers="all", n_cpu_moe=0,
    type_k="f16", type_v="f16", vision="gpu", n_ubatch=512,
)  # fmt: skip


def price_of(options: LoadOptions):
    return prices_of(lambda: EngineState(devices=(CARD,)), lambda: 0)(options)


def test_each_fix_takes_memory_off_the_card():
    now = price_of(DEMO)
    for changes in ({"n_cpu_moe": 4}, {"vision": "cpu"}):
        after = price_of(msgspec.structs.replace(DEMO, **changes))
        assert after.gpus["CUDA0"] < now.gpus["CUDA0"], changes
    low, high = now.expected_tok_s
    assert 0 < low <= high


def test_the_planner_s_fixes_for_a_small_spill():
    found = fixes(DEMO, {"CUDA0": 100_000}, None, 8, price_of)
    # A q8_0 cache is unpacked for one layer at a time, and that takes the tiny demo more than it saves.
    assert {fix.id for fix in found} == {"experts", "vision"}


def test_files_that_are_gone_have_no_price():
    assert price_of(msgspec.structs.replace(DEMO, model="/nowhere/model.gguf")) is None
    assert price_of(msgspec.structs.replace(DEMO, override_tensor=("(=CPU",))) is None
