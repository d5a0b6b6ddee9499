"""Answers stand in later prompts in the tokens in which they were written, if that changes no text."""

import pytest

from qwendesk.engine.worker.layout import Layout
from qwendesk.engine.worker.written_answers import Spelling, WrittenAnswers

THINK, CALL, CALL_ENDS, END = 1, 2, 3, 4
PIECES = {5: b"user", 6: b"\n", 7: b"\n\n", 8: b"spill", 9: b"sp", 10: b"ill", 11: b"spell", 12: b"<tool_call>"}
SPELLING = Spelling(lambda token: PIECES.get(token, b""), lambda token: token == END, frozenset((1, 2, 3, 4)))
PROMPT = (5, END, THINK, 6)
WRITTEN = (9, 10, CALL, 9, 10, CALL_ENDS)
RESULT = (END, 5, 5, THINK, 6)


@pytest.fixture
def answers() -> WrittenAnswers:
    answers = WrittenAnswers()
    answers.remember(PROMPT, WRITTEN, SPELLING)
    return answers


def layout(*items: int, cuts: tuple[int, ...] = ()) -> Layout:
    return Layout(items, {}, dict.fromkeys(cuts, False), opens_reasoning=True)


def test_written_tokens_replace_others_of_the_same_text(answers: WrittenAnswers) -> None:
    # Checkpoints before the answer's thinking, and before the next one's.
    prompt = layout(*PROMPT, 8, CALL, 8, CALL_ENDS, *RESULT, cuts=(2, 11))
    respelled = answers.respell(prompt, SPELLING)
    assert respelled.items == (*PROMPT, *WRITTEN, *RESULT)
    assert dict(respelled.cuts) == {2: False, 13: False}


def test_several_answers_of_one_chat(answers: WrittenAnswers) -> None:
    second = (*PROMPT, *WRITTEN, *RESULT)
    answers.remember(second, (9, 10, CALL, CALL_ENDS), SPELLING)
    prompt = layout(*PROMPT, 8, CALL, 8, CALL_ENDS, *RESULT, 8, CALL, CALL_ENDS, *RESULT)
    assert answers.respell(prompt, SPELLING).items == (*second, 9, 10, CALL, CALL_ENDS, *RESULT)


def test_text_is_compared_from_the_last_marker_on() -> None:
    answers = WrittenAnswers()
    answers.remember(PROMPT, (6, CALL, CALL_ENDS), SPELLING)
    prompt = layout(5, END, THINK, 7, CALL, CALL_ENDS, *RESULT)
    assert answers.respell(prompt, SPELLING).items == (*PROMPT, 6, CALL, CALL_ENDS, *RESULT)


@pytest.mark.parametrize(
    "items",
    [
        (*PROMPT, 11, CALL, 8, CALL_ENDS, *RESULT),
        (*PROMPT, 8, 12, 8, CALL_ENDS, *RESULT),
        (*PROMPT, 8, CALL, 8, CALL_ENDS, 8, *RESULT),
        (5, 5, THINK, 6, 8, CALL, 8, CALL_ENDS, *RESULT),
        (*PROMPT, 8, CALL, 8, CALL_ENDS),
        PROMPT[:2],
    ],
    ids=["edited", "typed marker", "longer", "another chat", "no end", "shorter"],
)
def test_other_texts_stay(answers: WrittenAnswers, items: tuple[int, ...]) -> None:
    assert answers.respell(layout(*items), SPELLING).items == items
