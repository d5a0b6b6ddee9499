"""Tokens to text: whole characters, stop texts, the thought apart from the answer."""

import random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.engine.worker.writer import BlankTrimmer, OutputSplitter, StopMatcher, Utf8Joiner

_OPEN, _CLOSE, _WORD = 1, 2, 7


Text = TypeVar("Text", str, bytes)


def in_pieces(text: Text, rng: random.Random) -> list[Text]:
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(6)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(text=st.text(), seed=st.integers(0, 999))
def test_characters_are_whole_however_their_bytes_are_split(text: str, seed: int) -> None:
    joiner = Utf8Joiner()
    pieces = [joiner.feed(piece) for piece in in_pieces(text.encode(), random.Random(seed))]
    assert "".join(pieces) + joiner.flush() == text
    assert all("\ufffd" not in piece for piece in pieces) or "\ufffd" in text


def test_half_a_character_is_held_back() -> None:
    joiner = Utf8Joiner()
    assert [joiner.feed(bytes([byte])) for byte in "é🙂".encode()] == ["", "é", "", "", "", "🙂"]


def test_invalid_bytes_are_replaced() -> None:
    joiner = Utf8Joiner()
    assert joiner.feed(b"a\xffb\xc3") == "a\ufffdb"
    assert joiner.feed(b"c\xe2\x82") == "\ufffdc"
    assert joiner.flush() == "\ufffd"
    assert joiner.feed(b"d") + joiner.flush() == "d"


def test_a_stop_text_is_cut_out_with_what_follows() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.feed("one E") == ("one ", False)
    assert matcher.feed("N") == ("", False)
    assert matcher.feed("D two") == ("", True)
    assert matcher.feed("three") == ("", True)
    assert matcher.flush() == ""


def test_beginning_of_a_stop_text_alone_is_shown() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.feed("EN") == ("", False)
    assert matcher.feed("EN") == ("EN", False)
    assert matcher.flush() == "EN"


@pytest.mark.parametrize(
    ("stops", "text", "kept"),
    [
        (["b", "abc"], "xabc", "xa"),
        (["abc", "bc"], "xabc", "x"),
        (["aa"], "baaa", "b"),
        (["", "z"], "xyz", "xy"),
        ([], "xyz", None),
        (["\n\n"], "a\nb\n\nc", "a\nb"),
    ],
)
def test_the_first_stop_text_completed_counts(stops: list[str], text: str, kept: str | None) -> None:
    matcher = StopMatcher(stops)
    shown = ""
    for character in text:
        safe, stopped = matcher.feed(character)
        shown += safe
        if stopped:
            assert shown == kept
            return
    assert kept is None
    assert shown + matcher.flush() == text


@given(
    text=st.text("abc", max_size=20),
    stops=st.lists(st.text("abc", max_size=4), max_size=3),
    seed=st.integers(0, 999),
)
def test_stop_texts_are_found_however_the_text_is_cut(text: str, stops: list[str], seed: int) -> None:
    at_once = StopMatcher(stops)
    expected, expected_stop = at_once.feed(text)
    expected += at_once.flush()
    matcher, shown, stopped = StopMatcher(stops), "", False
    for piece in in_pieces(text, random.Random(seed)):
        safe, stopped = matcher.feed(piece)
        shown += safe
    assert (shown + matcher.flush(), stopped) == (expected, expected_stop)
    assert expected_stop is any(stop and stop in text for stop in stops)


def kinds(
    tokens: list[int], *, in_reasoning: bool, open_id: int | None = _OPEN, close_id: int | None = _CLOSE
) -> list[str]:
    splitter = OutputSplitter(open_id, close_id, in_reasoning=in_reasoning)
    return [splitter.feed(token) for token in tokens]


def test_reasoning_ends_at_its_marker() -> None:
    assert kinds([_WORD, _CLOSE, _WORD], in_reasoning=True) == ["reasoning", "marker", "answer"]


def test_second_end_marker_is_not_shown() -> None:
    assert kinds([_CLOSE, _WORD, _CLOSE, _WORD], in_reasoning=True) == ["marker", "answer", "marker", "answer"]


def test_model_may_open_its_reasoning_itself() -> None:
    tokens = [_OPEN, _WORD, _CLOSE, _WORD]
    assert kinds(tokens, in_reasoning=False) == ["marker", "reasoning", "marker", "answer"]
    assert kinds(tokens, in_reasoning=True) == ["marker", "reasoning", "marker", "answer"]


def test_a_think_tag_inside_text_is_text() -> None:
    assert kinds([_WORD, _OPEN, _WORD], in_reasoning=False) == ["answer", "answer", "answer"]
    assert kinds([_WORD, _OPEN, _WORD], in_reasoning=True) == ["reasoning", "reasoning", "reasoning"]


def test_a_model_without_markers_only_answers() -> None:
    assert kinds([_OPEN, _WORD, _CLOSE], in_reasoning=False, open_id=None, close_id=None) == ["answer"] * 3
    assert kinds([_OPEN, _WORD], in_reasoning=False, close_id=None) == ["answer"] * 2


def test_in_reasoning_follows_the_markers() -> None:
    splitter = OutputSplitter(_OPEN, _CLOSE, in_reasoning=True)
    assert splitter.in_reasoning
    splitter.feed(_CLOSE)
    assert not splitter.in_reasoning


def test_blanks_around_a_part_are_not_shown() -> None:
    trimmer = BlankTrimmer()
    assert [trimmer.feed(text) for text in ("\n", "\n\n  one", " ", "\n", "two\n", "\n")] == [
        "",
        "  one",
        "",
        "",
        " \ntwo",
        "",
    ]
    assert trimmer.flush() == "\n\n"
    assert trimmer.flush() == ""


@given(text=st.text("a \n", max_size=12), seed=st.integers(0, 999))
def test_blanks_inside_a_part_are_kept(text: str, seed: int) -> None:
    trimmer = BlankTrimmer()
    shown = "".join(trimmer.feed(piece) for piece in in_pieces(text, random.Random(seed)))
    assert shown == text.lstrip("\n").rstrip()
    assert shown + trimmer.flush() == text.lstrip("\n")
