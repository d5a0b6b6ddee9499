"""A few letters find a command."""

import pytest

from qwendesk.ui.frame.fuzzy import score
from qwendesk.ui.frame.palette import ranked

TEXTS = {"new_chat": "New chat", "new_incognito": "New incognito chat", "eject": "Eject the model", "quit": "Quit"}


@pytest.mark.parametrize("query", ["", "new", "NC", "nchat", "n c", "chat", "at"])
def test_letters_in_their_order_fit(query: str) -> None:
    assert score(query, "New chat") is not None


@pytest.mark.parametrize("query", ["x", "tahc", "newchats", "newn"])
def test_others_do_not(query: str) -> None:
    assert score(query, "New chat") is None


@pytest.mark.parametrize(
    ("query", "first"), [("nc", "new_chat"), ("nic", "new_incognito"), ("em", "eject"), ("q", "quit")]
)
def test_starts_of_words_come_first(query: str, first: str) -> None:
    assert ranked(query, TEXTS, ())[0] == first


def test_without_letters_those_used_last_come_first() -> None:
    assert ranked("", TEXTS, ("quit", "eject"))[:2] == ["quit", "eject"]
    assert ranked("", TEXTS, ()) == list(TEXTS)


def test_used_last_decides_between_equals() -> None:
    texts = {"new_chat": "Same", "eject": "Same"}
    assert ranked("same", texts, ("eject",)) == ["eject", "new_chat"]
