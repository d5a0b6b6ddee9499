"""Differences between two texts."""

import pytest

from qwendesk.bench.comparison import Differences, TextRun, differences


def changed(found: Differences) -> list[str]:
    return [run.text for run in found.runs if run.differs]


def test_changed_words_are_marked_and_the_rest_is_not() -> None:
    found = differences("The sky is blue today.", "The sky was grey today.")

    assert changed(found) == [" was grey"]
    assert "".join(run.text for run in found.runs) == "The sky was grey today."
    assert (found.n_added, found.n_missing) == (2, 2)


def test_words_that_only_the_first_text_has_are_counted() -> None:
    found = differences("one two three four", "one four")

    assert changed(found) == []
    assert found.n_missing == 2
    assert not found.are_none


@pytest.mark.parametrize("text", ["The same.", "The same.\n", " The same."])
def test_equal_texts_have_no_differences(text: str) -> None:
    assert differences("The same.", text).are_none
    assert differences("The same.", text).runs == (TextRun(text.strip(), False),)


def test_nothing_against_something() -> None:
    assert differences("", "").are_none
    assert changed(differences("", "a word")) == ["a word"]
    assert differences("a word", "") == Differences((), 0, 2)
    assert not differences("a word", "").are_none


def test_a_changed_mark_is_a_difference() -> None:
    assert changed(differences("Yes, no.", "Yes; no.")) == [";"]


def test_long_texts_are_compared_by_lines() -> None:
    base = "".join(f"line {number} has five words\n" for number in range(3000))

    found = differences(base, base.replace("line 7 has", "line 7 had"))

    assert changed(found) == ["line 7 had five words\n"]


def test_characters_beyond_the_basic_plane_stay_whole() -> None:
    text = "Grüße 👩‍💻 日本"

    assert "".join(run.text for run in differences("Grüße", text).runs) == text
