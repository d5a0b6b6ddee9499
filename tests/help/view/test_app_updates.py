"""A newer version in the window: absent without a release, a card of the settings, and one notice for each version."""

import datetime
from collections.abc import Callable, Iterator

import msgspec
import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

import qwendesk
from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.help.app_updates import AppUpdates, Release, UpdateState
from tests.help.release_page import answer, content
from tests.hub.hub_server import FakeHub, running_hub
from tests.window_desk import Desk

CARD = "settings.version"
NEXT = Release("99.1.0", datetime.date(2026, 12, 19), "<b>Bold</b> & more")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """There is a release: a window that is made now has the part."""
    with running_hub() as page:
        monkeypatch.setattr(qwendesk, "RELEASES", f"{page.endpoint}/releases")
        yield page
    # Later tests have the same home folder.
    (paths.data_folder() / "app-updates.json").unlink(missing_ok=True)


def updates_of(desk: Desk) -> AppUpdates:
    updates = desk.parts.services.app_updates
    assert updates is not None
    return updates


async def check(desk: Desk) -> None:
    desk.window.go_to("settings")
    desk.click(f"{CARD}.check")
    await updates_of(desk).wait_until_settled()


def test_nothing_is_there_without_a_release(desk: Desk) -> None:
    assert desk.parts.services.app_updates is None
    desk.window.go_to("settings")
    assert not desk.has(CARD)
    assert not desk.has(f"{CARD}.check")


async def test_card_says_what_is_newer_and_opens_the_page(
    desk: Desk, page: FakeHub, make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
    answer(page, content(notes=NEXT.notes))
    desk = make_desk()
    desk.window.go_to("settings")
    assert desk.text_of(f"{CARD}.status") == f"You have QwenDesk {__version__}."
    assert not desk.is_shown(f"{CARD}.page")

    await check(desk)

    assert desk.text_of(f"{CARD}.status") == f"QwenDesk 99.1.0 is available (2026-12-19). You have {__version__}."
    assert desk.text_of(f"{CARD}.notes") == NEXT.notes
    assert desk.find(f"{CARD}.notes", QLabel).textFormat() == Qt.TextFormat.PlainText
    assert not desk.has("update"), "whoever asked needs no notice"
    desk.click(f"{CARD}.page")
    assert [url.toString() for url in opened] == [f"{page.endpoint}/releases/latest"]


async def test_card_says_that_there_is_nothing_newer_or_why_it_is_not_known(
    desk: Desk, page: FakeHub, make_desk: Callable[[], Desk]
) -> None:
    desk = make_desk()
    await check(desk)
    assert desk.text_of(f"{CARD}.status").endswith("has no release of QwenDesk.")

    answer(page, content(version=__version__))
    await check(desk)
    assert desk.text_of(f"{CARD}.status").startswith(f"You have QwenDesk {__version__}, the newest version.")

    desk.parts.services.settings.change({"offline": True})
    assert not desk.find(f"{CARD}.check", QPushButton).isEnabled()
    desk.parts.services.settings.change({"offline": False})


async def test_notice_comes_once_for_each_version_and_shows_the_notes_as_text(
    desk: Desk, page: FakeHub, make_desk: Callable[[], Desk]
) -> None:
    desk = make_desk()
    state = updates_of(desk).state

    state.set(UpdateState(newer=msgspec.structs.replace(NEXT, notes="\n".join([NEXT.notes, *"abcdef"]))))

    assert desk.text_of("update.title") == "QwenDesk 99.1.0 is available (2026-12-19)"
    assert desk.text_of("update.sentence").splitlines() == [NEXT.notes, "a", "b", "c"]
    assert desk.find("update.sentence", QLabel).textFormat() == Qt.TextFormat.PlainText
    assert state.value.announced == "99.1.0"
    desk.click("update.dismiss")
    state.set(msgspec.structs.replace(state.value, problem="No connection."))
    assert not desk.is_shown("update")


async def test_long_word_in_the_notes_does_not_widen_the_settings(
    desk: Desk, page: FakeHub, make_desk: Callable[[], Desk]
) -> None:
    desk = make_desk()
    desk.window.resize(560, 700)
    desk.window.go_to("settings")
    updates_of(desk).state.set(UpdateState(newer=msgspec.structs.replace(NEXT, notes="x" * 500), announced="99.1.0"))
    assert desk.find(CARD, QWidget).minimumSizeHint().width() < desk.window.width()
