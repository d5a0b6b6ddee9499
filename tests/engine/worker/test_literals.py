"""Special tokens in text: cut out of a template's own, made harmless in everybody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.engine.worker.literals import Literals, fold
from qwendesk.engine.worker.stand_ins import Hidden, StandIns

_ALPHABET = "ab<>|"
_words = st.text(_ALPHABET, max_size=12)
_literals = st.lists(st.text(_ALPHABET, min_size=2, max_size=5), max_size=4).map(Literals)


def test_the_longest_literal_is_cut_first() -> None:
    literals = Literals(["<a>", "<a>b", "b<"])
    assert literals.cut("x<a>b<a>") == [("x", False), ("<a>b", True), ("<a>", True)]


def test_text_without_literals_stays_whole() -> None:
    assert Literals(["<a>"]).cut("plain") == [("plain", False)]
    assert Literals(["<a>"]).cut("") == []


@given(literals=_literals, text=_words)
def test_cutting_loses_nothing_and_leaves_no_literal(literals: Literals, text: str) -> None:
    fragments = literals.cut(text)
    assert "".join(fragment for fragment, _ in fragments) == text
    for fragment, is_literal in fragments:
        assert (fragment in literals.texts) if is_literal else not any(each in fragment for each in literals.texts)


@given(literals=_literals, text=_words)
def test_inert_fragments_hold_no_literal(literals: Literals, text: str) -> None:
    fragments = literals.split_inert(text)
    assert "".join(fragments) == text
    assert not any(literal in fragment for fragment in fragments for literal in literals.texts)


def test_a_literal_is_made_inert_after_its_first_character() -> None:
    assert Literals(["<think>"]).split_inert("a<think>b<<think>") == ["a<", "think>b<<", "think>"]


@given(literals=_literals, text=_words.map(lambda text: text.upper()), before=_words, after=_words)
def test_no_literal_comes_about_from_a_harmless_text(literals: Literals, text: str, before: str, after: str) -> None:
    stand_ins = StandIns()
    harmless = stand_ins.protect(text, literals.weak_spots(text, "either end"))
    written = [literal for literal in literals.texts if literal in before or literal in after]
    for shown in (before + harmless, harmless + after):
        found = [literal for literal in literals.texts if literal in fold(shown) and literal not in written]
        assert found == []
    around = stand_ins.protect(text, literals.weak_spots(text, "both ends at once"))
    if text:
        assert not [each for each in literals.texts if each in fold(before + around + after) and each not in written]


def test_characters_that_look_like_stand_ins_are_hidden_too() -> None:
    stand_ins = StandIns()
    typed = "\U0010a000 and \U0010a001"
    pieces = stand_ins.split(stand_ins.protect(typed, set()) + stand_ins.mark(Hidden(text="!")))
    assert "".join(piece.text if isinstance(piece, Hidden) else piece for piece in pieces) == typed + "!"


def test_stand_ins_come_back_as_what_they_stand_for() -> None:
    stand_ins = StandIns()
    first, second = Hidden(text="one"), Hidden(text="two")
    names = stand_ins.name(first), stand_ins.name(second)
    assert stand_ins.split(f"a{names[1]}{names[0]}7{names[1]}") == ["a", second, first, "7", second]
    assert not stand_ins.left_damaged(stand_ins.split("".join(names)))


@pytest.mark.parametrize("change", [str.upper, str.lower, str.title, lambda name: name[:-1]])
def test_a_changed_name_is_noticed(change: object) -> None:
    assert callable(change)
    stand_ins = StandIns()
    name = stand_ins.name(Hidden(text="one"))
    assert stand_ins.left_damaged(stand_ins.split(f"before {change(name)} after"))
