"""Answers with their reasoning between tags, as programs send them back."""

import pytest

from qwendesk.core.think_tags import SplitAnswer, split_answer


@pytest.mark.parametrize(
    ("answer", "reasoning", "text"),
    [
        ("<think>\nHm.\n</think>\n\nParis.", "Hm.", "Paris."),
        ("<think>Hm.</think>Paris.", "Hm.", "Paris."),
        ("\n <think>\r\nHm.\r\n</think>\r\nParis. ", "Hm.", "Paris. "),
        ("Hm.\nSo it is.\n</think>\n\nParis.", "Hm.\nSo it is.", "Paris."),
        ("<think></think>Paris.", "", "Paris."),
        ("<think>\nOne.\n</think>\nFirst.\n<think>\nTwo.\n</think>\nLast.", "One.\n\nTwo.", "First.\n\nLast."),
        ("First.\n\n<think>Two.</think>\nLast.", "Two.", "First.\n\nLast."),
        ("<think>One.</think><think>Two.</think>Last.", "One.\n\nTwo.", "Last."),
    ],
)
def test_reasoning_is_split_off(answer: str, reasoning: str, text: str) -> None:
    assert split_answer(answer) == SplitAnswer(reasoning, text, has_ended_thinking=True)


@pytest.mark.parametrize("answer", ["<think>", "<think>\n", "<think>\nLet me", " <think>Let me"])
def test_reasoning_that_has_not_ended_is_no_text(answer: str) -> None:
    assert split_answer(answer) == SplitAnswer("Let me" if "Let" in answer else "", "")


@pytest.mark.parametrize(
    "answer",
    [
        "", "Paris.", "The tag <think> opens it and </think> ends it.", "Write </think> to end it.",
        "So:\n```\n<think>\nHm.\n</think>\n```\nDone.", "```\nHm.\n</think>\n```", "Text.\n<think>\nnever closed",
    ],
)  # fmt: skip
def test_an_answer_about_the_tags_stays_as_it_is(answer: str) -> None:
    assert split_answer(answer) == SplitAnswer("", answer)


def test_many_tags_take_no_time() -> None:
    answer = "So: </think>" + "\n<think>" * 200_000 + "\n`<think>` " * 100_000
    assert split_answer(answer).text == answer
