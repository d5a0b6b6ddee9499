"""What the speed tests found, in sentences: for an ordinary run, with drafts, in part, and against expectations."""

import pytest

from qwendesk.bench.speed_text import (
    answer_tok_s,
    doing_text,
    draft_sentence,
    headline,
    record_sentence,
    speed_lines,
    verdict,
)
from qwendesk.core.translation import install_translator
from qwendesk.hub.catalog_schema import SpeedReport
from tests.bench.samples import record, row

RUN = (
    row("pp512", 0, 1050.0), row("tg128", 0, 37.0), row("text128", 0, 37.0), row("pp512", 65536, 700.0),
    row("text128", 65536, 28.0), row("turn 2", 2000, 0.3, unit="s"), row("new picture", 0, 1.0, unit="s"),
)  # fmt: skip
WITH_HEAD = (
    *RUN, row("text128", 0, 45.0, drafts="mtp"), row("edit128", 0, 80.0, drafts="mtp"),
    row("text128", 65536, 34.0, drafts="mtp"),
)  # fmt: skip
REPORT = SpeedReport(
    model="35B", gpus=("RTX 4070",), gpu_gb=12.0, quant="Q4_K_M", n_bytes=20, tok_s=40.0, most_tok_s=52.0,
    source="r/LocalLLaMA", date="2026-03",
)  # fmt: skip


def sentences(*rows, asked: str = "auto") -> list[str]:
    return [line.sentence for line in speed_lines(rows or RUN, asked)]


def test_a_run_is_told_in_pages_and_seconds() -> None:
    assert headline(45.0) == "Answers 34 words a second (45 tok/s): 8 times as fast as you read."
    assert sentences() == [
        "A page of text is read in 0.4 s, a PDF of 10 pages in 3.8 s.",
        "In a chat of 5 pages the next answer begins after 0.3 s.",
        "A picture is understood in 1.0 s.",
        "In a chat of 160 pages it still answers 21 words a second (28 tok/s).",
    ]


def test_drafts_that_gain_are_part_of_the_speed() -> None:
    assert answer_tok_s(WITH_HEAD) == 45.0
    assert "26 words a second (34 tok/s)" in sentences(*WITH_HEAD)[3]
    assert draft_sentence(WITH_HEAD) == "Token drafts make answers 22% faster."


@pytest.mark.parametrize(
    ("drafted", "asked", "sentence", "tok_s"),
    [
        (30.0, "auto", "Token drafts would make answers 19% slower here: off.", 37.0),
        (37.2, "auto", "Token drafts gain nothing here: off.", 37.0),
        (30.0, "mtp", "Token drafts make answers 19% slower here. Turn them off under Load.", 30.0),
        (37.2, "mtp", "Token drafts make no difference here.", 37.2),
    ],
)
def test_drafts_that_slow_a_model_are_said_and_off(drafted: float, asked: str, sentence: str, tok_s: float) -> None:
    rows = (*RUN, row("text128", 0, drafted, drafts="mtp"))

    assert draft_sentence(rows, asked) == sentence
    assert answer_tok_s(rows, asked=asked) == tok_s


def test_drafts_from_the_text_count_only_where_chats_use_them() -> None:
    rows = (*RUN, row("text128", 0, 60.0, drafts="lookup"))

    assert answer_tok_s(rows) == 37.0
    assert answer_tok_s(rows, asked="lookup") == 60.0


def test_a_run_that_was_stopped_early_tells_what_it_has() -> None:
    assert sentences(row("pp512", 0, 1050.0)) == ["A page of text is read in 0.4 s, a PDF of 10 pages in 3.8 s."]
    assert answer_tok_s((row("pp512", 0, 1050.0),)) == 0.0
    assert record_sentence(record(row("pp512", 0, 1050.0))).startswith("1 test · ")


@pytest.mark.parametrize(("tok_s", "is_slow"), [(33.0, False), (31.0, True)])
def test_a_speed_is_held_against_reports_of_the_same_card(tok_s: float, is_slow: bool) -> None:
    found = verdict(tok_s, (REPORT,), ("RTX 4070 12 GB",), (60.0, 80.0))

    assert found is not None
    assert found.is_slow is is_slow
    assert found.sentence == "Others report 40–52 tok/s with this graphics card."


def test_without_such_reports_the_estimate_counts_and_nothing_is_made_up() -> None:
    found = verdict(37.0, (REPORT,), ("RTX 4060 8 GB",), (30.0, 50.0))

    assert found is not None
    assert (found.title, found.sentence) == ("As fast as it should be.", "Estimated for this PC: 30–50 tok/s.")
    assert verdict(37.0, (REPORT,), (), None) is None


def test_what_is_measured_now_is_named_without_codes() -> None:
    assert [doing_text(test) for test in ("load", "pp512", "text128", "tg128 @ d8192", "turn 2 @ d2000")] == [
        "Loading the model", "A page of text", "Answers in a new chat", "A chat of 20 pages",
        "A second question in a chat",
    ]  # fmt: skip


def test_words_are_counted_only_where_a_language_has_them() -> None:
    install_translator(None, "zh_Hans")
    try:
        assert headline(45.0) == "Answers 45 tok/s: 8 times as fast as you read."
    finally:
        install_translator(None)
