"""What each purpose recommends on the PCs of docs/measurements.md, and rules that hold on any PC."""

import functools

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.everyday_units import FAST_LEVEL, speed_level
from qwendesk.core.plan import DriveKind
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.models.fit import Pc, estimate_plan
from qwendesk.models.offers import make_choices, make_offers
from qwendesk.models.purposes import (
    PURPOSES,
    REASONING,
    SLOWEST_TOK_S,
    Choice,
    Purpose,
)
from qwendesk.models.ranking import BEST_FIRST, COARSE, Offer
from qwendesk.models.view.offer_texts import table_text
from tests.models.advice import ADVICE, AdvicePc, AdviceRow, pc_of

PURPOSE_ROWS = [row for row in ADVICE.rows if row.purpose != "plan"]
PLAN_ROWS = [row for row in ADVICE.rows if row.purpose == "plan"]
MODELS = {row.model for row in ADVICE.rows} | {"Qwen3.5-27B", "Qwen3.5-9B", "Qwen3.5-4B", "Qwen3.5-2B", "Qwen3.5-0.8B"}


@functools.cache
def catalog() -> Catalog:
    """The catalog without what can't be the first choice, so that planning is quick."""
    contents = load_catalog().contents
    models = tuple(each for each in contents.models if each.id in MODELS)
    repositories = tuple(
        msgspec.structs.replace(
            each, files=tuple(file for file in each.files if file.kind == "mmproj" or file.quant in BEST_FIRST)
        )
        for each in contents.repositories
        if each.uploader in ("unsloth", "ISTA-DASLab")
    )
    return Catalog(msgspec.structs.replace(contents, models=models, repositories=repositories))


@functools.lru_cache(maxsize=64)
def offers_on(pc: Pc, *, with_pictures: bool = True) -> tuple[Offer, ...]:
    return make_offers(catalog(), pc, with_pictures=with_pictures)


def choices_on(pc: Pc, purpose: Purpose, *, with_pictures: bool = True) -> tuple[Choice, ...]:
    return make_choices(purpose, offers_on(pc, with_pictures=with_pictures), catalog(), pc)


def one_card(gib: float, ram_gib: int, name: str = "RTX 3090") -> Pc:
    n_bytes = int(gib * GIB)
    return Pc(gpus=(DeviceInfo("CUDA0", name, "gpu", "CUDA", n_bytes, n_bytes),), ram_bytes=ram_gib * GIB)


def named(row: AdviceRow) -> str:
    return f"{row.pc}, {row.purpose}"


def assert_like_row(choice: Choice, row: AdviceRow, pc: Pc) -> None:
    offer, quant = choice.offer, choice.quant
    plan = estimate_plan(offer.model, quant.n_bytes, quant.mmproj_bytes, pc, choice.options)
    assert plan is not None
    assert (offer.id, quant.quant, plan.options.n_ctx) == (row.model, row.quant, row.n_ctx)
    assert abs(plan.memory.cpu_expert_layers - row.n_cpu_moe) <= 1
    if row.split:
        shares = plan.options.tensor_split
        assert len(shares) == len(row.split)
        assert all(abs(100 * share / sum(shares) - part) <= 5 for share, part in zip(shares, row.split, strict=True))


@pytest.mark.parametrize("row", PURPOSE_ROWS, ids=named)
def test_the_first_choice_is_the_expected_one(row: AdviceRow) -> None:
    pc = next(pc_of(pc) for pc in ADVICE.pcs if pc.name == row.pc)
    purpose = next(each for each in PURPOSES if each == row.purpose)

    assert_like_row(choices_on(pc, purpose)[0], row, pc)


@pytest.mark.parametrize("row", PLAN_ROWS, ids=named)
def test_a_file_is_planned_as_expected(row: AdviceRow) -> None:
    pc = next(pc_of(pc) for pc in ADVICE.pcs if pc.name == row.pc)
    offer = next(each for each in offers_on(pc) if each.id == row.model)
    quant = next(each for each in offer.quants if each.quant == row.quant)

    assert_like_row(Choice(purpose="fast", offer=offer, quant=quant), row, pc)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_choice_has_a_reason_and_a_drawback(purpose: Purpose) -> None:
    for pc in (one_card(16, 32), Pc(ram_bytes=32 * GIB)):
        for choice in choices_on(pc, purpose):
            assert choice.reason.endswith(".")
            assert choice.drawback.endswith(".")


@pytest.mark.parametrize("pc", [Pc(ram_bytes=24 * GIB), Pc(ram_bytes=8 * GIB), one_card(24, 64)])
def test_the_quick_choice_is_called_fast_only_where_its_speed_is(pc: Pc) -> None:
    """A slow one was recommended because it "answers fast", with "But: Slow" in the next line."""
    first = choices_on(pc, "fast")[0]
    is_fast = speed_level(first.quant.likely_tok_s) >= FAST_LEVEL

    assert ("fast" in first.reason) <= is_fast
    assert "Slow" not in first.drawback
    if not is_fast and not first.offer.is_mixture:
        assert first.reason == "The best that is quick enough to read along on this PC."


def test_the_published_results_order_the_deep_choices() -> None:
    good = [each for each in choices_on(one_card(24, 64), "deep") if each.suits and each.is_good]
    scores = [each.offer.score(REASONING) or 0 for each in good]
    assert scores == sorted(scores, reverse=True)
    assert all(each.quant.likely_tok_s >= SLOWEST_TOK_S for each in good)
    assert all(each.quant.quant not in COARSE for each in good if each.offer.model.params_b < 100)


def test_a_27b_in_4_bits_with_a_short_context_comes_before_3_bits() -> None:
    """27B on 16 GB: IQ4_XS with 8K and vision on the CPU, as collected advice says."""
    offer = next(each for each in offers_on(one_card(16, 32)) if each.id == "Qwen3.5-27B")
    (choice,) = make_choices("deep", [offer], catalog(), one_card(16, 32))
    assert choice.quant.quant == "IQ4_XS"
    assert choice.quant.fit.kind == "vram"
    assert choice.quant.fit.has_vision_on_cpu
    assert 8_192 <= choice.quant.fit.n_ctx <= 16_384
    assert "CPU" in choice.drawback


def test_flash_next_is_taken_in_4_bits_or_not_at_all() -> None:
    """3 bits would fit a CPU with 64 GB, and 24 GB beside 32: the 3.8-27B and 3.6-35B in 4 bits come first there."""
    for pc in (Pc(ram_bytes=64 * GIB), one_card(24, 32), one_card(24, 48)):
        assert all(each.offer.id != "Qwen3.8-Flash-Next" or not each.suits for each in choices_on(pc, "deep"))
    first = choices_on(one_card(24, 64), "deep")[0]
    assert (first.offer.id, first.quant.quant) == ("Qwen3.8-Flash-Next", "UD-IQ4_XS")
    assert first.quant.fit.lazy_bytes == pytest.approx(28.8e9, rel=1e-3)


@pytest.mark.parametrize(
    ("drive", "model", "said"),
    [
        ("ssd", "Qwen3.8-Flash-Next", "A table of 26.8 GB stays on the SSD."),
        ("", "Qwen3.8-Flash-Next", "A table of 26.8 GB stays on the drive, which should be an SSD."),
        ("hdd", "Qwen3.8-27B", ""),
    ],
)
def test_flash_next_needs_an_ssd(drive: DriveKind, model: str, said: str) -> None:
    first, *others = choices_on(msgspec.structs.replace(one_card(24, 64), drive=drive), "deep")
    assert (first.offer.id, table_text(first.quant.fit)) == (model, said)
    if drive == "hdd":
        flash = next(each for each in others if each.offer.id == "Qwen3.8-Flash-Next")
        assert "on a hard disk: too slow" in table_text(flash.quant.fit)


def test_much_ram_is_used_for_the_best_model_and_of_each_for_the_most_bits() -> None:
    """A better model in 4 bits comes before more bits: an RTX 5080 with 128 GB was told to take the 35B in Q8_0."""
    first, *others = choices_on(one_card(16, 128, "RTX 5080"), "quality")
    assert (first.offer.id, first.quant.quant) == ("Qwen3.8-Flash-Next", "UD-Q4_K_XL")
    small = next(each.quant for each in others if each.offer.id == "Qwen3.6-35B-A3B")
    assert (small.quant, small.fit.kind) == ("Q8_0", "experts")


@pytest.mark.parametrize(
    ("gib", "model"), [(64, "Qwen3.8-27B"), (96, "Qwen3.8-Flash-Next"), (128, "Qwen3.8-Flash-Next")]
)
def test_the_best_quality_is_that_of_the_best_published_result(gib: int, model: str) -> None:
    """A Mac with 48 GB was told to take 3.8-27B (89.2), and one with 64 GB the larger 3.5-122B (86.6)."""
    pc = AdvicePc(name="M4 Max", gpus=(), unified=gib, backend="metal", ram=0)
    first = choices_on(pc_of(pc), "quality")[0]
    assert first.offer.id == model
    assert first.quant.fit.fits


def test_a_card_too_small_for_a_full_context_puts_experts_in_ram() -> None:
    first = choices_on(one_card(12, 32), "long")[0]
    assert (first.offer.id, first.quant.fit.kind, first.quant.fit.n_ctx) == ("Qwen3.6-35B-A3B", "experts", 262_144)
    balanced = next(each for each in offers_on(one_card(12, 32)) if each.id == first.offer.id).recommended
    assert balanced is not None
    assert first.quant.fit.on_cpu > balanced.fit.on_cpu


@pytest.mark.parametrize("ram_gib", [16, 24])
def test_on_a_small_cpu_pc_a_long_context_is_for_a_model_that_understands_it(ram_gib: int) -> None:
    """Every small model has a long context there. The smallest would be the fastest to misread a book."""
    first, *others = choices_on(Pc(gpus=(), ram_bytes=ram_gib * GIB), "long")
    assert first.offer.id == "Qwen3.5-4B"
    assert first.quant.fit.n_ctx >= 131_072
    assert first.quant.likely_tok_s >= SLOWEST_TOK_S
    assert {"Qwen3.5-2B", "Qwen3.5-0.8B"} <= {each.offer.id for each in others}


def test_a_few_megabytes_of_ram_are_called_almost_none() -> None:
    drawbacks = [each.drawback for each in choices_on(Pc(gpus=(), ram_bytes=8 * GIB), "long")]
    assert "Leaves almost no RAM for other programs. Close them first." in drawbacks


def test_without_pictures_no_vision_file_is_counted() -> None:
    pc = one_card(24, 64)
    with_vision, without = (choices_on(pc, "long", with_pictures=each)[0] for each in (True, False))
    assert with_vision.quant.mmproj_bytes
    assert not without.quant.mmproj_bytes
    assert without.quant.n_bytes > with_vision.quant.n_bytes, "the room is used for a better quant"


def test_a_fast_model_names_a_better_one_that_is_slower() -> None:
    small, large = (choices_on(one_card(24, ram_gib), "fast")[0].drawback for ram_gib in (32, 64))
    assert "Qwen3.8-27B" in small
    assert "89.2 instead of 86.0" in small
    assert "Qwen3.8-Flash-Next" in large
    assert "91.7 instead of 86.0" in large
