"""What a PC is told to run: by the catalog that ships, on PCs of many sizes."""

import asyncio
import threading
from collections.abc import Callable

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DriveKind, MachineMemory
from qwendesk.core.units import GIB
from qwendesk.engine.load_failures import describe_exit
from qwendesk.engines.measurements import Measurements
from qwendesk.hardware.planner import best_plan
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.catalog_schema import WithdrawnFile
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.models import offers as offers_module
from qwendesk.models.catalog_service import CatalogService
from qwendesk.models.fit import Pc, estimate_fit, estimate_mmproj, estimate_model, fit_label, machine_memory, make_pc
from qwendesk.models.offers import Offers, OffersService, make_offers, unused_gpus
from qwendesk.models.ranking import Offer
from qwendesk.models.view.offer_texts import short_pc_text
from qwendesk.settings.service import SettingsService
from tests.models.library import never_connected
from tests.service_desk import Desk


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def gpu(total_gb: float, name: str = "CUDA0") -> DeviceInfo:
    return DeviceInfo(name, "A card", "gpu", "CUDA", int(total_gb * GIB), None)


def a_pc(vram_gb: float, ram_gb: float) -> Pc:
    return Pc(gpus=(gpu(vram_gb),) if vram_gb else (), ram_bytes=int(ram_gb * GIB))


def hero_of(catalog: Catalog, pc: Pc, *, with_pictures: bool = True) -> Offer:
    offers = make_offers(catalog, pc, with_pictures=with_pictures)
    (hero,) = (offer for offer in offers if offer.is_hero)
    assert hero is offers[0]
    return hero


@pytest.mark.parametrize(
    ("vram_gb", "ram_gb", "model", "quant", "kind"),
    [
        (24, 64, "Qwen3.6-35B-A3B", "UD-IQ4_XS", "vram"),
        (32, 64, "Qwen3.6-35B-A3B", "UD-Q6_K", "vram"),
        (48, 64, "Qwen3.6-35B-A3B", "Q8_0", "vram"),
        (16, 32, "Qwen3.6-35B-A3B", "UD-Q4_K_M", "experts"),
        (12, 32, "Qwen3.6-35B-A3B", "UD-Q4_K_M", "experts"),
        (8, 32, "Qwen3.6-35B-A3B", "UD-Q4_K_M", "experts"),
        (16, 16, "Qwen3.6-35B-A3B", "UD-IQ4_XS", "experts"),
        (12, 16, "Qwen3.5-35B-A3B", "Q3_K_M", "experts"),
        (8, 16, "Qwen3.5-9B", "Q4_K_M", "vram"),
        (0, 32, "Qwen3.6-35B-A3B", "UD-Q4_K_M", "cpu"),
        (0, 27, "Qwen3.6-35B-A3B", "UD-IQ4_XS", "cpu"),
        (0, 24, "Qwen3.5-4B", "Q4_K_M", "cpu"),
        (0, 23.4, "Qwen3.5-4B", "Q4_K_M", "cpu"),
        (0, 16, "Qwen3.5-4B", "Q4_K_M", "cpu"),
        (0, 8, "Qwen3.5-2B", "Q4_K_M", "cpu"),
    ],
)
def test_recommended_model_and_quant(
    catalog: Catalog, vram_gb: float, ram_gb: float, model: str, quant: str, kind: str
) -> None:
    hero = hero_of(catalog, a_pc(vram_gb, ram_gb))
    assert hero.recommended is not None
    assert (hero.id, hero.recommended.quant, hero.recommended.fit.kind) == (model, quant, kind)


@pytest.mark.parametrize("ram_gb", [6, 8, 12, 16, 24, 32, 64])
def test_a_recommendation_on_the_cpu_leaves_room_for_other_programs(catalog: Catalog, ram_gb: float) -> None:
    hero = hero_of(catalog, a_pc(0, ram_gb))
    assert hero.recommended is not None
    assert not hero.recommended.fit.is_tight


@pytest.mark.parametrize(("vram_gb", "ram_gb"), [(12, 15.7), (0, 7.7)])
def test_recommended_model_loads_while_a_browser_is_open(catalog: Catalog, vram_gb: float, ram_gb: float) -> None:
    """Nothing is worse than a download of 17 GB whose load is refused."""
    pc = a_pc(vram_gb, ram_gb)
    hero = hero_of(catalog, pc)
    assert hero.recommended is not None
    facts = estimate_model(hero.model, hero.recommended.n_bytes)
    in_use = MachineMemory(
        devices=tuple(msgspec.structs.replace(gpu, free_bytes=int((vram_gb - 1.2) * GIB)) for gpu in pc.gpus),
        ram_total_bytes=pc.ram_bytes,
        ram_available_bytes=int(ram_gb / 2 * GIB),
        reserve_bytes=GIB,
    )

    assert best_plan(facts, estimate_mmproj(hero.recommended.mmproj_bytes), in_use, LoadOptions(model="")).fits


def card(name: str, gib: float, backend: str = "CUDA") -> DeviceInfo:
    return DeviceInfo(f"{backend}0", name, "gpu", backend, int(gib * GIB), None)


RTX_3090, RTX_5090 = card("NVIDIA GeForce RTX 3090", 23.7), card("NVIDIA GeForce RTX 5090", 31.8)
TWO_3090 = RTX_3090, msgspec.structs.replace(RTX_3090, name="CUDA1")


def test_two_cards_have_the_memory_that_is_printed_on_their_boxes() -> None:
    assert "with 48 GB ·" in short_pc_text(Pc(gpus=TWO_3090, ram_bytes=64 * GIB))


def test_fit_includes_the_mmproj_and_the_reserve(catalog: Catalog) -> None:
    with_pictures = hero_of(catalog, a_pc(24, 64))
    without = hero_of(catalog, a_pc(24, 64), with_pictures=False)
    assert with_pictures.recommended is not None
    fit = with_pictures.recommended.fit
    assert fit.gpu_room_bytes == 23 * GIB
    assert fit.gpu_bytes <= fit.gpu_room_bytes
    plain = next(each for each in without.quants if each.quant == with_pictures.recommended.quant)
    assert fit.with_pictures
    assert not plain.fit.with_pictures
    assert with_pictures.recommended.total_bytes - with_pictures.recommended.mmproj_bytes == plain.total_bytes
    assert with_pictures.recommended.mmproj_bytes > GIB // 2
    assert with_pictures.has_pictures
    assert not without.has_pictures


def test_expert_layers_on_the_cpu_match_reported_numbers(catalog: Catalog) -> None:
    """About 36, 28 and 19 of 40 for 8, 12 and 16 GB cards, with pictures (shared facts of the project)."""
    model = catalog.model("Qwen3.5-35B-A3B")
    assert model is not None
    for vram_gb, layers in ((8, 36), (12, 28), (16, 19)):
        fit, _ = estimate_fit(model, 22_016_023_168, 899_283_648, a_pc(vram_gb, 32))
        assert fit.kind == "experts"
        assert abs(fit.on_cpu - layers) <= 2
        assert fit.of_layers == 40


def test_every_offer_matches_the_plan_of_a_load(catalog: Catalog) -> None:
    """The short way through the planner's steps ends where the planner ends."""
    mmproj_bytes = 899_283_648
    for model in catalog.models:
        for n_bytes, pc in ((6 * GIB, a_pc(8, 16)), (16 * GIB, a_pc(16, 32)), (20 * GIB, a_pc(0, 32))):
            fit, speed = estimate_fit(model, n_bytes, mmproj_bytes, pc)
            facts, pictures = estimate_model(model, n_bytes), estimate_mmproj(mmproj_bytes)
            plan = best_plan(facts, pictures, machine_memory(pc), LoadOptions(model=""))
            assert plan.fits == fit.fits
            if plan.fits:
                assert fit == fit_label(plan, facts.block_count, pc, with_pictures=True)
                assert speed == plan.speed


def test_offer_that_does_not_fit_says_how_much_it_needs(catalog: Catalog) -> None:
    model = catalog.model("Qwen3.5-122B-A10B")
    assert model is not None
    for pc in (a_pc(0, 32), a_pc(24, 32)):
        fit, speed = estimate_fit(model, 70 * GIB, 0, pc)
        assert (fit.kind, speed) == ("too_large", None)
        assert 70 * GIB < fit.ram_bytes < 75 * GIB, "with a GPU and without"


def test_a_flagged_file_is_listed_with_its_reason_and_never_recommended(catalog: Catalog) -> None:
    usual = hero_of(catalog, a_pc(24, 64)).recommended
    assert usual is not None
    deletion = WithdrawnFile(repo=usual.repo, path=usual.path, noticed="2026-03-12")
    changed = Catalog(msgspec.structs.replace(catalog.contents, deletions=(*catalog.contents.deletions, deletion)))
    hero = hero_of(changed, a_pc(24, 64))
    assert hero.recommended is not None
    assert hero.recommended.quant != usual.quant
    flagged = next(each for each in hero.quants if each.quant == usual.quant)
    assert "uploader deleted" in flagged.flag


def test_a_file_from_before_the_fix_is_not_recommended(catalog: Catalog) -> None:
    early = tuple(
        msgspec.structs.replace(each, seen="2026-02-26") if each.repo == "unsloth/Qwen3.5-35B-A3B-GGUF" else each
        for each in catalog.repositories
    )
    changed = Catalog(msgspec.structs.replace(catalog.contents, repositories=early))
    offers = make_offers(changed, a_pc(24, 64), with_pictures=True)
    offer = next(each for each in offers if each.id == "Qwen3.5-35B-A3B")
    assert offer.recommended is None
    assert not offer.is_hero


def test_a_quant_with_a_better_one_is_not_recommended_but_explained(catalog: Catalog) -> None:
    offers = make_offers(catalog, a_pc(24, 64), with_pictures=True)
    offer = next(each for each in offers if each.id == "Qwen3.5-35B-A3B")
    q4_k_s = next(each for each in offer.quants if each.quant == "Q4_K_S")
    assert "UD-Q4_K_L" in q4_k_s.flag
    best = next(each for each in offer.quants if each.quant == "UD-Q4_K_XL")
    assert not best.flag
    assert any("2026-02-27" in note.text for note in best.notes)


def test_a_gpu_that_hides_its_memory_does_not_count_nor_an_integrated_one_beside_a_card() -> None:
    shared = DeviceInfo("Vulkan0", "An integrated one", "igpu", "Vulkan", 16 * GIB, None)
    silent = DeviceInfo("CUDA1", "A silent one", "gpu", "CUDA", None, None)
    cpu = DeviceInfo("CPU", "A CPU", "cpu", "CPU")
    assert make_pc((cpu, silent), 32 * GIB, GIB).gpus == ()
    assert make_pc((cpu, shared), 32 * GIB, GIB).gpus == (shared,)
    assert make_pc((cpu, shared, gpu(24)), 32 * GIB, GIB).vram_room_bytes == 23 * GIB


def catalog_service(load: Callable[[], Catalog] = load_catalog) -> CatalogService:
    return CatalogService(CatalogStore(load), SettingsService(), never_connected)


async def make_service(desk: Desk, ram_gb: int = 32) -> OffersService:
    return OffersService(desk.engine, SettingsService(), catalog_service(), Measurements(), ram_bytes=ram_gb * GIB)


async def test_the_drive_of_the_models_folder_is_part_of_the_pc(desk: Desk) -> None:
    drives: list[DriveKind] = ["ssd", "hdd"]
    service = OffersService(
        desk.engine, SettingsService(), catalog_service(), Measurements(), drive=lambda: drives.pop(0)
    )
    try:
        assert (await service.update()).pc.drive == "ssd"
        planned = asyncio.Event()
        service.state.subscribe(lambda _offers: planned.set())
        service.plan_again()  # as after a change of the folder
        await planned.wait()
        assert service.state.value.pc.drive == "hdd"
    finally:
        await service.close()


async def test_drive_that_does_not_answer_delays_no_offers(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, asked = threading.Event(), []

    def dead_drive() -> DriveKind:
        asked.append(1)
        answer.wait(120)
        return "hdd"

    service = OffersService(desk.engine, SettingsService(), catalog_service(), Measurements(), drive=dead_drive)
    with monkeypatch.context() as patch:
        patch.setattr(offers_module, "_DRIVE_WAIT_S", 0.0)
        for _ in range(2):
            offers = await service.update()
            assert (offers.state, offers.pc.drive) == ("ready", "")
        assert len(asked) == 1, "one thread waits for it"

    answer.set()
    assert service._drive_query is not None
    service._drive_query.join()
    assert (await service.update()).pc.drive == "hdd"
    await service.close()


async def test_fresh_windows_without_microsofts_runtime_is_told_what_to_install(desk: Desk) -> None:
    """The ready engine of run.cmd asks for it; games bring it along, a new laptop lacks it."""
    said = (
        r"RuntimeError: Failed to load shared library 'C:\llama_cpp\lib\llama.dll': Could not find module "
        r"'C:\llama_cpp\lib\llama.dll' (or one of its dependencies).",
    )
    desk.client.start_result = EngineExit(1, describe_exit(1, said), said)
    offers = await (await make_service(desk)).update()

    assert "Microsoft's Visual C++ runtime from https://" in offers.pc.problem
    assert "exit code" not in offers.pc.problem


def test_a_model_that_the_first_uploader_lacks_is_offered_from_another(catalog: Catalog) -> None:
    model = "Qwen3.5-9B"
    rest = tuple(each for each in catalog.repositories if each.model != model or each.uploader != "unsloth")
    lacking = Catalog(msgspec.structs.replace(catalog.contents, repositories=rest))
    offers = {offer.id: offer for offer in make_offers(lacking, a_pc(24, 64), with_pictures=True)}
    assert {quant.repo for quant in offers[model].quants} == {"bartowski/Qwen_Qwen3.5-9B-GGUF"}
    assert offers[model].recommended is not None
    assert all(quant.repo.startswith("unsloth/") for quant in offers["Qwen3.5-4B"].quants)


UNSEEN_CARD = GpuReading(name="GeForce RTX 3090", vendor="nvidia", total_bytes=24 * GIB)
WITHOUT = Offers(state="ready", pc=Pc(ram_bytes=32 * GIB))


def seen(*gpus: GpuReading) -> Snapshot:
    return Snapshot(at_s=1.0, gpus=gpus)


def test_gpu_unknown_to_the_engine_is_named() -> None:
    radeon = GpuReading(vendor="amd", total_bytes=16 * GIB)

    assert unused_gpus(WITHOUT, seen(UNSEEN_CARD, radeon)) == ("GeForce RTX 3090", "amd")


@pytest.mark.parametrize(
    "gpu",
    [
        GpuReading(name="Radeon 780M", vendor="amd", unified=True, total_bytes=16 * GIB),
        GpuReading(name="GeForce GT 710", vendor="nvidia", total_bytes=GIB),
        GpuReading(name="Iris Xe", vendor="intel", total_bytes=8 * GIB),
    ],
)
def test_gpu_too_small_for_models_is_not_named(gpu: GpuReading) -> None:
    assert unused_gpus(WITHOUT, seen(gpu)) == ()


def test_unused_gpus_are_unknown_before_the_engine_answers() -> None:
    assert unused_gpus(WITHOUT, None) == ()
    assert unused_gpus(Offers(), seen(UNSEEN_CARD)) == ()
    broken = Offers(state="ready", pc=Pc(ram_bytes=GIB, is_probed=False, problem="It did not start."))
    assert unused_gpus(broken, seen(UNSEEN_CARD)) == ()
