"""Which GPUs llama.cpp takes, and which of them share the RAM."""

import pytest

from qwendesk.core.devices import DeviceInfo, default_gpus, number_equal_names, short_card_name
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB

CPU = DeviceInfo("CPU", "A CPU", "cpu", "CPU")
CARD = DeviceInfo("Vulkan1", "Radeon RX 7900 XTX", "gpu", "Vulkan", 24 * GIB, 23 * GIB)
STRIX_HALO = DeviceInfo("Vulkan0", "Radeon 8060S Graphics", "igpu", "Vulkan", 124 * GIB, 120 * GIB)
SPARK = DeviceInfo("CUDA0", "NVIDIA GB10", "igpu", "CUDA", 119 * GIB, 110 * GIB)
MAC = DeviceInfo("MTL0", "Apple M4 Pro", "gpu", "MTL", 36 * GIB, 36 * GIB)
REMOTE = DeviceInfo("RPC0", "192.168.0.2:50052", "gpu", "RPC", 24 * GIB, 23 * GIB)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ((CPU, STRIX_HALO), (STRIX_HALO,)),
        ((SPARK, CPU), (SPARK,)),
        ((STRIX_HALO, CARD, CPU), (CARD,)),
        ((STRIX_HALO, SPARK, CPU), (STRIX_HALO,)),  # not of two backends, which may list the same GPU
        ((STRIX_HALO, CPU, REMOTE), (REMOTE, STRIX_HALO)),
        ((MAC, CPU), (MAC,)),
        ((CPU,), ()),
    ],
)
def test_an_integrated_gpu_is_used_where_there_is_no_other(devices, expected) -> None:
    assert default_gpus(devices) == expected


@pytest.mark.parametrize(
    ("devices", "is_unified"),
    [
        ((CPU, STRIX_HALO), True),
        ((SPARK, CPU), True),
        ((MAC, CPU), True),
        ((STRIX_HALO, CARD, CPU), False),
        ((STRIX_HALO, REMOTE, CPU), False),
        ((CPU,), False),
    ],
)
def test_memory_is_unified_if_all_gpus_in_use_share_the_ram(devices, is_unified) -> None:
    assert MachineMemory(devices=devices, ram_total_bytes=GIB, ram_available_bytes=GIB).is_unified is is_unified


def test_the_engine_maps_files_for_all_but_integrated_gpus() -> None:
    assert [device.supports_mmap for device in (CARD, STRIX_HALO, SPARK, MAC)] == [True, False, False, True]


def test_equal_cards_are_numbered_and_others_keep_their_names() -> None:
    assert number_equal_names(["RTX 3090", "RTX 3060", "RTX 3090"]) == ("RTX 3090 #1", "RTX 3060", "RTX 3090 #2")
    assert number_equal_names(["RTX 3090"]) == ("RTX 3090",)
    assert [short_card_name(name) for name in ("NVIDIA GeForce RTX 3090", "Tesla P40")] == ["RTX 3090", "Tesla P40"]
