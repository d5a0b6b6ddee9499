"""Offers of models and their quants, and which quant of a model to take. Pure rules over the catalog and fit labels."""

import math
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from qwendesk.core.file_names import model_name
from qwendesk.core.plan import SpeedEstimate
from qwendesk.core.translation import tr
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import (
    Benchmark,
    CatalogFile,
    CatalogModel,
    Quality,
    QuantNote,
    Repository,
    SpeedReport,
)
from qwendesk.hub.gguf_types import program_for_quant
from qwendesk.models.expected_speed import ExpectedSpeed, expect_speed
from qwendesk.models.fit import LONG_CONTEXT, FitLabel

# Why a quant is recommended: it is the best in video memory with a long context; the best with experts in RAM; the
# largest that is fast enough on the CPU; the best of the small ones that fit; or it runs partly from RAM.
Reason = Literal["best_in_vram", "good_with_experts_in_ram", "good_on_cpu", "smaller_to_fit", "partly_in_ram"]

# Quants that may be recommended. The order follows the measurements in the catalog; without any, more bits are better.
# UD-Q3_K_XL and Q3_K_M were measured alike (6.692 and 6.683); users ran the first with a full context.
#
# GSQ-RCO of 27B stands by its maker's results in tasks: IQ3_S has 99.8% of the unquantized model's, IQ3_XXS 99% and
# more than UD-IQ3_S, which is larger, IQ2_S as much as UD-Q2_K_XL. An outsider had IQ3_S do better than UD-IQ3_S in two
# tasks; another found more tokens unlike the unquantized model's in IQ3_XXS than in UD-IQ3_XXS. The file with the MTP
# layer is the same with drafts, so it comes first.
BEST_FIRST: Final = (
    "Q8_0",
    "UD-Q6_K_XL",
    "Q6_K",
    "UD-Q6_K",
    "UD-Q5_K_XL",
    "Q5_K_M",
    "UD-Q5_K_M",
    "UD-Q4_K_XL",
    "Q4_K_M",
    "UD-Q4_K_M",
    "UD-Q4_K_L",
    "UD-IQ4_XS",
    "UD-IQ4_NL",
    "IQ4_XS",
    "GSQ-RCO-IQ3_S-MTP",
    "GSQ-RCO-IQ3_S",
    "UD-Q3_K_XL",
    "Q3_K_M",
    "UD-Q3_K_M",
    "GSQ-RCO-IQ3_XXS-MTP",
    "GSQ-RCO-IQ3_XXS",
    "UD-IQ3_S",
    "UD-IQ3_XXS",
    "GSQ-RCO-IQ2_S-MTP",
    "GSQ-RCO-IQ2_S",
    "UD-Q2_K_XL",
    "UD-IQ2_M",
)
# Quants of low quality: a better one with experts in RAM is preferred.
COARSE = frozenset({"UD-IQ3_S", "UD-IQ3_XXS", "GSQ-RCO-IQ2_S-MTP", "GSQ-RCO-IQ2_S", "UD-Q2_K_XL", "UD-IQ2_M"})
# Quants in 3 bits of usual quality, the best first. 4 bits are better for a dense model, even with a short context.
THREE_BITS: Final = BEST_FIRST[BEST_FIRST.index("GSQ-RCO-IQ3_S-MTP") : BEST_FIRST.index("UD-IQ3_S")]
# Those of them that their maker found as good in tasks as the unquantized model, all but exactly.
NEAR_LOSSLESS: Final = ("GSQ-RCO-IQ3_S-MTP", "GSQ-RCO-IQ3_S")
# The largest quant recommended with weights in RAM, where speed depends on size.
LARGEST_IN_RAM = "Q4_K_M"
# Taken in place of LARGEST_IN_RAM for a model that is offered in neither Q4_K_M nor UD-Q4_K_M, as Flash-Next is.
_LIKE_LARGEST = "UD-Q4_K_XL"
_ENOUGH_CONTEXT, _SHORT_CONTEXT = 32_768, 8_192
# What a quant of more than 4 bits must reach to be recommended: a slower one is given up for speed.
_FLUENT_TOK_S = 60.0
# What a dense model in 4 bits must reach with layers in RAM to be recommended rather than 3 bits in video memory.
FAST_IN_RAM_TOK_S = 15.0


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
    notes: tuple[QuantNote, ...] = ()
    speed: SpeedEstimate | None = None
    """Expected by the planner; None if unknown."""
    reports: tuple[SpeedReport, ...] = ()
    """Measurements of users on PCs like this one."""
    doubtful: tuple[SpeedReport, ...] = ()
    """Measurements there with an old engine, or one that isn't named."""
    flag: str = ""
    """Reason why it must not be recommended; "" if it may be."""
    mmproj_path: str = ""
    mmproj_bytes: int = 0
    """Of the vision projector that is downloaded with it; 0 without one."""

    @property
    def total_bytes(self) -> int:
        """The size of the download, including the vision projector."""
        return self.n_bytes + self.mmproj_bytes

    @property
    def expected(self) -> ExpectedSpeed | None:
        """The speed to expect on this PC, as users report or as the planner estimates; None if unknown."""
        return expect_speed(self.reports, self.speed)

    @property
    def likely_tok_s(self) -> float:
        """The middle of the speed to expect in new chats, in tokens per second; 0 if unknown."""
        return math.sqrt(math.prod(self.expected.start)) if self.expected is not None else 0.0

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
    benchmarks: tuple[Benchmark, ...] = ()
    """Published figures of the model."""
    other_speeds: tuple[SpeedReport, ...] = ()
    """Speeds of the model in engines that QwenDesk doesn't have."""
    is_hero: bool = False

    @property
    def id(self) -> str:
        return self.model.id

    @property
    def has_pictures(self) -> bool:
        """Return whether it's offered with a vision projector."""
        return any(quant.mmproj_bytes for quant in self.quants)

    @property
    def is_mixture(self) -> bool:
        """Return whether the model is a mixture of experts."""
        return bool(self.model.hyperparameters.expert_count)

    def score(self, benchmark: str) -> float | None:
        """Return the published figure of the model in a benchmark; None if there is none."""
        return next((each.score for each in self.benchmarks if each.name == benchmark), None)

    def percent_above_best(self, quality: Quality) -> float:
        """Return by how much a perplexity is above the lowest, which is the best, of its series, in percent.

        Return 0 for other measures.
        """
        if quality.measure != "perplexity":
            return 0.0
        series = (each.value for quant in self.quants for each in quant.quality if each.series == quality.series)
        return 100 * (quality.value / min(series, default=quality.value) - 1)


def find_flag(catalog: Catalog, repository: Repository, file: CatalogFile) -> str:
    """Return why this file must not be recommended, in a sentence; "" if it may be."""
    if catalog.deletion(repository.repo, file.path, file.sha256) is not None:
        return tr("The uploader deleted this file.")
    if file.sha256 and catalog.superseded(file.sha256) is not None:
        return tr("The uploader has replaced this file.")
    if program := program_for_quant(file.quant):
        return tr("Not for QwenDesk, but for {0}.", program)
    cut_off = catalog.cut_off(repository.repo)
    fixed = (cut_off.final_after or cut_off.fixed_after) if cut_off is not None else ""
    if fixed and (file.seen or repository.seen) < fixed[:10]:
        return tr("This file was uploaded before the repaired versions.")
    for note in catalog.notes(repository.model, repository.uploader, file.quant):
        if note.instead:
            return tr(note.text)
    return ""


def largest_in_ram(quants: Sequence[QuantOffer]) -> str:
    """Return the name of the largest of a model's quants that is recommended with weights in RAM."""
    names = {each.quant for each in quants}
    return _LIKE_LARGEST if names.isdisjoint({LARGEST_IN_RAM, f"UD-{LARGEST_IN_RAM}"}) else LARGEST_IN_RAM


def choose_quant(quants: Sequence[QuantOffer]) -> tuple[QuantOffer | None, Reason | None]:
    """Return the quant to recommend, never a flagged one, and why; (None, None) if nothing fits.

    One that fills the RAM is recommended only where no other has usual quality and speed.
    """
    by_name = {each.quant: each for each in quants if not each.flag and each.fit.fits}
    good = [by_name[name] for name in BEST_FIRST if name in by_name]
    # A dense model can't have experts in RAM: 4 bits with a short context are better for it than 3 with a longer one.
    is_dense = not any(each.fit.kind == "experts" for each in quants)
    largest = BEST_FIRST.index(largest_in_ram(quants))
    quant, reason = _choose([each for each in good if not each.fit.is_tight], largest, is_dense=is_dense)
    if quant is None or quant.quant in COARSE or quant.fit.kind == "layers":
        return _choose(good, largest, is_dense=is_dense)
    return quant, reason


def _choose(good: Sequence[QuantOffer], largest: int, *, is_dense: bool) -> tuple[QuantOffer | None, Reason | None]:
    """Return the best of `good`, which are in the order of BEST_FIRST, and why.

    `largest` is the place in BEST_FIRST of the largest quant that may have weights in RAM.
    """
    lower = COARSE.union(THREE_BITS) if is_dense else COARSE
    small = [each for each in good if BEST_FIRST.index(each.quant) >= largest]
    fluent = [each for each in good if BEST_FIRST.index(each.quant) < largest and each.likely_tok_s >= _FLUENT_TOK_S]
    good = [*fluent, *small]
    for context in (LONG_CONTEXT, _ENOUGH_CONTEXT, *((_SHORT_CONTEXT,) if is_dense else ())):
        whole = [each for each in good if each.fit.kind == "vram" and each.fit.n_ctx >= context]
        if whole and whole[0].quant not in lower:
            fine = (each for each in whole if each.quant not in lower)
            return min(fine, key=lambda each: each.fit.has_vision_on_cpu), "best_in_vram"
    spread = [each for each in small if each.fit.kind == "experts" and each.fit.n_ctx >= _ENOUGH_CONTEXT]
    if spread and spread[0].quant not in COARSE:
        return spread[0], "good_with_experts_in_ram"
    split = [each for each in small if each.fit.kind == "layers" and each.likely_tok_s >= FAST_IN_RAM_TOK_S]
    if is_dense and split and split[0].quant not in lower:
        return split[0], "partly_in_ram"
    on_cpu = [each for each in small if each.fit.kind == "cpu"]
    if on_cpu and not any(each.fit.kind in ("vram", "experts") for each in good):
        return on_cpu[0], "good_on_cpu"
    for kind in ("vram", "experts"):
        rest = [each for each in good if each.fit.kind == kind]
        if rest:
            return rest[0], "smaller_to_fit"
    return (small[0], "partly_in_ram") if small else (None, None)
