"""Which of the listed CUDA engines a PC gets, by driver and card.

Drivers are from NVIDIA's table of minor version compatibility (CUDA 12 from 525 on, 13 from 580 on), and compute
capabilities from the workflow with which llama-cpp-python builds its wheels. docs/release.md names both.
"""

import pytest

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.engines.pack_fit import best_cuda, is_compiled_by_driver, obstacle, packs_for
from qwendesk.engines.packs import PackState, read_packs
from qwendesk.hardware.snapshot import GpuReading

CAPABILITIES = {
    "GeForce GTX 680": (3, 0), "GeForce GTX 750 Ti": (5, 0), "GeForce GTX 970": (5, 2), "GeForce GTX 980M": (5, 2),
    "Tesla P100": (6, 0), "GeForce GTX 1060 6GB": (6, 1), "GeForce GTX 1080 Ti": (6, 1), "TITAN V": (7, 0),
    "GeForce GTX 1650": (7, 5), "GeForce RTX 2070": (7, 5), "A100": (8, 0), "GeForce RTX 3060": (8, 6),
    "GeForce RTX 3090": (8, 6), "Jetson AGX Orin": (8, 7), "GeForce RTX 4060 Laptop GPU": (8, 9),
    "GeForce RTX 4090": (8, 9), "H100": (9, 0), "B200": (10, 0), "GeForce RTX 5060": (12, 0),
    "GeForce RTX 5090": (12, 0), "GB10": (12, 1), "GeForce RTX 9090": (14, 0),
}  # fmt: skip


def pc(driver: str, *names: str) -> tuple[GpuReading, ...]:
    return tuple(
        GpuReading(name=name, vendor="nvidia", driver=driver, compute_capability=CAPABILITIES[name]) for name in names
    )


def on(platform: str) -> tuple[EnginePack, ...]:
    return tuple(pack for pack in read_packs() if pack.platform == platform)


@pytest.mark.parametrize(
    ("driver", "cards", "taken"),
    [
        ("581.15", ["GeForce RTX 3060"], "cuda-13"),
        ("580.88", ["GeForce RTX 4090"], "cuda-13"),
        ("610.74", ["GeForce RTX 4060 Laptop GPU"], "cuda-13"),
        ("595.97", ["GeForce RTX 5090"], "cuda-13"),
        ("581.15", ["GeForce RTX 2070"], "cuda-13"),
        ("581.15", ["GeForce GTX 1650"], "cuda-13"),
        ("580.95", ["A100"], "cuda-13"),
        ("580.95", ["H100"], "cuda-13"),
        ("581.15", ["B200"], "cuda-13"),
        ("581.15", ["GB10"], "cuda-13"),
        ("576.88", ["GeForce RTX 5060"], "cuda-12"),
        ("572.16", ["GeForce RTX 5090"], "cuda-12"),
        ("579.99", ["GeForce RTX 4090"], "cuda-12"),
        ("551.61", ["GeForce RTX 4090"], "cuda-12"),
        ("528.33", ["GeForce RTX 3090"], "cuda-12"),
        ("531.18", ["GeForce RTX 2070"], "cuda-12"),
        ("566.36", ["GeForce GTX 1060 6GB"], "cuda-12"),
        ("581.15", ["GeForce GTX 1080 Ti"], "cuda-12"),
        ("581.15", ["TITAN V"], "cuda-12"),
        ("537.58", ["Tesla P100"], "cuda-12"),
        ("32.0.15.8115", ["GeForce RTX 3060"], "cuda-13"),
        ("32.0.15.6636", ["GeForce RTX 3060"], "cuda-12"),
        ("31.0.15.2686", ["GeForce RTX 3060"], ""),
        ("528.24", ["GeForce RTX 4090"], ""),
        ("516.94", ["GeForce GTX 1060 6GB"], ""),
        ("471.11", ["GeForce RTX 3090"], ""),
        ("581.15", ["GeForce GTX 750 Ti"], ""),
        ("566.36", ["GeForce GTX 980M"], ""),
        ("474.14", ["GeForce GTX 680"], ""),
        ("700.10", ["GeForce RTX 9090"], ""),
        ("581.15", ["GeForce RTX 4090", "GeForce GTX 1080 Ti"], "cuda-12"),
        ("581.15", ["GeForce RTX 3060", "GeForce GTX 970"], "cuda-13"),
        ("566.36", ["GeForce GTX 970", "GeForce RTX 3060"], "cuda-12"),
        ("581.15", ["GeForce RTX 5090", "GeForce RTX 3090"], "cuda-13"),
        ("no driver", ["GeForce RTX 3090"], ""),
    ],
)
def test_release_by_driver_and_card(driver: str, cards: list[str], taken: str) -> None:
    gpus = pc(driver, *cards)
    best = best_cuda(on("windows-x64"), gpus)
    assert (best.name if best is not None else "") == taken
    if best is not None:
        assert obstacle(best, gpus) == ""


@pytest.mark.parametrize(
    ("driver", "card", "words"),
    [
        ("566.36", "GeForce GTX 970", "GeForce GTX 970 is too old for CUDA 12, which begins with GeForce GTX 10."),
        ("700.10", "GeForce RTX 9090", "GeForce RTX 9090 is newer than this engine. The Vulkan engine uses it"),
        ("516.94", "GeForce RTX 3090", "Your graphics driver is version 516.94. The engine needs 528.33 or newer"),
        ("31.0.15.1694", "GeForce RTX 3090", "Your graphics driver is version 516.94. The engine needs 528.33"),
    ],
)
def test_a_pc_without_a_fitting_release_sees_one_pack_with_the_reason(driver: str, card: str, words: str) -> None:
    """LM Studio's CUDA engine took a GTX 980M and died of a missing kernel image (lmstudio-bug-tracker#414)."""
    gpus = pc(driver, card)
    (shown,) = packs_for([PackState(pack) for pack in on("windows-x64")], gpus)
    assert words in obstacle(shown.pack, gpus)


def test_the_installed_release_stays_after_a_driver_update() -> None:
    states = [PackState(pack, is_installed=pack.name == "cuda-12") for pack in on("windows-x64")]
    assert [state.pack.name for state in packs_for(states, pc("581.15", "GeForce RTX 3090"))] == ["cuda-12"]


def test_cards_that_tell_no_capability_are_left_to_the_user() -> None:
    unknown = (GpuReading(name="RTX 3090", vendor="nvidia", driver="581.15"),)
    packs = on("windows-x64")
    assert best_cuda(packs, unknown) is None
    assert len(packs_for([PackState(pack) for pack in packs], unknown)) == 2


def test_new_cards_are_compiled_for_by_the_driver() -> None:
    cuda_12, cuda_13 = on("windows-x64")
    assert is_compiled_by_driver(cuda_13, pc("595.97", "GeForce RTX 5090"))
    assert not is_compiled_by_driver(cuda_12, pc("551.61", "GeForce RTX 4090"))


@pytest.mark.parametrize(
    ("driver", "taken"), [("525.60.13", "cuda-12"), ("570.86", "cuda-12"), ("580.65.06", "cuda-13"), ("470.256", "")]
)
def test_release_by_driver_on_linux(driver: str, taken: str) -> None:
    best = best_cuda(on("linux-x64"), pc(driver, "GeForce RTX 3090"))
    assert (best.name if best is not None else "") == taken
