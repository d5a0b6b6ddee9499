"""Expected speeds against what people reported, as ranges that must hold them."""

import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, SpeedEstimate
from qwendesk.core.units import GIB
from qwendesk.hardware.bandwidth import gpu_bandwidth
from qwendesk.hardware.planner import fixed_plan
from tests.gguf_files import dense_27b, moe_35b


def speed(facts: ModelFacts, card: str, gib: float, **values: object) -> SpeedEstimate:
    gpus = (DeviceInfo("CUDA0", card, "gpu", "CUDA", int(gib * GIB), int(gib * GIB)),) if card else ()
    pc = MachineMemory(devices=gpus, ram_total_bytes=64 * GIB, ram_available_bytes=64 * GIB)
    asked: dict[str, object] = {"n_gpu_layers": "all" if card else 0, "n_cpu_moe": 0, "n_ctx": 131_072}
    found = fixed_plan(facts, None, pc, LoadOptions(model="m.gguf", **(asked | values))).speed  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("card", "gib", "values", "start", "long"),
    [
        ("NVIDIA GeForce RTX 3090", 24, {}, 111, 79),
        ("NVIDIA GeForce RTX 5090", 32, {}, 160, None),
        ("", 0, {"n_ctx": 8192}, 6, None),
    ],
)
def test_user_reports_lie_within_the_range(
    card: str, gib: float, values: dict[str, object], start: float, long: float | None
) -> None:
    found = speed(moe_35b(), card, gib, **values)

    assert found.start[0] <= start <= found.start[1]
    assert long is None or found.long[0] <= long <= found.long[1]


def test_long_chats_experts_in_ram_and_slow_cards_are_slower() -> None:
    fast = speed(moe_35b(), "NVIDIA GeForce RTX 4090", 24)
    with_experts_in_ram = speed(moe_35b(), "NVIDIA GeForce RTX 4090", 24, n_cpu_moe=20)
    slow_card = speed(moe_35b(), "NVIDIA GeForce RTX 4060 Ti", 16)
    dense = speed(dense_27b(), "NVIDIA GeForce RTX 4090", 24)

    assert fast.long < fast.start
    assert with_experts_in_ram.start < fast.start
    assert slow_card.start < fast.start
    assert dense.start[1] < fast.start[1] / 2


@pytest.mark.parametrize(
    ("name", "gib", "gb_s"),
    [
        ("NVIDIA GeForce RTX 4090", 24, 1008),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16, 576),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 16, 672),
        ("NVIDIA GeForce RTX 3060", 12, 360),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", 24, 960),
        ("Intel(R) Arc(TM) B580 Graphics", 12, 456),
        ("Apple M4 Max", 64, 546),
    ],
)
def test_gpus_are_recognised_by_name(name: str, gib: int, gb_s: int) -> None:
    assert gpu_bandwidth(name, gib * GIB) == (gb_s * 1e9, gb_s * 1e9)


def test_unknown_gpu_gets_the_range_of_its_memory_size() -> None:
    low, high = gpu_bandwidth("Something new", 24 * GIB)

    assert 0 < low < high
    assert gpu_bandwidth("Something new", 8 * GIB)[1] < high
