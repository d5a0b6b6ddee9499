"""The first choices on PCs of every kind: what they must be, and rules that hold for whatever they are."""

import re
from collections.abc import Sequence

import pytest

from qwendesk.models.fit import Pc
from qwendesk.models.purposes import PURPOSES, SLOWEST_TOK_S, Choice
from qwendesk.models.ranking import BEST_FIRST, COARSE, Offer, QuantOffer
from tests.models.advice_by_pc import ROWS, Row, is_expected, pc_of
from tests.models.test_purposes import choices_on, offers_on


def test_the_table_is_of_every_kind_of_pc_and_cites_reports() -> None:
    assert len(ROWS) >= 40
    assert len({row.pc for row in ROWS}) == len(ROWS)
    assert sum(bool(row.report) for row in ROWS) >= 25


# One test for each PC, because planning takes most of the time.
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pc)
def test_the_first_choices_are_right(row: Row) -> None:
    wrong = {}
    for purpose in PURPOSES:
        first, *others = choices_on(pc_of(row), purpose)
        if not is_expected(first, row.expects(purpose)):
            wrong[purpose] = f"{first.offer.id} {first.quant.quant} instead of {row.expects(purpose)}"
        assert_nothing_is_better_and_faster(first, offers_on(pc_of(row)))
        assert_leaves_ram(first, offers_on(pc_of(row)))
        for choice in (first, *others):
            assert_says_what_speeds_are_known_from(choice, pc_of(row))
    assert not wrong, wrong


def assert_nothing_is_better_and_faster(first: Choice, offers: Sequence[Offer]) -> None:
    better = [
        f"{offer.id} {quant.quant}"
        for offer in offers
        for quant in offer.quants
        if score(offer) > first.score
        and quant.likely_tok_s > max(first.quant.likely_tok_s, SLOWEST_TOK_S)
        and fits_well(quant, first)
    ]
    assert not better, (first.purpose, first.offer.id, first.quant.quant, better)


def fits_well(quant: QuantOffer, than: Choice) -> bool:
    """Return whether a file has usual quality, and is as roomy as a first choice: in context, and in RAM."""
    fit = quant.fit
    return (
        quant.quant in BEST_FIRST
        and quant.quant not in COARSE
        and not quant.flag
        and fit.fits
        and not fit.is_tight
        and fit.n_ctx >= min(32_768, than.quant.fit.n_ctx)
        and (fit.n_ctx >= than.quant.fit.n_ctx or than.purpose != "long")
    )


def score(offer: Offer) -> float:
    return offer.score("GPQA Diamond") or 0.0


def assert_leaves_ram(first: Choice, offers: Sequence[Offer]) -> None:
    roomy = [quant for offer in offers for quant in offer.quants if quant.fit.fits and not quant.fit.is_tight]
    assert not first.quant.fit.is_tight or not roomy, first.purpose


def assert_says_what_speeds_are_known_from(choice: Choice, pc: Pc) -> None:
    """Each number is estimated, or reported with a depth and cards like those of this PC."""
    for text in (choice.reason, choice.drawback):
        assert not re.search(r"\d tok/s(?! \((estimated|reported)\)| or more)", text), text
    assert choice.quant.expected is not None
    reported = [each for each in choice.quant.expected.speeds if each.source == "reported"]
    assert bool(reported) == bool(choice.quant.reports)
    assert all(bool(report.gpus) == bool(pc.gpus) for report in choice.quant.reports)
