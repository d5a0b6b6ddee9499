"""Which packs are for the cards of a PC, and what stands in the way."""

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.units import GIB, MIB
from qwendesk.engines import pack_fit
from qwendesk.engines.pack_fit import REGRESSIONS, known_regressions, obstacle, packs_for, unserved
from qwendesk.engines.packs import PackState
from qwendesk.hardware.snapshot import GpuReading

NVIDIA = GpuReading(name="RTX 3090", vendor="nvidia", driver="575.64", total_bytes=24 * GIB)
AMD = GpuReading(name="RX 7800 XT", vendor="amd", total_bytes=16 * GIB)
IRIS = GpuReading(name="Iris", vendor="intel", unified=True)


def pack(backend: str) -> EnginePack:
    return EnginePack(
        name=backend, title=backend, platform="linux-x64", package_version="1", backend=backend,  # type: ignore[arg-type]
        minimum_driver="525.60.13" if backend == "cuda" else "", archives=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gpus", "names"),
    [((NVIDIA,), ["cuda", "vulkan"]), ((AMD,), ["rocm", "vulkan"]), ((IRIS,), ["vulkan"]), ((), [])],
)
def test_packs_for_the_vendors_of_the_gpus_are_listed_best_first(
    gpus: tuple[GpuReading, ...], names: list[str]
) -> None:
    states = [PackState(pack(backend)) for backend in ("cpu", "vulkan", "rocm", "cuda")]
    assert [each.pack.name for each in packs_for(states, gpus)] == names


def test_too_old_driver_is_reported_before_the_download() -> None:
    old = GpuReading(name="RTX 3090", vendor="nvidia", driver="470.99")
    assert "470.99" in obstacle(pack("cuda"), (old,))
    windows = GpuReading(name="RTX 3090", vendor="nvidia", driver="31.0.15.2802")
    for gpus in ((NVIDIA,), (windows,), ()):
        assert obstacle(pack("cuda"), gpus) == ""
    assert obstacle(pack("cuda"), (AMD,)) == "This PC has no graphics card that it could use."


def test_gpu_is_unserved_only_if_the_engine_lists_none() -> None:
    cpu = DeviceInfo("CPU", "CPU", "cpu", "CPU")
    gpu = DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA")
    assert unserved((NVIDIA, IRIS), ()) == ()
    assert unserved((NVIDIA, IRIS), (cpu,)) == (NVIDIA,)
    assert unserved((NVIDIA,), (gpu, cpu)) == ()
    halo = GpuReading(name="AMD Strix Halo", vendor="amd", unified=True, total_bytes=512 * MIB)
    assert unserved((halo,), (cpu,)) == (halo,), "its memory is fast"
    assert unserved((halo,), (DeviceInfo("Vulkan0", "Radeon 8060S Graphics", "igpu", "Vulkan"), cpu)) == ()
    integrated = DeviceInfo("Vulkan0", "Iris", "igpu", "Vulkan")
    assert unserved((NVIDIA, IRIS), (integrated, cpu)) == (NVIDIA,), "a laptop whose card is switched off"


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("AMD Radeon RX 9070 XT", True),
        ("AMD Radeon RX 9060 XT", True),
        ("AMD Radeon(TM) AI PRO R9700", True),
        ("AMD Radeon RX 7900 XTX", False),
        ("AMD Radeon 890M", False),
    ],
)
def test_owner_of_rdna_4_is_told_of_slower_prompts(name: str, *, is_told: bool) -> None:
    """llama.cpp#29892."""
    gpus = (IRIS, GpuReading(name=name, vendor="amd"))
    said = known_regressions(gpus, "vulkan", 11312)
    assert ("never tried" in known_regressions(gpus, "vulkan", 11312, has_run_cmd=True)) == is_told
    assert (f"On {name}, the Vulkan engine reads prompts 12 to 31% slower" in said) == is_told
    assert known_regressions(gpus, "cpu", 11312) == known_regressions(gpus, "vulkan", 10780) == ""


def test_quantized_cache_on_rdna_4_is_told_from_the_build_on_that_made_it_slower() -> None:
    """llama.cpp#28752, with its builds."""
    gpus = (GpuReading(name="AMD Radeon RX 9070 XT", vendor="amd"),)
    said = known_regressions(gpus, "vulkan", 10956)
    assert said == (
        "With a KV cache in Q8_0, the Vulkan engine reads prompts on AMD Radeon RX 9070 XT up to 35% slower than "
        "before (llama.cpp issue 28752). F16 avoids that."
    )
    assert known_regressions(gpus, "vulkan", 11312).endswith(said)
    assert known_regressions(gpus, "vulkan", 10516) == ""
    assert known_regressions(gpus, "vulkan", 11312, has_run_cmd=True).count("AMD's own engine") == 1


def test_a_mended_regression_names_the_build_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mended = msgspec.structs.replace(REGRESSIONS[0], mended=11900)
    monkeypatch.setattr(pack_fit, "REGRESSIONS", (mended,))
    gpus = (GpuReading(name="AMD Radeon RX 9070 XT", vendor="amd"),)
    assert "b11900 mends it" in known_regressions(gpus, "vulkan", 11899)
    assert known_regressions(gpus, "vulkan", 11900) == ""


def test_each_regression_has_its_source() -> None:
    assert all("llama.cpp/issues/" in row.source for row in REGRESSIONS)
