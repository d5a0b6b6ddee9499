"""Chooses the model that is recommended before a purpose is chosen: the fast one. Pure rules over the offers."""

from collections.abc import Sequence
from typing import Final

import msgspec

from qwendesk.models.fit import FitLabel
from qwendesk.models.ranking import COARSE, LARGEST_IN_RAM, Offer, QuantOffer

_HERO_MODELS: Final = (
    "Qwen3.6-35B-A3B", "Qwen3.5-35B-A3B", "Qwen3.5-9B", "Qwen3.5-4B", "Qwen3.5-2B", "Qwen3.5-0.8B",
)  # fmt: skip
"""Models that may be recommended, best first. Qwen3.6-35B-A3B is as large and as fast as its predecessor and better in
every result that both publish (catalog, benchmarks); only the predecessor's quants have been measured."""
_LAST_RANK = 3
"""Rank of a model without a quant that fits."""
_QUICK_MODELS: Final = ("Qwen3.5-2B", "Qwen3.5-0.8B")


def choose_hero(offers: Sequence[Offer]) -> str:
    """Return the id of the model to recommend; "" if none fits."""
    by_id = {offer.id: offer for offer in offers if offer.recommended is not None}
    for name in _HERO_MODELS:
        offer = by_id.get(name)
        if offer is None or offer.recommended is None:
            continue
        fit = offer.recommended.fit
        smaller = [by_id[each] for each in _HERO_MODELS[_HERO_MODELS.index(name) + 1 :] if each in by_id]
        # A dense model that is partly in RAM is slower than the next smaller one that fits in video memory.
        is_slow = fit.kind in ("layers", "cpu") and not offer.is_mixture and offer.model.params_b > 5
        is_coarse = offer.recommended.quant in COARSE and fit.kind != "vram"
        if is_slow and smaller:
            continue
        # With a browser open, its load would be refused after a long download.
        if fit.is_tight and any(_is_roomy(each.recommended) for each in smaller):
            continue
        if is_coarse and any(_fits_well(each.recommended, fit) for each in smaller):
            continue
        return name
    return next(iter(by_id), "")


def choose_quick(offers: Sequence[Offer], hero: str) -> Offer | None:
    """Return the small model that is downloaded within a minute; None if the recommended one is as small."""
    if hero in _QUICK_MODELS:
        return None
    by_id = {offer.id: offer for offer in offers}
    for name in _QUICK_MODELS:
        offer = by_id.get(name)
        good = [each for each in offer.quants if not each.flag and each.fit.fits] if offer is not None else []
        soon = next((each for each in good if each.quant == LARGEST_IN_RAM), None)
        if offer is not None and soon is not None:
            return msgspec.structs.replace(offer, recommended=soon)
    return None


def sort_offers(offers: Sequence[Offer], hero: str) -> tuple[Offer, ...]:
    """Sort offers: the hero, the others by speed class and size, and the too large ones."""

    def key(offer: Offer) -> tuple[bool, int, float, str]:
        rank = offer.recommended.fit.rank if offer.recommended is not None else _LAST_RANK
        return offer.id != hero, rank, -offer.model.params_b, offer.id

    return tuple(sorted(offers, key=key))


def _is_roomy(quant: QuantOffer | None) -> bool:
    """Return whether a quant of usual quality leaves enough RAM for other programs."""
    return quant is not None and not quant.fit.is_tight and quant.quant not in COARSE


def _fits_well(quant: QuantOffer | None, instead_of: FitLabel) -> bool:
    """Return whether a quant of usual quality is in video memory, or in RAM as `instead_of` is."""
    kinds = {"vram", "cpu"} if instead_of.kind == "cpu" else {"vram"}
    return quant is not None and quant.fit.kind in kinds and quant.quant not in COARSE
