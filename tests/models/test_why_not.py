"""Why another model isn't taken: the rule that decides comes first, and each sentence has the numbers of its rule."""

import re
from functools import cache

import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import load_catalog
from qwendesk.models.fit import Pc
from qwendesk.models.offers import make_choices, make_offers
from qwendesk.models.purposes import ORDERS, PURPOSES, Choice, Purpose
from qwendesk.models.ranking import Offer
from qwendesk.models.why_not import numbers_text, why_not

CATALOG = load_catalog()


def card(name: str, gib: int) -> DeviceInfo:
    return DeviceInfo("CUDA0", name, "gpu", "CUDA", gib * GIB, gib * GIB)


PCS = {
    "3090": Pc(gpus=(card("RTX 3090", 24),), ram_bytes=64 * GIB),
    "3060": Pc(gpus=(card("RTX 3060", 12),), ram_bytes=32 * GIB),
    "1650": Pc(gpus=(card("GTX 1650", 4),), ram_bytes=16 * GIB),
    "CPU": Pc(ram_bytes=16 * GIB),
    "CPU64": Pc(ram_bytes=64 * GIB),
    "5090": Pc(gpus=(card("RTX 5090", 32),), ram_bytes=64 * GIB),
}


@cache
def offers_on(pc: str) -> tuple[Offer, ...]:
    return make_offers(CATALOG, PCS[pc], with_pictures=True)


def ranked(pc: str, purpose: Purpose) -> tuple[Choice, ...]:
    return make_choices(purpose, offers_on(pc), CATALOG, PCS[pc])


def reasons(pc: str, purpose: Purpose, model: str) -> list[str]:
    return why_not(purpose, model, offers_on(pc), ranked(pc, purpose), PCS[pc])


@pytest.mark.parametrize(
    ("pc", "purpose", "model", "expected"),
    [
        ("3090", "fast", "Qwen3.8-27B", "the models for everyday use"),
        ("3090", "fast", "Qwen3.5-35B-A3B", "puts Qwen3.6-35B-A3B in place 1 and this one in place 2."),
        ("3090", "deep", "Qwen3.5-27B", "GPQA Diamond: 85.5, and Qwen3.8-Flash-Next has 91.7."),
        ("3090", "quality", "Qwen3.5-397B-A17B", "its smallest file, UD-IQ2_M, needs"),
        (
            "3060",
            "deep",
            "Qwen3.8-27B",
            "GSQ-RCO-IQ3_XXS-MTP fits with a context of 16K only, which thinking soon fills.",
        ),
        ("3060", "long", "Qwen3.5-0.8B", "No result of GPQA Diamond is published for it."),
        ("3060", "long", "Qwen3.6-27B", "No file of it but small quants is in video memory"),
        ("1650", "fast", "Qwen3.6-35B-A3B", "of the RAM and 3.0 GB of the video memory here"),
        ("CPU", "fast", "Qwen3.5-9B", "It would be all in RAM, which is slow for a dense model: about 4."),
        ("CPU", "deep", "Qwen3.6-35B-A3B", "and models may use 11.0 GB of this PC's."),
    ],
)
def test_what_decides_comes_first(pc: str, purpose: Purpose, model: str, expected: str) -> None:
    found = reasons(pc, purpose, model)
    assert expected in found[0], found


def test_a_slower_model_is_also_said_to_be_slower() -> None:
    second = reasons("3090", "fast", "Qwen3.8-27B")[1]
    assert second == "About 36 tok/s (reported), and Qwen3.6-35B-A3B makes about 118 tok/s (reported)."


@pytest.mark.parametrize("pc", ["3090", "3060", "1650", "CPU"])
@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_model_but_the_first_has_a_reason_with_its_own_numbers(pc: str, purpose: Purpose) -> None:
    choices = ranked(pc, purpose)
    for offer in offers_on(pc):
        found = reasons(pc, purpose, offer.id)
        assert bool(found) == (offer.id != choices[0].offer.id)
        assert all(text.endswith((".", "!")) for text in found)
        assert len(found) == len(set(found))
        assert not re.search(r"(?<!\d)0\.0", " ".join(found)), "a figure that isn't published is no zero"


@pytest.mark.parametrize("pc", ["3090", "3060", "1650", "CPU"])
@pytest.mark.parametrize("purpose", PURPOSES)
def test_no_rule_is_given_in_which_the_model_is_the_better_one(pc: str, purpose: Purpose) -> None:
    first, *others = ranked(pc, purpose)
    for choice in others:
        found = " ".join(reasons(pc, purpose, choice.offer.id))
        if choice.score > first.score:
            assert f"and {first.offer.id} has" not in found
        if choice.quant.likely_tok_s >= first.quant.likely_tok_s:
            assert f"and {first.offer.id} makes" not in found
        if choice.suits and all(value(choice) <= value(first) for value in ORDERS[purpose].values()):
            assert "everyday use" in found or "as good as" in found or "another model" in found or "smaller" in found


def test_the_numbers_say_what_the_speed_is_known_from() -> None:
    first = ranked("3090", "fast")[0]
    assert numbers_text(first) == "GPQA Diamond 86.0, about 118 tok/s (reported), context of 128K"


@pytest.mark.parametrize(
    ("pc", "place"),
    [("CPU64", "It fits in RAM."), ("3090", "This PC's RAM has room for the experts of"), ("5090", "layers.")],
)
def test_the_reason_for_best_quality_says_where_the_weights_are(pc: str, place: str) -> None:
    """It said of models on the CPU that they fit in video memory, and of others that they are mostly on the GPU."""
    first = ranked(pc, "quality")[0]
    assert place in first.reason
    assert "It fits in video memory." not in first.reason
    vram = next(each for each in ranked("3060", "quality") if each.quant.fit.kind == "vram" and each.suits)
    assert "It fits in video memory." in vram.reason
