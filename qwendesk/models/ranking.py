"""Chooses the quant of each model and the model to recommend. Pure rules over the catalog and fit labels."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from qwendesk.core.file_names import model_name
from qwendesk.core.plan import SpeedEstimate
from qwendesk.core.translation import tr
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import CatalogFile, CatalogModel, Note, Quality, Repository, SpeedReport
from qwendesk.models.expected_speed import ExpectedSpeed, expect_speed
from qwendesk.models.fit import FitLabel

Reason = Literal["best_in_vram", "good_with_experts_in_ram", "good_on_cpu", "smaller_to_fit", "partly_in_ram"]
"""Why a quant is recommended: it is the best in video memory with a long context; the best with experts in RAM; the
largest that is fast enough on the CPU; the best of the small ones that fit; or it runs partly from RAM."""

_BEST_FIRST: Final = (
    "Q8_0",
    "UD-Q6_K_XL",
    "Q6_K",
    "UD-Q5_K_XL",
    "Q5_K_M",
    "UD-Q5_K_M",
    "UD-Q4_K_XL",
    "Q4_K_M",
    "UD-Q4_K_M",
    "UD-Q4_K_L",
    "UD-IQ4_XS",
    "IQ4_XS",
    "Q3_K_M",
    "UD-Q3_K_M",
    "UD-Q3_K_XL",
    "UD-IQ3_S",
    "UD-IQ3_XXS",
    "UD-Q2_K_XL",
    "UD-IQ2_M",
)
"""Quants that may be recommended. The order follows the measurements in the catalog; without any, more bits are
better."""
_COARSE = frozenset({"UD-IQ3_S", "UD-IQ3_XXS", "UD-Q2_K_XL", "UD-IQ2_M"})
"""Quants of low quality: a better one with experts in RAM is preferred."""
_LARGEST_IN_RAM = "Q4_K_M"
"""The largest quant recommended with weights in RAM, where speed depends on size."""
_LONG_CONTEXT, _ENOUGH_CONTEXT = 65_536, 32_768
_HERO_MODELS: Final = ("Qwen3.5-35B-A3B", "Qwen3.5-9B", "Qwen3.5-4B", "Qwen3.5-2B", "Qwen3.5-0.8B")
"""Models that may be recommended, best first. Qwen3.5-35B-A3B comes before its 3.6 successor because the catalog has
measurements of its quality only."""
_LAST_RANK = 3
"""Rank of a model without a quant that fits."""
_QUICK_MODELS: Final = ("Qwen3.5-2B", "Qwen3.5-0.8B")


class QuantOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One model file or split model that can be downloaded."""

    repo: str
    path: str
    quant: str
    n_bytes: int
    """Of all shards, without the vision projector."""
    is_exact: bool
    fit: FitLabel
    quality: tuple[Quality, ...] = ()
    notes: tuple[Note, ...] = ()
    speed: SpeedEstimate | None = None
    """Expected by the planner; None if unknown."""
    reports: tuple[SpeedReport, ...] = ()
    """What users measured on PCs like this one."""
    doubtful: tuple[SpeedReport, ...] = ()
    """What they measured there with an old engine, or one that isn't named."""
    flag: str = ""
    """Why it must not be recommended; "" if it may be."""

    @property
    def expected(self) -> ExpectedSpeed | None:
        """The speed to expect on this PC, as users report or as the planner estimates; None if unknown."""
        return expect_speed(self.reports, self.speed)

    @property
    def file_name(self) -> str:
        """The file name without the shard number."""
        return f"{model_name(self.path)}.gguf"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One model for this PC."""

    model: CatalogModel
    quants: tuple[QuantOffer, ...]
    recommended: QuantOffer | None
    """None if no quant fits."""
    reason: Reason | None = None
    mmproj_path: str = ""
    mmproj_bytes: int = 0
    """0 without a vision projector."""
    is_hero: bool = False
    is_lighter: bool = False
    """The alternative to a recommended model that leaves little RAM."""

    @property
    def id(self) -> str:
        return self.model.id

    def total_bytes(self, quant: QuantOffer) -> int:
        """Return the size of the download, including the vision projector."""
        return quant.n_bytes + self.mmproj_bytes


def find_flag(catalog: Catalog, repository: Repository, file: CatalogFile) -> str:
    """Return why this file must not be recommended, in a sentence; "" if it may be."""
    if catalog.deletion(repository.repo, file.path, file.sha256) is not None:
        return tr("The uploader deleted this file.")
    if file.sha256 and catalog.superseded(file.sha256) is not None:
        return tr("The uploader has replaced this file.")
    cut_off = catalog.cut_off(repository.repo)
    fixed = (cut_off.final_after or cut_off.fixed_after) if cut_off is not None else ""
    if fixed and (file.seen or repository.seen) < fixed[:10]:
        return tr("This file was uploaded before the repaired versions.")
    for note in catalog.notes(repository.model, repository.uploader, file.quant):
        if note.instead:
            return tr(note.text)
    return ""


def choose_quant(quants: Sequence[QuantOffer]) -> tuple[QuantOffer | None, Reason | None]:
    """Return the quant to recommend, never a flagged one, and why; (None, None) if nothing fits."""
    by_name = {each.quant: each for each in quants if not each.flag and each.fit.fits}
    good = [by_name[name] for name in _BEST_FIRST if name in by_name]
    for context in (_LONG_CONTEXT, _ENOUGH_CONTEXT):
        whole = [each for each in good if each.fit.kind == "vram" and each.fit.n_ctx >= context]
        if whole and whole[0].quant not in _COARSE:
            return whole[0], "best_in_vram"
    small = [each for each in good if _BEST_FIRST.index(each.quant) >= _BEST_FIRST.index(_LARGEST_IN_RAM)]
    spread = [each for each in small if each.fit.kind == "experts" and each.fit.n_ctx >= _ENOUGH_CONTEXT]
    if spread and spread[0].quant not in _COARSE:
        return spread[0], "good_with_experts_in_ram"
    on_cpu = [each for each in small if each.fit.kind == "cpu"]
    if on_cpu and not any(each.fit.kind in ("vram", "experts") for each in good):
        return on_cpu[0], "good_on_cpu"
    for kind in ("vram", "experts"):
        rest = [each for each in good if each.fit.kind == kind]
        if rest:
            return rest[0], "smaller_to_fit"
    return (small[0], "partly_in_ram") if small else (None, None)


def choose_hero(offers: Sequence[Offer]) -> str:
    """Return the id of the model to recommend; "" if none fits."""
    by_id = {offer.id: offer for offer in offers if offer.recommended is not None}
    for name in _HERO_MODELS:
        offer = by_id.get(name)
        if offer is None or offer.recommended is None:
            continue
        # A dense model that is partly in RAM is slower than the next smaller one that fits in video memory.
        is_slow = offer.recommended.fit.kind in ("layers", "cpu") and not offer.model.hyperparameters.expert_count
        is_coarse = offer.recommended.quant in _COARSE and offer.recommended.fit.kind != "vram"
        # With a browser open, its load would be refused after a long download.
        is_crowded = offer.recommended.fit.kind == "experts" and offer.recommended.fit.is_tight
        smaller = [each for each in _HERO_MODELS[_HERO_MODELS.index(name) + 1 :] if each in by_id]
        if is_slow and offer.model.params_b > 5 and smaller:
            continue
        if (is_coarse or is_crowded) and _any_fits_well(by_id, smaller, offer.recommended.fit):
            continue
        return name
    return next(iter(by_id), "")


def choose_lighter(offers: Sequence[Offer], hero: str) -> str:
    """Return the id of a smaller model if the recommended one leaves little RAM; "" otherwise."""
    fits = {offer.id: offer.recommended.fit for offer in offers if offer.recommended is not None}
    if hero not in fits or not fits[hero].is_tight:
        return ""
    smaller = [name for name in _HERO_MODELS[_HERO_MODELS.index(hero) + 1 :] if name in fits]
    light = (name for name in smaller if not fits[name].is_tight)
    return next(light, smaller[0] if smaller else "")


def choose_quick(offers: Sequence[Offer], hero: str) -> Offer | None:
    """Return the small model that is downloaded within a minute; None if the recommended one is as small."""
    if hero in _QUICK_MODELS:
        return None
    by_id = {offer.id: offer for offer in offers}
    for name in _QUICK_MODELS:
        offer = by_id.get(name)
        good = [each for each in offer.quants if not each.flag and each.fit.fits] if offer is not None else []
        soon = next((each for each in good if each.quant == _LARGEST_IN_RAM), None)
        if offer is not None and soon is not None:
            return msgspec.structs.replace(offer, recommended=soon)
    return None


def sort_offers(offers: Sequence[Offer], hero: str) -> tuple[Offer, ...]:
    """Sort offers: the hero, its lighter alternative, the others by speed class and size, and the too large ones."""

    def key(offer: Offer) -> tuple[bool, bool, int, float, str]:
        rank = offer.recommended.fit.rank if offer.recommended is not None else _LAST_RANK
        return offer.id != hero, not offer.is_lighter, rank, -offer.model.params_b, offer.id

    return tuple(sorted(offers, key=key))


def _any_fits_well(by_id: dict[str, Offer], names: Sequence[str], instead_of: FitLabel) -> bool:
    """Return whether a good quant of these models is in video memory, or in RAM as `instead_of` is."""
    found = (by_id[name].recommended for name in names)
    kinds = {"vram", "cpu"} if instead_of.kind == "cpu" else {"vram"}
    return any(quant is not None and quant.fit.kind in kinds and quant.quant not in _COARSE for quant in found)
