"""The reason for a recommended model and what speaks against it, in a sentence each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core.everyday_units import FAST_LEVEL, speed_level
from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import join_sentences, mark, tr, tr_n
from qwendesk.core.units import show_bytes, show_rate, show_tokens
from qwendesk.models.expected_speed import SpeedSource
from qwendesk.models.fit import FitLabel
from qwendesk.models.purposes import (
    COMFORTABLE_TOK_S,
    FOUR_BITS,
    LARGE_B,
    REASONING,
    SLOWEST_TOK_S,
    Choice,
    Purpose,
)
from qwendesk.models.ranking import COARSE, NEAR_LOSSLESS, THREE_BITS, Offer

# In the order in which they are offered.
PURPOSE_TITLES: Final[Mapping[Purpose, str]] = MappingProxyType(
    {
        "fast": mark("Quick answers"),
        "deep": mark("Hard questions"),
        "long": mark("Long texts"),
        "quality": mark("Best quality"),
    }
)
PURPOSE_NOTES: Final[Mapping[Purpose, str]] = MappingProxyType(
    {
        "fast": mark("chat without waiting"),
        "deep": mark("maths, code, logic"),
        "long": mark("books, many files"),
        "quality": mark("most exact, slower"),
    }
)
# Tokens of thinking before a short answer, for the time that it takes.
_THINKING_TOKENS = 2_000
_SLOW_TOK_S = 20.0
_SHORT_CONTEXT, _LONG_CHAT, _ADVISED_CONTEXT = 32_768, 100_000, 131_072
_COARSE = COARSE.union(THREE_BITS).difference(NEAR_LOSSLESS)


def with_texts(ranked: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return the ranked choices of one purpose with reason and drawback."""
    return tuple(
        msgspec.structs.replace(
            choice, reason=_reason(choice, is_first=not rank), drawback=next(_drawbacks(choice, ranked))
        )
        for rank, choice in enumerate(ranked)
    )


def _reason(choice: Choice, *, is_first: bool) -> str:
    if not choice.suits and is_first:
        return tr("No model serves this purpose well on this PC. This one fits best.")
    if not choice.suits:
        return tr("It fits, but other models serve this purpose better on this PC.")
    texts: dict[str, Callable[[Choice, bool], str]] = {
        "fast": _why_fast,
        "deep": _why_deep,
        "long": _why_long,
        "quality": _why_quality,
    }
    return texts[choice.purpose](choice, is_first)


def _why_fast(choice: Choice, is_first: bool) -> str:
    model = choice.offer.model
    if not is_first:
        return tr("About {0}.", speed_text(choice))
    if choice.offer.is_mixture:
        return tr(
            "Only {0} of its {1} weights work on each token, so no model with results as good is faster.",
            _billions(model.active_params_b),
            _billions(model.params_b),
        )
    tok_s = choice.quant.likely_tok_s
    if tok_s and tok_s < SLOWEST_TOK_S:
        return tr("Slower than you read, but other good models are slower still on this PC.")
    if tok_s and speed_level(tok_s) < FAST_LEVEL:
        return tr("The best that is quick enough to read along on this PC.")
    return tr("The largest model that fits well in this PC's memory and answers fast.")


def _why_deep(choice: Choice, is_first: bool) -> str:
    if not choice.score:
        return tr("No result of {0} is published for it.", REASONING)
    score = show_decimal(choice.score, 1)
    if not is_first:
        return tr("{0}: {1}.", REASONING, score)
    if round(choice.quant.likely_tok_s) < COMFORTABLE_TOK_S:
        return tr("{0}: {1}, the best of the models that aren't too slow to read along on this PC.", REASONING, score)
    return tr(
        "{0}: {1}, the best of the models that generate {2} tok/s or more on this PC.",
        REASONING,
        score,
        show_rate(COMFORTABLE_TOK_S),
    )


def _why_long(choice: Choice, _is_first: bool) -> str:
    fit = choice.quant.fit
    n_ctx = show_tokens(fit.n_ctx)
    match fit.kind:
        case "vram" if fit.is_unified:
            return tr("Model and a context of {0} fit in the memory that the GPU may use.", n_ctx)
        case "vram":
            return tr("Model and a context of {0} fit in video memory.", n_ctx)
        case "experts":
            return tr_n(
                "A context of {1} fits in video memory because the experts of {0} layer are in RAM.",
                "A context of {1} fits in video memory because the experts of {0} layers are in RAM.",
                fit.on_cpu,
                n_ctx,
            )
        case _:
            return tr("A context of {0} fits in RAM.", n_ctx)


def _why_quality(choice: Choice, _is_first: bool) -> str:
    fit, quant = choice.quant.fit, choice.quant.quant
    result = tr("{0}: {1}.", REASONING, show_decimal(choice.score, 1)) if choice.score else ""
    if quant not in FOUR_BITS:
        loss = tr("{0} is the best quant that fits in this PC's memory.", quant)
    elif choice.offer.model.params_b >= LARGE_B:
        loss = tr("A model of this size loses little in {0}.", quant)
    else:
        loss = tr("{0} loses little to quantization.", quant)
    return join_sentences(result, loss, _place_text(fit))


def _place_text(fit: FitLabel) -> str:
    """Return where the weights are, in a sentence."""
    if fit.is_unified and fit.kind == "vram":
        return tr("It fits in the memory that the GPU may use.")
    match fit.kind:
        case "vram":
            return tr("It fits in video memory.")
        case "experts":
            return tr("This PC's RAM has room for the experts of {0} of its {1} layers.", fit.on_cpu, fit.of_layers)
        case "layers":
            return tr("{0} of its {1} layers are in RAM.", fit.on_cpu, fit.of_layers)
        case _:
            return tr("It fits in RAM.")


def _drawbacks(choice: Choice, ranked: Sequence[Choice]) -> Iterator[str]:
    """Yield what speaks against a choice, what weighs most first. There is always something."""
    fit, quant = choice.quant.fit, choice.quant
    if fit.fills_memory:
        yield tr("Leaves almost no RAM for other programs. Close them first.")
    elif fit.is_tight:
        yield tr("Leaves only {0} of RAM for other programs.", show_bytes(fit.free_ram_bytes))
    if quant.likely_tok_s and quant.likely_tok_s < _SLOW_TOK_S and (fit.kind != "vram" or choice.purpose != "long"):
        minutes = max(round(_THINKING_TOKENS / quant.likely_tok_s / 60), 1)
        yield tr_n(
            "With thinking on, an answer can take {0} minute.",
            "With thinking on, an answer can take {0} minutes.",
            minutes,
        )
    if fit.n_ctx <= _SHORT_CONTEXT:
        if fit.has_vision_on_cpu:
            yield tr(
                "Thinking soon fills its context of {0}, and pictures are processed on the CPU.", show_tokens(fit.n_ctx)
            )
        yield tr("Thinking soon fills its context of {0}.", show_tokens(fit.n_ctx))
    if choice.purpose == "deep" and fit.n_ctx < _ADVISED_CONTEXT:
        yield tr(
            "The model cards advise a context of {0} for thinking; {1} fit here.",
            show_tokens(_ADVISED_CONTEXT),
            show_tokens(fit.n_ctx),
        )
    if quant.quant in _COARSE:
        yield _coarse_text(choice)
    if quant.quant in NEAR_LOSSLESS:
        yield tr("That {0} is as good as the unquantized model is its maker's own result.", quant.quant)
    if fit.has_vision_on_cpu:
        yield tr("Pictures are processed on the CPU, which takes seconds for each.")
    if choice.purpose in ("fast", "quality"):
        yield from _better_models(choice, ranked)
    if choice.purpose == "long":
        yield from _slower_when_long(choice)
    if fit.kind == "experts":
        yield tr("Long prompts take longer to process, because experts are in RAM.")
    if choice.offer.model.problem:
        yield tr(choice.offer.model.problem)
    if not quant.quality:
        yield tr("No quality measurements for this quant yet.")
    yield tr("A download of {0}.", show_bytes(quant.total_bytes))


def _coarse_text(choice: Choice) -> str:
    worse = max((choice.offer.percent_above_best(each) for each in choice.quant.quality), default=0.0)
    if worse:
        return tr(
            "{0} is a small quant: its perplexity is {1}% above the best of its series.",
            choice.quant.quant,
            show_decimal(worse, 1),
        )
    return tr("{0} is a small quant, which makes more mistakes.", choice.quant.quant)


def _better_models(choice: Choice, ranked: Sequence[Choice]) -> Iterator[str]:
    """Yield the model with the best figure, if it's better and not too slow on this PC."""
    if not choice.score:
        return
    usable = [each for each in ranked if each.suits and each.quant.likely_tok_s >= SLOWEST_TOK_S]
    best = max(usable, key=lambda each: each.score, default=choice)
    if best.score > choice.score:
        yield tr(
            "{0} has better published results ({1}: {2} instead of {3}), at about {4}.",
            best.offer.id,
            REASONING,
            show_decimal(best.score, 1),
            show_decimal(choice.score, 1),
            speed_text(best),
        )


def _slower_when_long(choice: Choice) -> Iterator[str]:
    speed = choice.quant.expected
    last = speed.speeds[-1] if speed is not None else None
    if last is not None and last.depth >= _LONG_CHAT:
        middle = (last.slow * last.fast) ** 0.5
        yield tr("Slower in long chats: about {0} at {1}.", _with_source(middle, last.source), show_tokens(last.depth))


def speed_text(choice: Choice) -> str:
    """Return the speed in new chats and what it's known from: "34 tok/s (estimated)"."""
    speed = choice.quant.expected
    return _with_source(choice.quant.likely_tok_s, speed.source if speed is not None else "estimated")


def _with_source(tok_s: float, source: SpeedSource) -> str:
    if source == "reported":
        return tr("{0} tok/s (reported)", show_rate(tok_s))
    if source == "pasted":
        return tr("{0} tok/s (pasted by you)", show_rate(tok_s))
    return tr("{0} tok/s (estimated)", show_rate(tok_s))


def _billions(params_b: float) -> str:
    return f"{show_decimal(params_b, 0 if params_b >= 1.95 else 1)}B"


def benchmark_texts(offer: Offer) -> list[str]:
    """Return the published figures of a model, one line for each source."""
    by_source: dict[tuple[str, str], list[str]] = {}
    for each in offer.benchmarks:
        figures = by_source.setdefault((each.source, each.date), [])
        figures.append(f"{each.name} {show_decimal(each.score, 0 if each.score >= 100 or each.is_independent else 1)}")
    return [f"{', '.join(figures)} ({source}, {date})" for (source, date), figures in by_source.items()]
