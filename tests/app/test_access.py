"""Every control can be found by name, explains itself, and is reached by keyboard."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QPlainTextEdit,
    QTextBrowser,
    QWidget,
)

from qwendesk.core.failures import LoadFailure
from qwendesk.widgets.actions import COMMANDS
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

NAMED = (
    "rail.chat",
    "model.button",
    "model.eject",
    "thread.view",
    "thread.message.1",
    "thread.think.1",
    "thread.stats.1",
    "composer.text",
    "composer.attach",
    "composer.thinking",
    "composer.preset",
    "composer.send",
    "composer.answernow",
    "meter.bar",
    "meter.state",
)


async def fill_window(desk: Desk, picture: Path) -> None:
    """Show a turn with code and reasoning, an attachment and a banner."""
    desk.client.answers.append(ScriptedAnswer(reasoning="hm", text="See:\n\n```python\nx = 1\n```\n"))
    desk.drop(picture)
    await desk.until(lambda: desk.has("composer.attachment.1"))
    await desk.ask("Show code")
    desk.drop(picture)
    await desk.until(lambda: desk.has("composer.attachment.2"))
    desk.client.load_result = LoadFailure("other", "It failed", "For a test.", ("line",))
    desk.parts.window.load_mmproj("/models/x.gguf")
    await desk.until(lambda: desk.is_shown("banner"))
    desk.click("banner.details")
    desk.client.load_result = None
    desk.parts.window.load_demo()
    await desk.until(lambda: not desk.is_shown("banner"))
    desk.window.chat_page.report("A title", "A sentence")


def interactive(desk: Desk) -> list[QWidget]:
    kinds = (QAbstractButton, QPlainTextEdit, QTextBrowser, QAbstractSpinBox)
    return [each for kind in kinds for each in desk.window.findChildren(kind) if each.isVisible()]


async def test_every_control_has_a_name_and_buttons_a_tooltip(desk: Desk, shape_picture: Callable[..., Path]) -> None:
    await fill_window(desk, shape_picture("red", "circle"))
    controls = interactive(desk)
    assert len(controls) > 15
    for control in controls:
        assert control.accessibleName(), f"{control!r} has no accessible name"
        if not isinstance(control, QTextBrowser):
            assert control.toolTip(), f"{control!r} has no tooltip"


async def test_every_control_is_reached_by_tab(desk: Desk, shape_picture: Callable[..., Path]) -> None:
    await fill_window(desk, shape_picture("red", "circle"))
    desk.composer_text.setFocus()
    reached: list[QWidget] = []
    for _ in range(200):
        focus = desk.window.focusWidget()
        if focus in reached:
            break
        reached.append(focus)
        QTest.keyClick(focus, Qt.Key.Key_Tab)
    missed = [control for control in interactive(desk) if control.isEnabled() and control not in reached]
    assert missed == []


async def test_enter_presses_the_focused_button(desk: Desk) -> None:
    button = desk.find("rail.models", QAbstractButton)
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Return)
    assert desk.window.page == "models"


async def test_controls_have_their_documented_names(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="hm", text="Yes."))
    await desk.ask("Well?")
    assert [name for name in NAMED if not desk.has(name)] == []


async def test_tooltips_contain_the_shortcut(desk: Desk) -> None:
    for name, command in (
        ("composer.thinking", "thinking"),
        ("model.button", "model_menu"),
        ("chats.new", "new_chat"),
        ("composer.attach", "attach"),
        ("rail.chat", "page_chat"),
    ):
        assert COMMANDS[command].shortcut in desk.find(name, QWidget).toolTip()  # type: ignore[index]


def test_no_shortcut_is_used_twice() -> None:
    given = [keys for command in COMMANDS.values() for keys in command.shortcuts]
    assert len(given) == len(set(given))
