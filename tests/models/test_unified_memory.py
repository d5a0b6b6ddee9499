"""What PCs are told whose GPU uses the RAM."""

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.hardware.planner import best_plan
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hub.catalog import load_catalog
from qwendesk.models.fit import (
    FitKind,
    FitLabel,
    Pc,
    estimate_mmproj,
    estimate_model,
    fit_label,
    machine_memory,
    make_pc,
    plan_fit,
)
from qwendesk.models.offers import Offers
from qwendesk.models.view.for_this_pc import status_text
from qwendesk.models.view.offer_texts import fit_details, fit_place, fit_text, fit_word, pc_text, short_pc_text

CPU = DeviceInfo("CPU", "A CPU", "cpu", "CPU")
STRIX_HALO = DeviceInfo("Vulkan0", "Radeon 8060S Graphics", "igpu", "Vulkan", 124 * GIB, 120 * GIB)
SPARK = DeviceInfo("CUDA0", "NVIDIA GB10", "igpu", "CUDA", 120 * GIB, 110 * GIB)
MAC = DeviceInfo("MTL0", "Apple M4 Pro", "gpu", "MTL", 36 * GIB, 36 * GIB)


def fit_of(pc: Pc, model: str = "Qwen3.5-35B-A3B", gb: float = 22.0) -> FitLabel:
    found = load_catalog().model(model)
    assert found is not None
    return plan_fit(estimate_model(found, int(gb * 1e9)), estimate_mmproj(GIB), pc)[0]


def test_their_gpus_are_used_and_named() -> None:
    halo, spark, mac = (
        make_pc((gpu, CPU), ram * GIB, GIB) for gpu, ram in ((STRIX_HALO, 128), (SPARK, 120), (MAC, 48))
    )

    assert all(pc.is_unified for pc in (halo, spark, mac))
    assert pc_text(halo) == "Radeon 8060S Graphics, 128 GB of memory for GPU and CPU"
    assert pc_text(spark) == "GB10, 120 GB of memory for GPU and CPU"
    assert short_pc_text(mac) == "Apple M4 Pro with 48 GB of memory for GPU and CPU, 36 GB of it for the GPU"
    assert "GPU" not in status_text(Offers(state="ready", pc=halo))


def test_room_is_counted_once() -> None:
    pc = make_pc((STRIX_HALO, CPU), 128 * GIB, GIB)
    assert pc.room_bytes == pc.ram_room_bytes == 123 * GIB
    assert 122 * GIB < pc.vram_room_bytes < pc.room_bytes

    reading = GpuReading(name="Radeon 8060S Graphics", vendor="amd", total_bytes=96 * GIB)
    pc = make_pc((STRIX_HALO, CPU), 32 * GIB, GIB, readings=(reading,))
    assert pc.room_bytes == (96 + 27) * GIB
    assert pc.shared_bytes == 128 * GIB


def test_a_large_model_is_not_too_large_for_them() -> None:
    fit = fit_of(make_pc((STRIX_HALO, CPU), 128 * GIB, GIB), "Qwen3.5-122B-A10B", 76.5)

    assert fit.kind == "vram"
    assert fit_word(fit) == ("Fits in memory", "good")
    assert fit_text(fit)[0].startswith("Fits in shared memory with vision: ")
    assert "GPU: " in fit_details(fit)
    assert "Video memory" not in fit_details(fit)
    assert fit_of(make_pc((MAC, CPU), 48 * GIB, GIB), "Qwen3.5-122B-A10B", 76.5).kind == "too_large"


def test_a_model_that_leaves_little_memory_is_a_tight_fit() -> None:
    pc = make_pc((STRIX_HALO, CPU), 32 * GIB, GIB)
    fit = fit_of(pc, gb=25.0)

    assert fit.is_tight
    assert fit_word(fit) == ("Tight in memory", "warn")
    assert fit_text(fit)[0].startswith("Tight: leaves ")


@pytest.mark.parametrize("kind", ["vram", "cpu"])
def test_a_fit_says_its_room_in_pages_and_one_without_memory_to_spare_what_would_happen(kind: FitKind) -> None:
    fit = FitLabel(kind=kind, n_ctx=65_536, ram_bytes=8 * GIB, ram_room_bytes=16 * GIB, is_unified=kind == "vram")
    full = msgspec.structs.replace(fit, ram_room_bytes=8 * GIB, comfortable_ram_bytes=GIB)

    assert fit_text(fit)[0].endswith("with room for 160 pages")
    assert fit_text(full) == ("Too tight: would fill your memory", "warn")
    assert fit_place(full) == ("Tight", "nothing left", "warn")


@pytest.mark.parametrize("pc", [
    make_pc((STRIX_HALO, CPU), 128 * GIB, GIB), make_pc((STRIX_HALO, CPU), 32 * GIB, GIB),
    make_pc((MAC, CPU), 48 * GIB, GIB), make_pc((MAC, CPU), 24 * GIB, GIB),
])  # fmt: skip
def test_the_short_search_finds_what_the_planner_finds(pc: Pc) -> None:
    model = load_catalog().model("Qwen3.5-35B-A3B")
    assert model is not None
    for gb in (12.0, 17.0, 22.0, 25.75, 27.0, 37.0):
        facts, mmproj = estimate_model(model, int(gb * 1e9)), estimate_mmproj(GIB)
        plan = best_plan(facts, mmproj, machine_memory(pc), LoadOptions(model=""))
        if plan.fits:
            assert plan_fit(facts, mmproj, pc)[0] == fit_label(plan, facts.block_count, pc, with_pictures=True)
        else:
            assert plan_fit(facts, mmproj, pc)[0].kind == "too_large"
