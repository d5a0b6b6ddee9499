"""After an action elsewhere in the window, typing goes on in the message field; and when the window is active."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from qwendesk.widgets.actions import installed
from qwendesk.widgets.notice import Notice
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


def is_in_composer(desk: Desk) -> bool:
    return desk.window.focusWidget() is desk.composer_text


def focus_button(desk: Desk, name: str) -> QWidget:
    """What a click on a button does, and Tab."""
    button = desk.find(name, QWidget)
    button.setFocus()
    assert desk.window.focusWidget() is button
    return button


async def test_after_eject_and_after_a_load_the_message_field_has_the_focus(desk: Desk) -> None:
    focus_button(desk, "model.eject")
    desk.click("model.eject")
    await desk.until(lambda: desk.parts.engine.state.report is None)
    assert is_in_composer(desk)
    focus_button(desk, "model.button")
    await desk.load_demo()
    assert is_in_composer(desk)


async def test_the_first_start_gives_way_to_the_message_field(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.parts.begin()
    await desk.until(lambda: not desk.is_shown("composer.text"))
    focus_button(desk, "model.button")
    await desk.load_demo()
    assert desk.is_shown("composer.text")
    assert is_in_composer(desk)


async def test_after_a_click_on_send_the_next_message_can_be_typed(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="An answer."))
    desk.composer_text.setPlainText("A question?")
    focus_button(desk, "composer.send")
    desk.click("composer.send")
    await desk.until(lambda: len(desk.parts.chat.conversation.turns) == 1 and not desk.parts.chat.busy)
    assert is_in_composer(desk)


async def test_a_load_leaves_the_focus_where_the_user_is_typing(desk: Desk) -> None:
    search = desk.find("chats.search", QLineEdit)
    search.setFocus()
    desk.window.eject()
    await desk.until(lambda: desk.parts.engine.state.report is None)
    await desk.load_demo()
    assert desk.window.focusWidget() is search


async def test_a_branch_can_be_continued_at_once(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="An answer."))
    await desk.ask("A question?")
    first = desk.parts.chat.chat_id
    focus_button(desk, "thread.branch.1")
    desk.click("thread.branch.1")
    await desk.until(lambda: desk.parts.chat.chat_id != first)
    assert is_in_composer(desk)


async def test_closing_a_banner_or_a_notice_gives_the_focus_back(desk: Desk) -> None:
    desk.window.report("Something went wrong", "Try again.")
    focus_button(desk, "banner.dismiss")
    desk.click("banner.dismiss")
    assert is_in_composer(desk)
    desk.window.add_notice(Notice("news", "Something happened", "Read this."))
    focus_button(desk, "news.dismiss")
    QTest.keyClick(desk.window.focusWidget(), Qt.Key.Key_Space)
    assert is_in_composer(desk)


@pytest.mark.parametrize("page", ["models", "settings"])
async def test_the_chat_button_of_the_rail_leads_to_the_message_field(desk: Desk, page: str) -> None:
    desk.window.go_to(page)
    desk.click("rail.chat")
    assert is_in_composer(desk)


async def test_a_hidden_control_of_a_panel_leaves_the_focus_in_the_panel_and_a_closed_panel_does_not(
    desk: Desk,
) -> None:
    installed(desk.window)["inspector"].trigger()
    inspector = desk.find("inspector", QWidget)
    focus_button(desk, "inspector.close").hide()
    assert inspector.isAncestorOf(desk.window.focusWidget())
    installed(desk.window)["inspector"].trigger()
    assert is_in_composer(desk)


async def test_a_hidden_window_is_not_told_to_be_active(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the app ends, the system still reports that a dialog has closed; the window's parts are gone by then."""
    told: list[bool] = []
    desk.window.activated.connect(lambda: told.append(True))
    monkeypatch.setattr(desk.window, "isActiveWindow", lambda: True)
    QApplication.sendEvent(desk.window, QEvent(QEvent.Type.ActivationChange))
    assert told
    desk.window.hide()
    told.clear()
    QApplication.sendEvent(desk.window, QEvent(QEvent.Type.ActivationChange))
    assert not told
