"""Every action of the window: one table, one key each, and all of them by keyboard alone."""

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QListWidget, QMenu, QPlainTextEdit, QWidget

from qwendesk.app.window.command_menus import Palette
from qwendesk.widgets.actions import COMMANDS, commands, installed
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
ANCHORS = {
    "new_chat": "Ctrl+N",
    "model_menu": "Ctrl+L",
    "page_chat": "Ctrl+1",
    "page_models": "Ctrl+2",
    "page_engine": "Ctrl+3",
    "page_bench": "Ctrl+4",
    "page_server": "Ctrl+5",
    "page_settings": "Ctrl+,",
    "search_chats": "Ctrl+K",
    "find": "Ctrl+F",
    "sidebar": "Ctrl+B",
    "inspector": "Ctrl+.",
    "stop": "Esc",
    "thinking": "Ctrl+T",
    "regenerate": "Ctrl+R",
    "copy_answer": "Ctrl+Shift+C",
    "zoom_in": "Ctrl++",
    "zoom_out": "Ctrl+-",
    "shortcuts": "F1",
    "palette": "Ctrl+Shift+P",
}
"""The keys that people know from other apps."""


def keys_of(*lines: str) -> frozenset[str]:
    return frozenset(key for line in lines for key in line.split())


EDITING = keys_of(
    "Left Right Up Down Home End PgUp PgDown Del Backspace Return Enter Shift+Return Shift+Enter",
    "Ctrl+A Ctrl+C Ctrl+V Ctrl+X Ctrl+Z Ctrl+Shift+Z",
)
"""What moves in a text and changes it, on every system; with Shift, what moves selects."""
ON_PC = EDITING | keys_of(
    "Ctrl+Left Ctrl+Right Ctrl+Home Ctrl+End Ctrl+Backspace Ctrl+Del Ctrl+Ins Shift+Ins Shift+Del Ctrl+Y"
)
ON_WINDOWS = ON_PC | keys_of("Alt+Backspace Alt+Shift+Backspace")
ON_LINUX = ON_PC | keys_of("Ctrl+D Ctrl+E Ctrl+K Ctrl+U Ctrl+Shift+A Ctrl+Shift+Ins")
ON_MAC = EDITING | keys_of(
    "Ctrl+Left Ctrl+Right Ctrl+Up Ctrl+Down Alt+Left Alt+Right Alt+Up Alt+Down Alt+Backspace Alt+Del Ctrl+Backspace",
    "Meta+A Meta+B Meta+D Meta+E Meta+F Meta+H Meta+K Meta+N Meta+O Meta+P Meta+T Meta+V",
    "Meta+Left Meta+Right Meta+Up Meta+Down Meta+PgUp Meta+PgDown",
)
SHARED = {"Ctrl+End", "Ctrl+K"}
"""The composer gives Ctrl+End on at its end, and every field on Linux leaves Ctrl+K to the window."""
EDITING_KEYS = [
    key
    for key in QKeySequence.StandardKey
    if key.name.startswith(("MoveTo", "Select", "Delete", "Insert", "Undo", "Redo", "Cut", "Copy", "Paste", "Deselect"))
]


def with_selecting(keys: frozenset[str]) -> set[str]:
    moving = ("Left", "Right", "Up", "Down", "Home", "End", "PgUp", "PgDown")
    return {*keys, *(QKeySequence(f"Shift+{key}").toString() for key in keys if key.endswith(moving))}


def open_palette(desk: Desk) -> Palette:
    desk.press(Qt.Key.Key_P, CTRL | SHIFT)
    return desk.find("palette", Palette)


def shown(palette: Palette) -> list[str]:
    entries = palette.findChild(QListWidget, "palette.list")
    assert entries is not None
    return [entries.item(row).data(Qt.ItemDataRole.UserRole) for row in range(entries.count())]


def query(palette: Palette) -> QLineEdit:
    field = palette.findChild(QLineEdit, "palette.query")
    assert field is not None
    return field


def test_common_commands_have_their_usual_keys() -> None:
    assert {key: COMMANDS[key].shortcut for key in ANCHORS} == ANCHORS  # type: ignore[index]


def test_no_key_is_used_twice() -> None:
    given = [QKeySequence(keys).toString() for command in COMMANDS.values() for keys in command.shortcuts]
    assert "" not in given
    assert len(given) == len(set(given))


@pytest.mark.parametrize(("mac", "keys"), [(False, ON_WINDOWS), (False, ON_LINUX), (True, ON_MAC)])
def test_no_command_takes_a_key_that_edits_text(mac: bool, keys: frozenset[str]) -> None:
    given = {QKeySequence(key).toString() for each in commands(mac=mac).values() for key in each.shortcuts}
    assert given & with_selecting(keys) <= SHARED


def test_text_fields_do_not_take_the_keys_of_commands(app: QApplication) -> None:
    here = {binding.toString() for key in EDITING_KEYS for binding in QKeySequence.keyBindings(key)}
    assert {keys for each in COMMANDS.values() for keys in each.shortcuts} & here <= SHARED
    for field in (QLineEdit("a b"), QPlainTextEdit("a\nb")):
        for command in COMMANDS.values():
            for keys in command.shortcuts:
                pressed = QKeySequence(keys)[0]
                asked = QKeyEvent(QEvent.Type.ShortcutOverride, pressed.key(), pressed.keyboardModifiers())
                asked.ignore()
                QApplication.sendEvent(field, asked)
                assert not asked.isAccepted() or keys == "Ctrl+End", f"{keys} stays in a {type(field).__name__}"


async def test_palette_lists_every_action(desk: Desk) -> None:
    actions = installed(desk.window)
    assert len(actions) == len([each for each in desk.window.actions() if each.objectName().startswith("action.")])
    palette = open_palette(desk)
    assert set(shown(palette)) == set(actions) - {"palette", "menu", "stop"}
    assert all(COMMANDS[key].shortcut for key in ("palette", "menu", "stop"))
    palette.close()


async def test_palette_runs_a_found_command_and_remembers_it(desk: Desk) -> None:
    palette = open_palette(desk)
    QTest.keyClicks(query(palette), "engi")
    assert shown(palette)[0] == "page_engine"
    QTest.keyClick(query(palette), Qt.Key.Key_Return)
    assert desk.find("engine.page", QWidget).isVisible()
    assert desk.parts.desktop.menus.recent == ("page_engine",)
    await desk.until(lambda: not desk.has("palette"))
    installed(desk.window)["palette"].trigger()
    again = desk.find("palette", Palette)
    assert shown(again)[0] == "page_engine"
    again.close()


async def test_palette_is_used_with_arrow_keys_and_shows_when_nothing_is_found(desk: Desk) -> None:
    palette = open_palette(desk)
    second = shown(palette)[1]
    QTest.keyClick(query(palette), Qt.Key.Key_Down)
    entries = palette.findChild(QListWidget, "palette.list")
    assert entries is not None
    assert entries.currentItem().data(Qt.ItemDataRole.UserRole) == second
    QTest.keyClicks(query(palette), "zzz")
    assert shown(palette) == []
    nothing = palette.findChild(QLabel, "palette.nothing")
    assert nothing is not None
    assert nothing.isVisible()
    QTest.keyClick(query(palette), Qt.Key.Key_Return)
    palette.close()


async def test_f1_lists_every_shortcut(desk: Desk) -> None:
    desk.press(Qt.Key.Key_F1)
    dialog = desk.find("shortcuts", QWidget)
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    for key, action in installed(desk.window).items():
        if COMMANDS[key].shortcut:
            assert action.text() in texts
            assert QKeySequence(COMMANDS[key].shortcut).toString(QKeySequence.SequenceFormat.NativeText) in texts
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


async def test_the_menu_has_every_action_with_its_key(desk: Desk) -> None:
    desk.press(Qt.Key.Key_F10)
    menu = desk.find("menu", QMenu)
    listed = {action for each in (menu, *menu.findChildren(QMenu)) for action in each.actions()}
    missing = {key for key, action in installed(desk.window).items() if action not in listed}
    assert missing == {"menu"}
    menu.close()


async def test_ctrl_r_regenerates_and_ctrl_shift_c_copies_the_answer(desk: Desk) -> None:
    desk.client.answers += [ScriptedAnswer(reasoning="hm", text="One."), ScriptedAnswer(reasoning="hm", text="Two.")]
    await desk.ask("Count")
    desk.press(Qt.Key.Key_C, CTRL | SHIFT)
    assert QApplication.clipboard().text() == "One."
    desk.press(Qt.Key.Key_R, CTRL)
    await desk.until(lambda: desk.parts.chat.conversation.turns[-1].answer.text == "Two." and not desk.parts.chat.busy)
    desk.press(Qt.Key.Key_C, CTRL | SHIFT)
    assert QApplication.clipboard().text() == "Two."


async def test_keys_for_the_last_answer_do_nothing_in_an_empty_chat(desk: Desk) -> None:
    QApplication.clipboard().setText("before")
    desk.press(Qt.Key.Key_C, CTRL | SHIFT)
    desk.press(Qt.Key.Key_R, CTRL)
    desk.press(Qt.Key.Key_R, CTRL | SHIFT)
    assert QApplication.clipboard().text() == "before"
    assert desk.parts.chat.conversation.turns == ()
