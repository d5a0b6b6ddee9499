"""Why another model than the recommended one isn't taken: the rules that put it behind, in sentences with numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import join_list, tr
from qwendesk.core.units import show_bytes, show_rate, show_tokens
from qwendesk.models.fit import FitLabel, Pc
from qwendesk.models.purpose_texts import speed_text
from qwendesk.models.purposes import (
    COMFORTABLE_TOK_S,
    FAIR_SCORE,
    FOUR_BITS,
    GOOD_SCORE,
    ORDERS,
    REASONING,
    SLOWEST_TOK_S,
    THINKING_CONTEXT,
    Choice,
    Purpose,
    Rule,
    choose_hero,
    passed_over,
)
from qwendesk.models.ranking import BEST_FIRST, COARSE, Offer, QuantOffer

# Values that differ by less count as equal in the sentences, which round them.
_ALIKE: Final = 1e-9


def why_not(purpose: Purpose, model: str, offers: Sequence[Offer], choices: Sequence[Choice], pc: Pc) -> list[str]:
    """Return each rule that puts `model` behind the first of the ranked `choices`, what decided first.

    [] if it is the first. `model` is the id of an offer; the choices are those of `rank_choices`.
    """
    offer = next(each for each in offers if each.id == model)
    choice = next((each for each in choices if each.offer.id == model), None)
    if choice is None:
        return [_does_not_fit(offer, pc)]
    first = choices[0]
    if choice is first:
        return []
    reasons = list(_behind_in_general(choice, first, offers))
    if not choice.suits:
        reasons += [_unsuited(purpose, choice), *_quant_facts(choice)]
    reasons += [
        text
        for rule, value in ORDERS[purpose].items()
        if value(choice) > value(first) + _ALIKE and (text := _TEXTS[rule](choice, first))
    ]
    return list(dict.fromkeys(reasons)) or [
        tr("By every rule it's as good as {0}, which has more weights or comes before it by name.", first.offer.id)
    ]


def numbers_text(choice: Choice) -> str:
    """Return what the rules compare, in a line: "GPQA Diamond 86.0, about 118 tok/s (reported), context of 128K"."""
    result = f"{REASONING} {show_decimal(choice.score, 1)}" if choice.score else tr("no result of {0}", REASONING)
    return join_list((result, tr("about {0}", speed_text(choice)), tr("context of {0}", show_tokens(_n_ctx(choice)))))


def _n_ctx(choice: Choice) -> int:
    return choice.quant.fit.n_ctx


def _does_not_fit(offer: Offer, pc: Pc) -> str:
    """Return why no file of the model can be taken."""
    usable = [each for each in offer.quants if not each.flag and each.quant in BEST_FIRST]
    smallest = min(usable, key=lambda each: each.n_bytes, default=None)
    if smallest is None:
        return tr("None of its files is one that QwenDesk recommends.")
    needed = show_bytes(smallest.fit.ram_bytes or smallest.n_bytes)
    if pc.gpus and not pc.is_unified:
        return tr(
            "It doesn't fit: its smallest file, {0}, needs {1} of memory. Models may use {2} of the RAM and {3} of the "
            "video memory here, of which buffers take a part.",
            smallest.quant,
            needed,
            show_bytes(pc.ram_room_bytes),
            show_bytes(pc.vram_room_bytes),
        )
    return tr(
        "It doesn't fit: its smallest file, {0}, needs {1} of memory, and models may use {2} of this PC's.",
        smallest.quant,
        needed,
        show_bytes(pc.room_bytes),
    )


def _behind_in_general(choice: Choice, first: Choice, offers: Sequence[Offer]) -> Iterator[str]:
    """Yield why the model that is recommended in general is another, if that is why it comes first."""
    fitting = [offer for offer in offers if offer.recommended is not None]
    is_hero = first.offer.id == choose_hero(fitting)
    if not is_hero or (choice.purpose != "fast" and first.suits):
        return
    mine, its = choice.offer.model.rank, first.offer.model.rank
    if not mine:
        yield tr(
            "{0} comes first because it's the best of the models for everyday use that fits well; {1} isn't one of "
            "these.",
            first.offer.id,
            choice.offer.id,
        )
    elif mine > its:
        yield tr(
            "Of the models for everyday use, the catalog puts {0} in place {1} and this one in place {2}.",
            first.offer.id,
            its,
            mine,
        )
    else:
        smaller = sorted((each for each in fitting if each.model.rank > mine), key=lambda each: each.model.rank)
        if (reason := passed_over(choice.offer, smaller)) and choice.offer.recommended is not None:
            yield _PASSED[reason](choice.offer.recommended)


def _in_ram(fit: FitLabel) -> str:
    return tr("all in RAM") if fit.kind == "cpu" else tr("{0} of {1} layers in RAM", fit.on_cpu, fit.of_layers)


_PASSED: Final[Mapping[str, Callable[[QuantOffer], str]]] = MappingProxyType(
    {
        "slow": lambda quant: tr(
            "It would be {0}, which is slow for a dense model: about {1} tok/s. A smaller one is faster.",
            _in_ram(quant.fit),
            show_rate(quant.likely_tok_s),
        ),
        "tight": lambda quant: tr(
            "{0} leaves only {1} of RAM for other programs; another model leaves enough.",
            quant.quant,
            show_bytes(quant.fit.free_ram_bytes),
        ),
        "coarse": lambda quant: tr(
            "Only {0} fits, a small quant that makes more mistakes; another model fits in a better one.",
            quant.quant,
        ),
    }
)


def _unsuited(purpose: Purpose, choice: Choice) -> str:
    """Return what the model lacks for the purpose: the first demand that none of its files meets."""
    usable = [each for each in choice.offer.quants if not each.flag and each.fit.fits and each.quant in BEST_FIRST]
    better = [each for each in usable if each.quant not in COARSE]
    if not better:
        names = join_list(each.quant for each in usable)
        return tr("Only its small quants fit ({0}), which make more mistakes.", names)
    fastest = max(better, key=lambda each: each.likely_tok_s)
    if purpose in ("deep", "quality") and fastest.likely_tok_s < SLOWEST_TOK_S:
        return tr(
            "It's too slow to read along: {0} makes about {1} tok/s here, and {2} are the least.",
            fastest.quant,
            show_rate(fastest.likely_tok_s),
            show_rate(SLOWEST_TOK_S),
        )
    roomiest = max(better, key=lambda each: each.fit.free_ram_bytes)
    if all(each.fit.is_tight for each in better):
        return tr(
            "It would leave other programs too little RAM: {0} with {1}.",
            show_bytes(roomiest.fit.free_ram_bytes),
            roomiest.quant,
        )
    if purpose in ("deep", "quality") and not any(each.quant in FOUR_BITS for each in better):
        return tr("In 4 bits it doesn't fit; {0} is the largest that does.", better[0].quant)
    if all(each.fit.kind in ("layers", "cpu") for each in better):
        return tr(
            "No file of it but small quants is in video memory: {0} would be {1}, at about {2} tok/s.",
            fastest.quant,
            _in_ram(fastest.fit),
            show_rate(fastest.likely_tok_s),
        )
    return tr("No file of it has the quant, the place and the context that this purpose asks for.")


def _quant_facts(choice: Choice) -> Iterator[str]:
    """Yield how the file that would be taken runs."""
    quant = choice.quant
    yield tr(
        "What fits is {0} with a context of {1}, at about {2}.",
        quant.quant,
        show_tokens(quant.fit.n_ctx),
        speed_text(choice),
    )


def _result_text(choice: Choice, first: Choice) -> str:
    if not choice.score:
        return tr("No result of {0} is published for it.", REASONING)
    if choice.score >= first.score:  # compared only among those that an earlier rule holds for alike
        return ""
    return tr(
        "{0}: {1}, and {2} has {3}.",
        REASONING,
        show_decimal(choice.score, 1),
        first.offer.id,
        show_decimal(first.score, 1),
    )


def _good_text(choice: Choice, first: Choice) -> str:
    if not choice.score:
        return _result_text(choice, first)
    return tr(
        "{0}: {1}. A model counts as good from {2} on.", REASONING, show_decimal(choice.score, 1), show_rate(GOOD_SCORE)
    )


def _fluency_text(choice: Choice, first: Choice) -> str:
    if not choice.score:
        return _result_text(choice, first)
    if choice.score < FAIR_SCORE:
        return tr(
            "{0}: {1}. From {2} on a model comes before those that are better and slower.",
            REASONING,
            show_decimal(choice.score, 1),
            show_rate(FAIR_SCORE),
        )
    return tr("About {0}; thinking is comfortable from {1} tok/s on.", speed_text(choice), show_rate(COMFORTABLE_TOK_S))


def _speed_text(choice: Choice, first: Choice) -> str:
    if choice.quant.likely_tok_s >= first.quant.likely_tok_s:  # compared only among good ones
        return ""
    return tr("About {0}, and {1} makes about {2}.", speed_text(choice), first.offer.id, speed_text(first))


def _figure_text(choice: Choice, first: Choice) -> str:
    if choice.score and choice.quant.likely_tok_s < SLOWEST_TOK_S:
        return tr("About {0}, too slow to read along.", speed_text(choice))
    return _result_text(choice, first)


_TEXTS: Final[Mapping[Rule, Callable[[Choice, Choice], str]]] = MappingProxyType(
    {
        "scored": lambda choice, _first: tr("No result of {0} is published for it.", REASONING),
        "fluent": _fluency_text,
        "cramped": lambda choice, _first: tr(
            "{0} fits with a context of {1} only, which thinking soon fills.",
            choice.quant.quant,
            show_tokens(_n_ctx(choice)),
        ),
        "short": lambda choice, _first: tr(
            "A context of {0} fits; thinking in long chats asks for {1}.",
            show_tokens(_n_ctx(choice)),
            show_tokens(THINKING_CONTEXT),
        ),
        "good": _good_text,
        "figure": _figure_text,
        "speed": _speed_text,
        "context": lambda choice, first: tr(
            "A context of {0} fits, and {1} with {2}.",
            show_tokens(_n_ctx(choice)),
            show_tokens(_n_ctx(first)),
            first.offer.id,
        ),
        "place": lambda choice, first: tr(
            "{0} is more in video memory: this one would be {1}.", first.offer.id, _in_ram(choice.quant.fit)
        ),
        "active": lambda choice, first: tr(
            "{0} of its weights work on each token, and {1} of {2}: long chats cost more.",
            f"{show_decimal(choice.offer.model.active_params_b, 1)}B",
            f"{show_decimal(first.offer.model.active_params_b, 1)}B",
            first.offer.id,
        ),
        "score": _result_text,
    }
)
