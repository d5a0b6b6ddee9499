"""Which quant of a model, and which model, this PC should run. Pure rules over catalog facts and fit labels."""

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from qwendesk.core.plan import SpeedEstimate
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import CatalogFile, Model, Note, Quality, Repository
from qwendesk.services.models.fitting import FitLabel, Pc

Reason = Literal["best_in_vram", "good_with_experts_in_ram", "good_on_cpu", "smaller_to_fit", "partly_in_ram"]
"""Why this quant: the best that lies in video memory with a long context; the best where experts may lie in RAM
without costing more speed than need be; the best that the CPU can hold; only a smaller one fits; nothing fits whole."""

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
"""Quants worth recommending. Where both are measured on files offered now, the order is that of the numbers in the
catalog; elsewhere more bits are better."""
_LOW = frozenset({"UD-IQ3_S", "UD-IQ3_XXS", "UD-Q2_K_XL", "UD-IQ2_M"})
"""Too coarse to prefer over a better one that runs with experts in RAM."""
_LARGEST_IN_RAM = "Q4_K_M"
"""With weights in RAM speed follows size, so nothing larger is recommended there."""
_LONG, _ENOUGH = 65_536, 32_768
_HEROES: Final = ("Qwen3.5-35B-A3B", "Qwen3.5-9B", "Qwen3.5-4B", "Qwen3.5-2B", "Qwen3.5-0.8B")
"""What is recommended, best first. The 3.5 mixture comes before its 3.6 successor as long as only its files have
measured quality in the catalog."""
_QUICK: Final = ("Qwen3.5-2B", "Qwen3.5-0.8B")
_SPLIT = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)", re.IGNORECASE)


class QuantOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One file (or split set) that can be had, and what is known of it."""

    repo: str
    path: str
    quant: str
    n_bytes: int
    """All parts, without the picture file."""
    is_exact: bool
    fit: FitLabel
    quality: tuple[Quality, ...] = ()
    notes: tuple[Note, ...] = ()
    speed: SpeedEstimate | None = None
    """What the planner expects; None where it cannot tell."""
    flag: str = ""
    """Why it must not be recommended; "" for a file that may be."""

    @property
    def file_name(self) -> str:
        """Without the numbers of parts."""
        return _SPLIT.sub("", self.path.rpartition("/")[2])


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One model for this PC."""

    model: Model
    quants: tuple[QuantOffer, ...]
    recommended: QuantOffer | None
    """None when nothing of it fits."""
    reason: Reason | None = None
    mmproj_path: str = ""
    mmproj_bytes: int = 0
    """0 without pictures."""
    is_hero: bool = False

    @property
    def id(self) -> str:
        return self.model.id

    def total_bytes(self, quant: QuantOffer) -> int:
        """What a download brings, the picture file included."""
        return quant.n_bytes + self.mmproj_bytes


def flag_of(catalog: Catalog, repository: Repository, file: CatalogFile) -> str:
    """Why this file must not be recommended, in a sentence; "" if nothing speaks against it."""
    if catalog.deletion(repository.repo, file.path, file.sha256) is not None:
        return "Its uploader took it back."
    if file.sha256 and catalog.superseded(file.sha256) is not None:
        return "It has been replaced by its uploader."
    cut_off = catalog.cut_off(repository.repo)
    fixed = (cut_off.final_after or cut_off.fixed_after) if cut_off is not None else ""
    if fixed and (file.seen or repository.seen) < fixed[:10]:
        return "It was uploaded before the repaired files."
    for note in catalog.notes(repository.model, repository.uploader, file.quant):
        if note.instead:
            return note.text
    return ""


def choose_quant(quants: Sequence[QuantOffer]) -> tuple[QuantOffer | None, Reason | None]:
    """The quant to recommend, and why; never a flagged one. (None, None) when nothing fits."""
    by_name = {each.quant: each for each in quants if not each.flag and each.fit.fits}
    good = [by_name[name] for name in _BEST_FIRST if name in by_name]
    for context in (_LONG, _ENOUGH):
        whole = [each for each in good if each.fit.kind == "vram" and each.fit.n_ctx >= context]
        if whole and whole[0].quant not in _LOW:
            return whole[0], "best_in_vram"
    small = [each for each in good if _BEST_FIRST.index(each.quant) >= _BEST_FIRST.index(_LARGEST_IN_RAM)]
    spread = [each for each in small if each.fit.kind == "experts" and each.fit.n_ctx >= _ENOUGH]
    if spread and spread[0].quant not in _LOW:
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
    """The id of the one model to recommend; "" when none fits."""
    by_id = {offer.id: offer for offer in offers if offer.recommended is not None}
    for name in _HEROES:
        offer = by_id.get(name)
        if offer is None or offer.recommended is None:
            continue
        # A dense model that does not lie on the GPU whole is slower than the next smaller one that does.
        is_slow = offer.recommended.fit.kind in ("layers", "cpu") and not offer.model.hyperparameters.expert_count
        is_coarse = offer.recommended.quant in _LOW and offer.recommended.fit.kind != "vram"
        smaller = [each for each in _HEROES[_HEROES.index(name) + 1 :] if each in by_id]
        if (is_slow and offer.model.params_b > 5 and smaller) or (is_coarse and _runs_whole(by_id, smaller)):
            continue
        return name
    return next(iter(by_id), "")


def choose_quick(offers: Sequence[Offer], hero: str) -> Offer | None:
    """The small model to chat with within a minute, at a quant that is soon here; None when the hero is as small."""
    if hero in _QUICK:
        return None
    by_id = {offer.id: offer for offer in offers}
    for name in _QUICK:
        offer = by_id.get(name)
        good = [each for each in offer.quants if not each.flag and each.fit.fits] if offer is not None else []
        soon = next((each for each in good if each.quant == _LARGEST_IN_RAM), None)
        if offer is not None and soon is not None:
            return msgspec.structs.replace(offer, recommended=soon)
    return None


def order(offers: Sequence[Offer], hero: str) -> tuple[Offer, ...]:
    """The hero, then what fits by how fast it runs, then what is too large; larger models first."""
    ranks = {"vram": 0, "experts": 1, "cpu": 2, "layers": 2, "too_large": 3, "unknown": 3}

    def key(offer: Offer) -> tuple[bool, int, float, str]:
        kind = offer.recommended.fit.kind if offer.recommended is not None else "too_large"
        return offer.id != hero, ranks[kind], -offer.model.params_b, offer.id

    return tuple(sorted(offers, key=key))


def _runs_whole(by_id: dict[str, Offer], names: Sequence[str]) -> bool:
    found = (by_id[name].recommended for name in names)
    return any(quant is not None and quant.fit.kind == "vram" and quant.quant not in _LOW for quant in found)


class Speed(msgspec.Struct, frozen=True):
    """Tokens per second that people reported for such a plan. Not measured on this PC."""

    start: tuple[int, int]
    """In an empty chat, from and to."""
    long: tuple[int, int] | None
    """In long chats."""
    source: str
    is_reported: bool = True
    """False: worked out from memory bandwidth, not seen by anybody."""


_REPORTS = "Community reports for 35B-A3B on such PCs"


_ESTIMATE = "Estimated from memory bandwidth and the bytes each token reads"


def expected_speed(model: Model, quant: QuantOffer, pc: Pc) -> Speed | None:
    """What reports say of such a PC; else the planner's estimate; None where neither knows."""
    found = _reported(model, quant.fit, pc)
    if found is not None or quant.speed is None:
        return found
    start, long = (_whole(each) for each in (quant.speed.start, quant.speed.long))
    return Speed(start, long, _ESTIMATE, is_reported=False)


def _whole(pair: tuple[float, float]) -> tuple[int, int]:
    return max(round(pair[0]), 1), max(round(pair[1]), 1)


def _reported(model: Model, fit: FitLabel, pc: Pc) -> Speed | None:
    if model.id != "Qwen3.5-35B-A3B":
        return None
    vram_gb = pc.vram_bytes / 2**30
    if fit.kind == "vram" and 23 <= vram_gb < 30:
        return Speed((94, 111), (55, 80), _REPORTS)
    if fit.kind == "vram" and vram_gb >= 30:
        return Speed((116, 185), (97, 97), _REPORTS)
    if fit.kind == "experts" and 15 <= vram_gb < 23:
        return Speed((51, 70), (32, 32), _REPORTS)
    if fit.kind == "cpu":
        return Speed((5, 6), None, f"{_REPORTS} (CPU only, DDR5)")
    return None
