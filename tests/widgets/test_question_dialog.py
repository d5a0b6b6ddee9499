"""Questions are asked in dialogs of our own; Esc changes nothing."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.fixture
def holder(keeper: ThemeKeeper) -> Iterator[QWidget]:
    holder = QWidget()
    holder.resize(900, 600)
    holder.show()
    yield holder
    holder.deleteLater()


@pytest.mark.parametrize(
    ("default", "key", "given"),
    [
        ("no", Qt.Key.Key_Return, []),
        ("yes", Qt.Key.Key_Return, ["yes"]),
        ("no", Qt.Key.Key_Escape, []),
        ("yes", Qt.Key.Key_Escape, []),
    ],
)
def test_enter_gives_the_default_answer_and_esc_changes_nothing(
    holder: QWidget, default: str, key: Qt.Key, given: list[str]
) -> None:
    done: list[str] = []
    answers = (DialogButton("yes", "Delete", lambda: done.append("yes")), DialogButton("no", "Keep"))
    dialog = QuestionDialog(holder, "question", "Delete it?", "This frees 3 GB.", answers, default=default)
    dialog.open()
    consequence = dialog.findChild(QLabel, "question.consequence")
    assert consequence is not None
    assert consequence.text() == "This frees 3 GB."
    QTest.keyClick(dialog, key)
    assert done == given
    assert not dialog.isVisible()


@pytest.mark.parametrize("name", ["yes", "no"])
def test_enter_presses_the_focused_button_before_the_default(holder: QWidget, name: str) -> None:
    done: list[str] = []
    answers = (DialogButton("yes", "Delete", lambda: done.append("yes")), DialogButton("no", "Keep"))
    default = "no" if name == "yes" else "yes"
    dialog = QuestionDialog(holder, "question", "Delete it?", "This frees 3 GB.", answers, default=default)
    dialog.open()
    button = dialog.findChild(QPushButton, f"question.{name}")
    assert button is not None
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Return)
    assert done == (["yes"] if name == "yes" else [])


def test_nothing_is_cut_off_by_wide_buttons(holder: QWidget) -> None:
    answers = [DialogButton(str(number), f"An answer of some length {number}") for number in range(3)]
    dialog = QuestionDialog(holder, "question", "Delete it now, " * 6, "This frees 3 GB. " * 9, answers, default="0")
    dialog.open()
    for part in (*dialog.findChildren(QLabel), *dialog.findChildren(QPushButton)):
        needed = part.heightForWidth(part.width()) if part.hasHeightForWidth() else part.sizeHint().height()
        assert part.height() >= needed, part.objectName()
        assert part.width() >= part.minimumSizeHint().width(), part.objectName()
