"""The base of all dialogs, and a dialog with one question, its consequence, and a button for each answer."""

from collections.abc import Callable, Sequence

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from qwendesk.widgets.buttons import describe, press_by_enter
from qwendesk.widgets.tab_order import refocus

# Width of the dialog in logical pixels, at which its sentences are wrapped. Wide buttons make it wider.
_WIDTH = 420


def _do_nothing() -> None:
    pass


class DialogButton(msgspec.Struct, frozen=True):
    """A button of a question. Without `run`, it only closes the dialog."""

    name: str
    text: str
    run: Callable[[], None] = _do_nothing


class Dialog(QDialog):
    """A dialog in which keys do what they do in the window.

    The focus of a control that hides goes to the nearest one, and Enter presses the focused button before the default.
    """

    def focusNextPrevChild(self, forward: bool) -> bool:
        return refocus(self) or super().focusNextPrevChild(forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not press_by_enter(self, event):
            super().keyPressEvent(event)


class QuestionDialog(Dialog):
    """Closes with any answer, and deletes itself. Esc gives the last answer, which must be the harmless one."""

    def __init__(
        self, parent: QWidget, name: str, question: str, consequence: str, answers: Sequence[DialogButton], default: str
    ) -> None:
        """`default` is the name of the answer that Enter gives."""
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(question)
        self.setAccessibleName(question)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(8)
        for part, text, kind in (("question", question, "heading"), ("consequence", consequence, "dim")):
            label = QLabel(text)
            label.setObjectName(f"{name}.{part}")
            label.setProperty("kind", kind)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            column.addWidget(label)
        row = QHBoxLayout()
        row.setContentsMargins(0, 8, 0, 0)
        row.setSpacing(8)
        row.addStretch(1)
        for answer in answers:
            row.addWidget(self._button(answer, is_default=answer.name == default, is_last=answer is answers[-1]))
        column.addLayout(row)
        # Qt would take the height of the sentences at the width that they would like, not at this one.
        width = max(min(_WIDTH, parent.window().width() - 40), column.minimumSize().width())
        self.setFixedSize(width, column.totalHeightForWidth(width))

    def _button(self, answer: DialogButton, *, is_default: bool, is_last: bool) -> QPushButton:
        button = QPushButton(answer.text)
        describe(button, f"{self.objectName()}.{answer.name}", answer.text, shortcut="Esc" if is_last else "")
        button.setAutoDefault(False)
        if is_default:
            button.setProperty("kind", "primary")
            button.setDefault(True)
            button.setFocus()
        button.clicked.connect(self.reject if is_last else self.accept)
        button.clicked.connect(lambda _checked=False: answer.run())
        return button
