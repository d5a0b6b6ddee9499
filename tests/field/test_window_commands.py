"""What the keyboard and a drop do is seen: on the page where it happens, in the field that was meant."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from qwendesk.chat.reopen_guard import ReopenGuard
from qwendesk.chat.view.sidebar.chat_list import ChatList
from qwendesk.engine.state import Phase
from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.fakes.engine import ScriptedAnswer
from tests.field.grid import SERVER, Kind, Way, case
from tests.window_desk import Desk, files_mime

ELSEWHERE = dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), "has no pages and no focus")
UNSEEN = Kind("A command acts where the user doesn't see it", ELSEWHERE)
FIRST_USE = "first use, 28 November"
UNSEEN_COMMANDS = (
    "new_chat", "regenerate", "continue_answer", "latest", "turn_before", "turn_after", "rename_chat", "copy_answer",
    "export_chats",
)  # fmt: skip
SEEN_COMMANDS = ("find", "thinking", "search_chats", "archive", "sidebar", "inspector", "new_incognito")


@pytest.mark.parametrize("command", UNSEEN_COMMANDS)
@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_a_command_of_the_chat_shows_the_chat(desk: Desk, command: str) -> None:
    await command_from_another_page(desk, command)


@pytest.mark.parametrize("command", SEEN_COMMANDS)
@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="held")
async def test_a_command_of_the_chat_shows_the_chat_as_before(desk: Desk, command: str) -> None:
    await command_from_another_page(desk, command)


@pytest.mark.parametrize("command", ["stop", "answer_now"])
@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_a_command_on_the_running_answer_shows_it(desk: Desk, command: str) -> None:
    desk.client.answers = [ScriptedAnswer(reasoning="word " * 200, text="word " * 200, tokens_per_second=100)]
    desk.send("hello")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.ANSWERING)
    desk.window.show_page("models")

    desk.find(f"action.{command}", QAction).trigger()

    assert desk.window.page == "chat"
    desk.find("action.stop", QAction).trigger()
    await desk.until(lambda: not desk.parts.chat.busy)
    desk.window.show_page("models")
    desk.find(f"action.{command}", QAction).trigger()
    assert desk.window.page == "models", "nothing to stop"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("copy_answer", "no answer yet"),
        ("regenerate", "no answer yet"),
        ("continue_answer", "no answer yet"),
        ("find", "no messages yet"),
        ("rename_chat", "no name"),
    ],
)
@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_a_command_that_cannot_be_performed_says_why(desk: Desk, command: str, said: str) -> None:
    desk.window.show_page("models")

    desk.find(f"action.{command}", QAction).trigger()

    assert desk.window.page == "chat"
    assert said in desk.window.chat_page.composer.notice


@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_a_copied_answer_is_said(desk: Desk) -> None:
    await desk.ask("hello")

    desk.find("action.copy_answer", QAction).trigger()

    assert desk.window.chat_page.composer.notice == "The last answer was copied."
    desk.find("action.continue_answer", QAction).trigger()
    assert desk.window.chat_page.composer.notice == "The last answer is complete."


async def command_from_another_page(desk: Desk, command: str) -> None:
    await desk.ask("hello")
    desk.window.show_page("models")

    desk.find(f"action.{command}", QAction).trigger()

    assert desk.window.page == "chat"
    await desk.until(lambda: not desk.parts.chat.busy)


@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_f2_renames_the_chat_that_was_clicked(desk: Desk, tmp_path: Path) -> None:
    await ChatsDesk(desk, tmp_path).open_file()
    await desk.ask("hello")
    chats = desk.find("chats.list", ChatList)
    await desk.until(lambda: bool(chats.selected_chats()))
    row = chats.selectionModel().selectedIndexes()[0]
    QTest.mouseClick(chats.viewport(), Qt.MouseButton.LeftButton, pos=chats.visualRect(row).center())
    assert desk.composer_text.hasFocus()

    desk.find("action.rename_chat", QAction).trigger()
    editor = desk.window.focusWidget()
    assert isinstance(editor, QLineEdit)
    QTest.keyClicks(editor, "Greetings")
    QTest.keyClick(editor, Qt.Key.Key_Return)

    await desk.until(lambda: [chat.title for chat in chats.selected_chats()] == ["Greetings"])
    assert not desk.composer_text.toPlainText()


@pytest.mark.parametrize("page", ["chat", "models", "settings"])
@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_a_model_file_is_loaded_at_once_where_none_is_loaded(desk: Desk, page: str, tmp_path: Path) -> None:
    model = tmp_path / "some-model.gguf"
    model.write_bytes(b"GGUF")
    desk.window.show_page(page)
    desk.drag(files_mime(model))
    assert (
        desk.find("drop.target", QWidget).findChild(QLabel).text() == "Drop to choose what to do with some-model.gguf"
    )
    desk.window.eject()
    await desk.until(lambda: not desk.parts.engine.state.model)

    desk.drag(files_mime(model))
    assert desk.is_shown("drop.target")
    assert desk.find("drop.target", QWidget).findChild(QLabel).text() == "Drop to load some-model.gguf"
    desk.drop(model)

    requested = desk.parts.engine.observed
    await desk.until(lambda: requested.value.requested is not None and requested.value.requested.model == str(model))
    assert desk.window.page == "chat"
    assert not desk.is_shown("drop.target")


@case(UNSEEN, Way.WINDOW, report=FIRST_USE, before="held")
async def test_after_a_kill_the_chat_is_shown_that_waited_for_its_answer(
    desk: Desk, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    chats = await ChatsDesk(desk, tmp_path / "one").open_file()
    # No word comes, so nothing is being written while the folder is copied.
    desk.client.answers = [ScriptedAnswer(text="word", tokens_per_second=1e-6)]
    desk.send("hello")
    await desk.until(lambda: chats.titles == ["hello"] and desk.parts.chat.busy)
    await desk.parts.chats.services.chat_list.wait_for_writes()
    desk.window.show_page("models")
    await asyncio.to_thread(shutil.copytree, chats.folder, tmp_path / "as killed")
    desk.find("action.stop", QAction).trigger()
    await desk.until(lambda: not desk.parts.chat.busy)

    again = make_desk()
    opener = again.parts.chats.last_chat_opener(ReopenGuard(tmp_path / "marks"))
    again.parts.chats.start(tmp_path / "as killed", opener.may_reopen)

    await again.until(lambda: [turn.question.text for turn in again.parts.chat.conversation.turns] == ["hello"])
    assert again.window.page == "chat"
    assert again.is_shown("thread.view")
