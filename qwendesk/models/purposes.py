"""Which model and quant to take for a purpose: fast answers, deep ones, a long context or the best quality.

Pure rules over the offers. Each model gets the quant that serves the purpose best, and the models are ranked:

- Fast: the model with 3B active weights, or the largest small one that fits.
- Deep: the highest published figure for reasoning, of the models that generate at least 10 tok/s here, and have room
  to think where they are taken in 3 bits.
- Long: the longest context, wholly in video memory if possible, of the models with good figures; where none of them
  fits, the best figure of those with a long context.
- Quality: the highest such figure, in the largest quant of 4 bits or more that can be read along with. A better model
  comes before more bits.

No quant is taken that leaves other programs too little RAM. Pictures are processed on the CPU only where a quant of
4 bits doesn't fit otherwise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from qwendesk.core.options import LoadOptions
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.models.expected_speed import find_reports
from qwendesk.models.fit import FitLabel, Pc, estimate_plan, fit_label
from qwendesk.models.ranking import (
    BEST_FIRST,
    COARSE,
    FAST_IN_RAM_TOK_S,
    LARGEST_IN_RAM,
    NEAR_LOSSLESS,
    THREE_BITS,
    Offer,
    QuantOffer,
    largest_in_ram,
)

Purpose = Literal["fast", "deep", "long", "quality"]
PURPOSES: Final[tuple[Purpose, ...]] = ("fast", "deep", "long", "quality")

# The benchmark that ranks models for reasoning: the only one that is published for each of them.
REASONING: Final = "GPQA Diamond"
# Figure of REASONING from which a model counts as good: that of Qwen3.5-35B-A3B, rounded.
GOOD_SCORE = 84.0
# Figure from which a model that thinks at a comfortable speed comes before a better one that doesn't: that of the 9B,
# rounded.
FAIR_SCORE = 81.0
# Speeds that a model for deep answers should reach, and must. People read about 5 tokens per second; twice as much
# leaves time for thinking.
COMFORTABLE_TOK_S, SLOWEST_TOK_S = 10.0, 5.0
# From so many billions of weights on, a model loses little in 4 bits, and nobody has measured what more would gain.
LARGE_B = 100.0
# THINKING_CONTEXT is what the model cards advise for reasoning.
_FULL_CONTEXT, THINKING_CONTEXT, _CHAT_CONTEXT, _SHORT_CONTEXT, _SHORTEST_CONTEXT = (
    262_144, 131_072, 65_536, 32_768, 8_192,
)  # fmt: skip


def _quants_in_ram(offer: Offer) -> tuple[str, ...]:
    """Return the names of the quants in 4 bits that may have weights in RAM."""
    return _from_to(largest_in_ram(offer.quants), "IQ4_XS")


def _quants_of_large_models(offer: Offer) -> tuple[str, ...]:
    """Return the names of the quants that a large model may be taken in."""
    return _from_to(largest_in_ram(offer.quants), "UD-IQ3_XXS")


def _from_to(best: str, last: str) -> tuple[str, ...]:
    return BEST_FIRST[BEST_FIRST.index(best) : BEST_FIRST.index(last) + 1]


FOUR_BITS: Final = _from_to("Q8_0", "IQ4_XS")

LONG_CONTEXT_OPTIONS: Final = LoadOptions(model="", aim="long_context")


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A model with the quant of it to take for a purpose."""

    purpose: Purpose
    offer: Offer
    quant: QuantOffer
    options: LoadOptions = LoadOptions(model="")
    """Options that the plan starts from: all "auto", but for a long context."""
    suits: bool = True
    """False if the model can't serve the purpose well on this PC."""
    reason: str = ""
    """Reason to take it, in a sentence."""
    drawback: str = ""
    """Reason against it, in a sentence."""

    @property
    def score(self) -> float:
        """The figure for reasoning; 0 if none is published."""
        return self.offer.score(REASONING) or 0.0

    @property
    def is_good(self) -> bool:
        return self.score >= GOOD_SCORE


def rank_choices(
    purpose: Purpose, offers: Sequence[Offer], reports: Sequence[SpeedReport], pc: Pc
) -> tuple[Choice, ...]:
    """Return one choice for each model that fits on `pc`, the best first. `reports` are those of the catalog."""
    hero = choose_hero(offers)
    fitting = [offer for offer in offers if offer.recommended is not None]
    choose: dict[Purpose, Callable[[Offer], Choice | None]] = {
        "fast": lambda offer: _fast(offer, hero),
        "deep": _deep,
        "long": lambda offer: _long(offer, reports, pc),
        "quality": _quality,
    }
    chosen = [choose[purpose](offer) or _fallback(purpose, offer) for offer in fitting]
    best_score = max((each.score for each in chosen if each.suits), default=-1.0)

    def key(choice: Choice) -> tuple[object, ...]:
        # A small model that suits doesn't come before a better one that doesn't.
        leads = purpose == "fast" or (not choice.suits and choice.score > best_score)
        is_first = choice.offer.id == hero and leads
        order = (value(choice) for value in ORDERS[purpose].values())
        return not is_first, not choice.suits, *order, -choice.offer.model.params_b, choice.offer.id

    return tuple(sorted(chosen, key=key))


def _fast(offer: Offer, hero: str) -> Choice | None:
    quant = offer.recommended
    if quant is None or (offer.id != hero and (quant.quant in COARSE or quant.fit.kind == "layers")):
        return None
    return Choice(purpose="fast", offer=offer, quant=quant)


def _deep(offer: Offer) -> Choice | None:
    """Choose the best quant with a long enough context: 4 bits with a short one come before 3 bits.

    But 3 bits that are as good as the unquantized model come before 4 with a short context.
    """
    if offer.recommended is not None and offer.recommended.fit.kind == "cpu":
        found = _deep_on_cpu(offer)
        return Choice(purpose="deep", offer=offer, quant=found) if found is not None else None
    is_large = offer.model.params_b >= LARGE_B
    in_ram = _quants_in_ram(offer)
    for quants, names in (_comfortable(offer), in_ram if is_large else FOUR_BITS), (_readable(offer), in_ram):
        found = (
            _first(quants, names, ("vram",), THINKING_CONTEXT)
            or _first(quants, names, ("vram",), _CHAT_CONTEXT)
            or _first(quants, NEAR_LOSSLESS, ("vram",), _CHAT_CONTEXT)
            or _first(quants, in_ram, ("experts",), _SHORT_CONTEXT)
            or _first(quants, names, ("vram",), _SHORT_CONTEXT)
            or _first(quants, names, ("vram",), _SHORTEST_CONTEXT)
        )
        if found is not None:
            return Choice(purpose="deep", offer=offer, quant=found)
    found = _less_good(offer)
    return Choice(purpose="deep", offer=offer, quant=found) if found is not None else None


def _less_good(offer: Offer) -> QuantOffer | None:
    """Choose a quant where none of 4 bits is wholly in video memory, nor with experts in RAM alone.

    That is 4 bits with layers in RAM if they are recommended in general, or else 3 bits at a comfortable speed.
    """
    if offer.model.params_b >= LARGE_B:
        return _first(_readable(offer), _quants_of_large_models(offer), ("vram",), _SHORT_CONTEXT)
    quant = offer.recommended
    is_fast = quant is not None and quant.fit.kind == "layers" and quant.likely_tok_s >= FAST_IN_RAM_TOK_S
    if quant is not None and is_fast and not quant.fit.is_tight:
        return quant
    return _first(_comfortable(offer), THREE_BITS, ("vram", "experts"), _SHORT_CONTEXT) or _first(
        _comfortable(offer), THREE_BITS, ("vram",), _SHORTEST_CONTEXT
    )


def _deep_on_cpu(offer: Offer) -> QuantOffer | None:
    """Choose the best quant in 4 bits that can be read along with."""
    return _first(_readable(offer), _quants_in_ram(offer), ("cpu",), 0)


def _long(offer: Offer, reports: Sequence[SpeedReport], pc: Pc) -> Choice | None:
    """Choose the best quant of those with the longest context in video memory; a mixture may have experts in RAM."""
    if offer.recommended is not None and offer.recommended.fit.kind == "cpu":
        smaller = (each for each in _usable(offer) if each.n_bytes <= offer.recommended.n_bytes)
        plans = (_with_long_context(offer, each, reports, pc) for each in smaller)
        planned = next((each for each in plans if each is not None and not each.fit.is_tight), None)
        if planned is not None:
            return Choice(purpose="long", offer=offer, quant=planned, options=LONG_CONTEXT_OPTIONS)
        return None if offer.recommended.fit.is_tight else Choice(purpose="long", offer=offer, quant=offer.recommended)
    quants = [each for each in _usable(offer) if each.fit.kind == "vram" and not each.fit.is_tight]
    longest = max((each.fit.n_ctx for each in quants), default=0)
    whole = next((each for each in quants if each.fit.n_ctx == longest), None)
    if longest < _SHORT_CONTEXT and offer.recommended is not None and offer.recommended.fit.kind == "layers":
        split = _with_long_context(offer, offer.recommended, reports, pc)
        if split is not None and split.likely_tok_s >= COMFORTABLE_TOK_S:
            return Choice(purpose="long", offer=offer, quant=split, options=LONG_CONTEXT_OPTIONS)
    if offer.is_mixture and pc.gpus and longest < _FULL_CONTEXT:
        in_ram = [each for each in _usable(offer) if each.quant in _quants_in_ram(offer)]
        plans = (_with_long_context(offer, each, reports, pc) for each in in_ram)
        spread = _first((each for each in plans if each is not None), _quants_in_ram(offer), ("vram", "experts"), 0)
        if spread is not None and spread.fit.n_ctx > longest:
            return Choice(purpose="long", offer=offer, quant=spread, options=LONG_CONTEXT_OPTIONS)
    if whole is None and offer.recommended is not None and offer.recommended.fit.kind == "experts":
        whole = _first([offer.recommended], (*FOUR_BITS, *THREE_BITS), ("experts",), _SHORT_CONTEXT)
    return Choice(purpose="long", offer=offer, quant=whole) if whole is not None else None


def _with_long_context(offer: Offer, quant: QuantOffer, reports: Sequence[SpeedReport], pc: Pc) -> QuantOffer | None:
    """Return the quant as it runs with a long context; None if it doesn't fit."""
    plan = estimate_plan(offer.model, quant.n_bytes, quant.mmproj_bytes, pc, LONG_CONTEXT_OPTIONS)
    if plan is None:
        return None
    layers = offer.model.hyperparameters.block_count
    fit = fit_label(plan, layers, pc, with_pictures=bool(quant.mmproj_bytes))
    known = find_reports(reports, offer.model, quant.quant, quant.n_bytes, fit, pc)
    return msgspec.structs.replace(quant, fit=fit, speed=plan.speed, reports=known)


def _figure_for_length(choice: Choice) -> float:
    """Return the published result as a value to sort by, for those that aren't good.

    Where no good model fits, the small ones differ more in what they make of a long text than in its length: the best
    one comes first that is readable and has a long context. Without a result, the largest one does.
    """
    if not choice.score:
        return -choice.offer.model.params_b
    if choice.is_good or _is_short(choice):
        return 0.0
    return -choice.score if choice.quant.likely_tok_s >= SLOWEST_TOK_S else 1.0


def _is_short(choice: Choice) -> bool:
    return bool(choice.score) and choice.quant.fit.n_ctx < THINKING_CONTEXT


def _is_cramped(choice: Choice) -> bool:
    """Return whether a choice gave up bits for its place, and still has no room to think."""
    return choice.quant.quant in THREE_BITS and choice.quant.fit.n_ctx < _SHORT_CONTEXT


Rule = Literal["scored", "fluent", "cramped", "short", "good", "figure", "speed", "context", "place", "active", "score"]

# By which choices are ranked for each purpose, what counts most first: the lower value comes first.
# For a long context, a model without a published result makes too little of a long text to come before one that has
# it. Then the length counts, how much a token costs in a long chat, and the published result.
ORDERS: Final[Mapping[Purpose, Mapping[Rule, Callable[[Choice], float]]]] = MappingProxyType(
    {
        "fast": {
            "good": lambda choice: not choice.is_good,
            "speed": lambda choice: -choice.quant.likely_tok_s if choice.is_good else 0.0,
            "score": lambda choice: 0.0 if choice.is_good else -choice.score,
        },
        "deep": {
            "fluent": lambda choice: choice.score < FAIR_SCORE or not _is_comfortable(choice.quant),
            "cramped": _is_cramped,
            "score": lambda choice: -choice.score,
        },
        "long": {
            "scored": lambda choice: not choice.score,
            "short": _is_short,
            "good": lambda choice: not choice.is_good,
            "figure": _figure_for_length,
            "context": lambda choice: -choice.quant.fit.n_ctx,
            "place": lambda choice: choice.quant.fit.rank,
            "active": lambda choice: choice.offer.model.active_params_b,
            "score": lambda choice: -choice.score,
        },
        "quality": {"score": lambda choice: -choice.score},
    }
)


def _quality(offer: Offer) -> Choice | None:
    """Choose the most bits that can be read along with, but at most 4 of a large model: it loses little in these.

    A large model, and one whose GPU uses the RAM, goes to the GPU whole if it can: parts of it in RAM gain nothing. A
    card that is too small for a large model's layers isn't worse than none.
    """
    readable, is_large = _readable(offer), offer.model.params_b >= LARGE_B
    names = _quants_in_ram(offer) if is_large else FOUR_BITS
    places: Sequence[Sequence[str]] = (("vram", "experts", "cpu"),)
    if is_large or any(each.fit.is_unified for each in readable):
        places = (("vram",), ("experts", "cpu"))
    found = next(filter(None, (_first(readable, names, kinds, _SHORT_CONTEXT) for kinds in places)), None)
    kinds = ("vram", "layers") if is_large else ("vram",)
    found = found or _first(readable, names, kinds, _SHORTEST_CONTEXT) or _less_good(offer)
    return Choice(purpose="quality", offer=offer, quant=found) if found is not None else None


def _readable(offer: Offer) -> list[QuantOffer]:
    return [each for each in _usable(offer) if each.likely_tok_s >= SLOWEST_TOK_S]


def _comfortable(offer: Offer) -> list[QuantOffer]:
    return [each for each in _usable(offer) if _is_comfortable(each)]


def _is_comfortable(quant: QuantOffer) -> bool:
    return round(quant.likely_tok_s) >= COMFORTABLE_TOK_S


def _usable(offer: Offer) -> list[QuantOffer]:
    """Return the quants that may be recommended, the best first."""
    by_name = {each.quant: each for each in offer.quants if not each.flag and each.fit.fits}
    lowest = COARSE if offer.model.params_b < LARGE_B else frozenset({"UD-Q2_K_XL", "UD-IQ2_M"})
    return [by_name[name] for name in BEST_FIRST if name in by_name and name not in lowest]


def _first(
    quants: Iterable[QuantOffer], names: Sequence[str], kinds: Sequence[str], least_ctx: int
) -> QuantOffer | None:
    """Return the first of `quants` with such a name, place and context that leaves enough RAM for other programs.

    Those whose pictures are processed on the GPU come first.
    """
    found = (
        each
        for each in quants
        if each.quant in names and each.fit.kind in kinds and each.fit.n_ctx >= least_ctx and not each.fit.is_tight
    )
    return min(found, key=lambda each: each.fit.has_vision_on_cpu, default=None)


def _fallback(purpose: Purpose, offer: Offer) -> Choice:
    """Return the quant of the model that is recommended in general."""
    assert offer.recommended is not None
    return Choice(purpose=purpose, offer=offer, quant=offer.recommended, suits=False)


# Rank of a model without a quant that fits.
_LAST_RANK = 3
_QUICK_MODELS: Final = ("Qwen3.5-2B", "Qwen3.5-0.8B")


def choose_hero(offers: Sequence[Offer]) -> str:
    """Return the id of the model to recommend; "" if none fits."""
    fitting = [offer for offer in offers if offer.recommended is not None]
    ranked = sorted((offer for offer in fitting if offer.model.rank), key=lambda offer: offer.model.rank)
    for place, offer in enumerate(ranked):
        if not passed_over(offer, ranked[place + 1 :]):
            return offer.id
    return next((offer.id for offer in fitting), "")


def passed_over(offer: Offer, smaller: Sequence[Offer]) -> Literal["slow", "tight", "coarse", ""]:
    """Return why one of the `smaller` models is recommended instead of one that fits; "" if none is."""
    assert offer.recommended is not None
    fit = offer.recommended.fit
    # A dense model that is partly in RAM is slower than the next smaller one that fits in video memory.
    if smaller and fit.kind in ("layers", "cpu") and not offer.is_mixture and offer.model.params_b > 5:
        return "slow"
    # With a browser open, its load would be refused after a long download.
    if fit.is_tight and any(_is_roomy(each.recommended) for each in smaller):
        return "tight"
    is_coarse = offer.recommended.quant in COARSE and fit.kind != "vram"
    return "coarse" if is_coarse and any(_fits_well(each.recommended, fit) for each in smaller) else ""


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
