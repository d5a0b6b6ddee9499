"""A file that is not here yet, planned from its model's dimensions and its size."""

from pathlib import Path

import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import Hyperparameters
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB
from qwendesk.hardware.estimated_facts import Dimensions, dimensions_of, estimate_facts
from qwendesk.hardware.model_memory import kv_bytes, recurrent_bytes, weights_bytes
from qwendesk.hardware.planner import best_plan
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.gguf import read_facts
from tools.hollow_model import write_hollow
from tools.qwen_header import REAL_SIZES

CARD = DeviceInfo("CUDA0", "Card", "gpu", "CUDA", 16 * GIB, 16 * GIB)
PC = MachineMemory(devices=(CARD,), ram_total_bytes=96 * GIB, ram_available_bytes=96 * GIB)
IDS = {"35b": "Qwen3.5-35B-A3B", "122b": "Qwen3.5-122B-A10B", "27b": "Qwen3.5-27B", "9b": "Qwen3.5-9B"}


def from_catalog(size: str) -> tuple[Dimensions, str]:
    model = next(model for model in load_catalog().contents.models if model.id == IDS[size])
    return dimensions_of(model.hyperparameters, model.params_b), model.architecture


@pytest.mark.parametrize("size", list(IDS))
def test_widths_are_known_from_the_catalog(size: str) -> None:
    dimensions, _ = from_catalog(size)

    assert dimensions.feed_forward_length == pytest.approx(REAL_SIZES[size].feed_forward_length, rel=0.03)


@pytest.mark.parametrize("size", list(IDS))
def test_plan_of_an_offer_is_close_to_that_of_the_file(size: str, tmp_path: Path) -> None:
    real = read_facts(write_hollow(tmp_path / "model.gguf", size))
    dimensions, architecture = from_catalog(size)
    estimated = estimate_facts(dimensions, architecture, real.file_bytes, name=size)

    assert weights_bytes(estimated) == pytest.approx(real.file_bytes, rel=0.01)
    options = LoadOptions(model="m.gguf")
    assert kv_bytes(estimated, options, 65_536) == kv_bytes(real, options, 65_536)
    assert recurrent_bytes(estimated) == recurrent_bytes(real)
    plans = [best_plan(facts, None, PC, options) for facts in (real, estimated)]
    moved = [plan.options.n_cpu_moe for plan in plans]
    assert plans[0].kind == plans[1].kind
    assert isinstance(moved[0], int)
    assert isinstance(moved[1], int)
    assert abs(moved[0] - moved[1]) <= 1


def test_a_small_model_has_one_matrix_for_input_and_output() -> None:
    numbers = Hyperparameters(**{name: getattr(REAL_SIZES["4b"], name) for name in Hyperparameters.__struct_fields__})

    assert dimensions_of(numbers, 4.21).is_tied
    assert not dimensions_of(numbers, 8.95).is_tied
