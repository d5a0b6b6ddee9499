"""Special tokens in text: cut out of a template's own, made harmless in everybody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.engine.worker.conversation import HiddenContent, Placeholders, SpecialTexts, fold

_ALPHABET = "ab<>|"
_words = st.text(_ALPHABET, max_size=12)
_special_texts = st.lists(st.text(_ALPHABET, min_size=2, max_size=5), max_size=4).map(SpecialTexts)


def test_the_longest_literal_is_cut_first() -> None:
    specials = SpecialTexts(["<a>", "<a>b", "b<"])
    assert specials.cut("x<a>b<a>") == [("x", False), ("<a>b", True), ("<a>", True)]


def test_text_without_literals_stays_whole() -> None:
    assert SpecialTexts(["<a>"]).cut("plain") == [("plain", False)]
    assert SpecialTexts(["<a>"]).cut("") == []


@given(specials=_special_texts, text=_words)
def test_cutting_loses_nothing_and_leaves_no_literal(specials: SpecialTexts, text: str) -> None:
    fragments = specials.cut(text)
    assert "".join(fragment for fragment, _ in fragments) == text
    for fragment, is_special in fragments:
        assert (fragment in specials.texts) if is_special else not any(each in fragment for each in specials.texts)


@given(specials=_special_texts, text=_words)
def test_inert_fragments_hold_no_literal(specials: SpecialTexts, text: str) -> None:
    fragments = specials.split_inert(text)
    assert "".join(fragments) == text
    assert not any(special in fragment for fragment in fragments for special in specials.texts)


def test_a_literal_is_made_inert_after_its_first_character() -> None:
    assert SpecialTexts(["<think>"]).split_inert("a<think>b<<think>") == ["a<", "think>b<<", "think>"]


@given(specials=_special_texts, text=_words.map(lambda text: text.upper()), before=_words, after=_words)
def test_harmless_text_never_becomes_a_literal(specials: SpecialTexts, text: str, before: str, after: str) -> None:
    placeholders = Placeholders()
    harmless = placeholders.protect(text, specials.weak_spots(text, "either end"))
    written = [special for special in specials.texts if special in before or special in after]
    for shown in (before + harmless, harmless + after):
        found = [special for special in specials.texts if special in fold(shown) and special not in written]
        assert found == []
    around = placeholders.protect(text, specials.weak_spots(text, "both ends at once"))
    if text:
        assert not [each for each in specials.texts if each in fold(before + around + after) and each not in written]


def test_characters_that_look_like_placeholders_are_hidden_too() -> None:
    placeholders = Placeholders()
    typed = "\U0010a000 and \U0010a001"
    pieces = placeholders.split(placeholders.protect(typed, set()) + placeholders.mark(HiddenContent(text="!")))
    assert "".join(piece.text if isinstance(piece, HiddenContent) else piece for piece in pieces) == typed + "!"


def test_placeholders_are_replaced_by_their_texts() -> None:
    placeholders = Placeholders()
    first, second = HiddenContent(text="one"), HiddenContent(text="two")
    names = placeholders.name(first), placeholders.name(second)
    assert placeholders.split(f"a{names[1]}{names[0]}7{names[1]}") == ["a", second, first, "7", second]
    assert not placeholders.has_damaged_names(placeholders.split("".join(names)))


@pytest.mark.parametrize("change", [str.upper, str.lower, str.title, lambda name: name[:-1]])
def test_changed_placeholder_is_detected(change: object) -> None:
    assert callable(change)
    placeholders = Placeholders()
    name = placeholders.name(HiddenContent(text="one"))
    assert placeholders.has_damaged_names(placeholders.split(f"before {change(name)} after"))
