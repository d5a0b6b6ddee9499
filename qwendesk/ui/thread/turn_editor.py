"""A message being changed in its place: Esc leaves it as it was, Ctrl+Enter takes the change."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.conversation import Turn
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.direction import follow_letters
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.turn_intents import EditDraft, TurnIntents

EDITED = "edited"
"""Property of a message's widget while an editor stands in it: what is typed there is nowhere else."""

_FEWEST_LINES, _MOST_LINES = 2, 18


class _Field(QPlainTextEdit):
    """As tall as its text, up to a point. Tab leaves it."""

    submitted = Signal()
    cancelled = Signal()

    def __init__(self, keeper: ThemeKeeper, text: str) -> None:
        super().__init__()
        self.setProperty("kind", "editor")
        self.setTabChangesFocus(True)
        self.document().setDefaultFont(keeper.theme.font(14))
        follow_letters(self)
        self.setPlainText(text)
        self.moveCursor(QTextCursor.MoveOperation.End)
        self.textChanged.connect(self._fit)
        self._fit()

    def event(self, event: QEvent) -> bool:
        # These keys are commands of the window elsewhere; here they are the editor's.
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and _own_key(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match _own_key(event):
            case "cancel":
                self.cancelled.emit()
            case "submit":
                self.submitted.emit()
            case _:
                super().keyPressEvent(event)

    def _fit(self) -> None:
        lines = sum(max(1, 1 + len(line) // 90) for line in self.toPlainText().split("\n"))
        shown = min(_MOST_LINES, max(_FEWEST_LINES, lines))
        self.setFixedHeight(shown * self.fontMetrics().lineSpacing() + 22)


def _own_key(event: QKeyEvent) -> str:
    """ "cancel", "submit", or "" for every other key."""
    if event.key() == Qt.Key.Key_Escape:
        return "cancel"
    control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
    return "submit" if control and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) else ""


class TurnEditor(QFrame):
    """`done` and `typed` carry the text and the thought; a question has no thought to be changed."""

    done = Signal(str, str)
    typed = Signal(str, str)
    cancelled = Signal()

    def __init__(self, keeper: ThemeKeeper, turn_id: int, text: str, reasoning: str | None = None) -> None:
        """`reasoning` is None for a question."""
        super().__init__()
        self.setProperty("kind", "question")
        self.setObjectName(f"thread.editor.{turn_id}")
        self._turn_id = turn_id
        self.may_be_empty = False
        """Something is attached to the question, which needs no words then."""
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        self._thought: _Field | None = None
        if reasoning:
            self._thought = self._field(keeper, reasoning, "thought", tr("The thought"))
            column.addWidget(_caption(tr("Thought")))
            column.addWidget(self._thought)
            column.addWidget(_caption(tr("Answer")))
        is_question = reasoning is None
        self._text = self._field(keeper, text, "text", tr("Your question") if is_question else tr("The answer"))
        column.addWidget(self._text)
        column.addLayout(self._buttons(keeper, is_question=is_question))

    def focus(self) -> None:
        self._text.setFocus(Qt.FocusReason.OtherFocusReason)

    def _field(self, keeper: ThemeKeeper, text: str, name: str, label: str) -> _Field:
        field = _Field(keeper, text)
        describe(field, f"thread.editor.{name}.{self._turn_id}", label, label, "Ctrl+Return")
        field.submitted.connect(self._submit)
        field.cancelled.connect(self.cancelled)
        field.textChanged.connect(self._on_text)
        return field

    def _buttons(self, keeper: ThemeKeeper, *, is_question: bool) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        hint = QLabel(tr("The old version stays beside the new one."))
        hint.setProperty("kind", "small")
        row.addWidget(hint, 1)
        cancel = TextButton(keeper, tr("Cancel"), kind="quiet")
        describe(cancel, f"thread.editor.cancel.{self._turn_id}", tr("Cancel"), tr("Leave it as it was"), "Esc")
        cancel.clicked.connect(self.cancelled)
        words, tip = (
            (tr("Send"), tr("Ask this question instead"))
            if is_question
            else (tr("Save"), tr("Keep this as a version of the answer"))
        )
        self._take = TextButton(keeper, words, kind="primary")
        describe(self._take, f"thread.editor.take.{self._turn_id}", words, tip, "Ctrl+Return")
        self._take.clicked.connect(self._submit)
        for button in (cancel, self._take):
            row.addWidget(button)
        return row

    def _on_text(self) -> None:
        self._take.setEnabled(self._has_words())
        self.typed.emit(*self._words())

    def _has_words(self) -> bool:
        return self.may_be_empty or bool(
            self._text.toPlainText().strip() or (self._thought and self._thought.toPlainText().strip())
        )

    def _submit(self) -> None:
        if self._has_words():
            self.done.emit(*self._words())

    def _words(self) -> tuple[str, str]:
        return self._text.toPlainText(), self._thought.toPlainText() if self._thought else ""


def _caption(text: str) -> QWidget:
    label = QLabel(text)
    label.setProperty("kind", "small")
    return label


class _Reopener(QObject):
    """Lives as long as its message."""

    def __init__(self, message: QWidget, node_id: str, intents: TurnIntents, edit: Callable[[], None]) -> None:
        super().__init__(message)
        self._message, self._node_id, self._intents, self._edit = message, node_id, intents, edit
        intents.edits_restored.connect(self.look)

    def look(self) -> None:
        if self._node_id in self._intents.edits and not self._message.property(EDITED):
            self._edit()


def reopen_edit(message: QWidget, node_id: str, intents: TurnIntents, edit: Callable[[], None]) -> None:
    """Opens the editor of a message that somebody was changing: now, or once what was kept of it is read."""
    _Reopener(message, node_id, intents, edit).look()


def edit_in_place(
    keeper: ThemeKeeper, turn: Turn, intents: TurnIntents, column: QVBoxLayout, hidden: list[QWidget], *, question: bool
) -> None:
    """Puts an editor into a message's column in place of the widgets of it that are to be `hidden` meanwhile.

    It holds what was typed there before and not taken. A change that is taken replaces the message with its editor;
    one that is refused leaves the editor as it is.
    """
    node_id = turn.question_id if question else turn.answer_id
    draft = intents.edits.get(node_id)
    if question:
        editor = TurnEditor(keeper, turn.id, draft.text if draft else turn.question.text)
        editor.may_be_empty = bool(turn.question.images or turn.question.documents)
    else:
        words, thought = turn.answer.text, turn.answer.reasoning
        editor = TurnEditor(keeper, turn.id, draft.text if draft else words, draft.thought if draft else thought)

    def take(text: str, thought: str) -> None:
        if not intents.is_busy():  # or it is refused, and what is typed must not be lost
            intents.drop_edit(node_id)
        if question:
            intents.question_edited.emit(turn.id, text)
        else:
            intents.answer_edited.emit(turn.id, text, thought)

    editor.done.connect(take)
    editor.typed.connect(lambda text, thought: intents.keep_edit(node_id, EditDraft(text, thought)))
    shown = [widget for widget in hidden if not widget.isHidden()]
    message = column.parentWidget()
    assert message is not None, "the column is that of a message"
    message.setProperty(EDITED, True)

    def close() -> None:
        intents.drop_edit(node_id)
        message.setProperty(EDITED, False)
        for widget in shown:
            widget.show()
        back = message.findChild(QWidget, f"thread.{'question.' if question else ''}edit.{turn.id}")
        if back is not None:
            back.setFocus(Qt.FocusReason.OtherFocusReason)  # where it was when the editor opened
        column.removeWidget(editor)
        editor.hide()
        editor.deleteLater()

    editor.cancelled.connect(close)
    column.addWidget(editor)
    editor.show()
    if draft is None:
        editor.focus()  # before the button that was pressed is hidden
    for widget in shown:
        widget.hide()
