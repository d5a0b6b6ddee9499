"""The palette ranks commands by the letters typed."""

import pytest
from PySide6.QtWidgets import QLineEdit, QListWidget, QWidget

from qwendesk.app.window.command_menus import match_score, ranked
from qwendesk.widgets.actions import installed
from tests.window_desk import Desk

TEXTS = {"new_chat": "New chat", "new_incognito": "New incognito chat", "eject": "Eject the model", "quit": "Quit"}


@pytest.mark.parametrize("query", ["", "new", "NC", "nchat", "n c", "chat", "at"])
def test_letters_in_order_match(query: str) -> None:
    assert match_score(query, "New chat") is not None


@pytest.mark.parametrize("query", ["x", "tahc", "newchats", "newn"])
def test_letters_in_another_order_do_not_match(query: str) -> None:
    assert match_score(query, "New chat") is None


@pytest.mark.parametrize(
    ("query", "first"), [("nc", "new_chat"), ("nic", "new_incognito"), ("em", "eject"), ("q", "quit")]
)
def test_letters_at_the_start_of_words_rank_first(query: str, first: str) -> None:
    assert ranked(query, TEXTS, ())[0] == first


def test_recently_used_commands_are_listed_first_without_a_query() -> None:
    assert ranked("", TEXTS, ("quit", "eject"))[:2] == ["quit", "eject"]
    assert ranked("", TEXTS, ()) == list(TEXTS)


def test_a_recently_used_command_ranks_first_among_equals() -> None:
    texts = {"new_chat": "Same", "eject": "Same"}
    assert ranked("same", texts, ("eject",)) == ["eject", "new_chat"]


async def test_the_palette_is_as_high_as_its_results(desk: Desk) -> None:
    desk.window.resize(1280, 800)
    installed(desk.window)["palette"].trigger()
    palette, found = desk.find("palette", QWidget), desk.find("palette.list", QListWidget)
    query = desk.find("palette.query", QLineEdit)
    heights = []
    for text in ("", "new", "no such command at all"):
        query.setText(text)
        heights.append(palette.height())
        last = found.visualItemRect(found.item(found.count() - 1)).bottom() if found.count() else 0
        assert not found.isVisible() or min(last, found.viewport().height() - 1) == found.viewport().height() - 1
    assert heights[0] > heights[1] > heights[2]
    assert desk.is_shown("palette.nothing")
    query.setText("")
    assert palette.height() == heights[0] < desk.window.height()
    palette.close()
