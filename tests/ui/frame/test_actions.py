"""Every action of the window: one table, one key each, and all of them by keyboard alone."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QListWidget, QMenu, QWidget

from qwendesk.ui.frame.actions import COMMANDS, installed
from qwendesk.ui.frame.palette import Palette
from tests.fakes.engine import ScriptedAnswer
from tests.ui.desk import Desk

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
ANCHORS = {
    "new_chat": "Ctrl+N",
    "model_menu": "Ctrl+L",
    "page_chat": "Ctrl+1",
    "page_models": "Ctrl+2",
    "page_engine": "Ctrl+3",
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


def test_the_keys_people_know() -> None:
    assert {key: COMMANDS[key].shortcut for key in ANCHORS} == ANCHORS  # type: ignore[index]


def test_no_key_is_given_twice() -> None:
    given = [QKeySequence(keys).toString() for command in COMMANDS.values() for keys in command.shortcuts]
    assert "" not in given
    assert len(given) == len(set(given))


async def test_every_action_is_in_the_palette_which_has_a_key(desk: Desk) -> None:
    actions = installed(desk.window)
    assert len(actions) == len([each for each in desk.window.actions() if each.objectName().startswith("action.")])
    palette = open_palette(desk)
    assert set(shown(palette)) == set(actions) - {"palette", "menu", "stop"}
    assert all(COMMANDS[key].shortcut for key in ("palette", "menu", "stop"))
    palette.close()


async def test_the_palette_runs_what_a_few_letters_find_and_remembers_it(desk: Desk) -> None:
    palette = open_palette(desk)
    QTest.keyClicks(query(palette), "engi")
    assert shown(palette)[0] == "page_engine"
    QTest.keyClick(query(palette), Qt.Key.Key_Return)
    assert desk.find("engine.page", QWidget).isVisible()
    assert desk.parts.around.finder.recent == ("page_engine",)
    await desk.until(lambda: not desk.has("palette"))
    installed(desk.window)["palette"].trigger()
    again = desk.find("palette", Palette)
    assert shown(again)[0] == "page_engine"
    again.close()


async def test_the_palette_by_arrows_and_without_a_result(desk: Desk) -> None:
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


async def test_f1_shows_every_key(desk: Desk) -> None:
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


async def test_ctrl_r_answers_again_and_ctrl_shift_c_copies_the_answer_alone(desk: Desk) -> None:
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
