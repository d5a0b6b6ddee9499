"""Edits a message in place. Esc discards the changes. Ctrl+Enter accepts them, and so does Enter in a question."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.chat.view.thread.turn_intents import EDITED, EditDraft, TurnIntents
from qwendesk.core.conversation import Turn
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.text_layout import align_by_first_letter, fit_height
from qwendesk.widgets.theme_keeper import current_theme

_MIN_LINES, _MAX_LINES = 2, 18
# Pixels between the editor of a question and the answer.
_GAP_BELOW = 8
# Pixels above and below the text: the padding in the stylesheet, and the frame with the document's margins.
_PADDING, _FRAME = 8, 14


class _TurnTextEdit(QPlainTextEdit):
    """A text field as tall as its text, up to a limit. Tab leaves it."""

    submitted = Signal()
    cancelled = Signal()

    def __init__(self, text: str, *, is_question: bool) -> None:
        """Enter accepts the text if `is_question`, and Shift+Enter adds a line."""
        super().__init__()
        self._is_question = is_question
        self.setProperty("kind", "editor")
        self.setTabChangesFocus(True)
        self.document().setDefaultFont(current_theme().font(14))
        align_by_first_letter(self)
        self.setPlainText(text)
        self.moveCursor(QTextCursor.MoveOperation.End)
        self.textChanged.connect(self._fit)
        self._fit()

    def event(self, event: QEvent) -> bool:
        # These keys are also shortcuts of the window, but the editor has precedence.
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._own_key(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match self._own_key(event):
            case "cancel":
                self.cancelled.emit()
            case "submit":
                self.submitted.emit()
            case _:
                super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def _fit(self) -> None:
        fit_height(self, least=_MIN_LINES, most=_MAX_LINES, extra=2 * current_theme().space(_PADDING) + _FRAME)

    def _own_key(self, event: QKeyEvent) -> str:
        """Return "cancel", "submit" or "" for a key press."""
        if event.key() == Qt.Key.Key_Escape:
            return "cancel"
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            return ""
        has_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        has_shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        return "submit" if has_control or (self._is_question and not has_shift) else ""


class TurnEditor(QFrame):
    """The editor of a message. `done` and `typed` carry the text and the thinking (answers only)."""

    done = Signal(str, str)
    typed = Signal(str, str)
    cancelled = Signal()

    def __init__(self, turn_id: int, text: str, reasoning: str | None = None) -> None:
        """`reasoning` is None for a question."""
        super().__init__()
        self.setProperty("kind", "question")
        self.setObjectName(f"thread.editor.{turn_id}")
        self._turn_id = turn_id
        self.may_be_empty = False
        """Whether the text may be empty, because the question has attachments."""
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        self._is_question = reasoning is None
        self._accept_key = "" if self._is_question else "Ctrl+Return"
        self._thought: _TurnTextEdit | None = None
        if reasoning:
            self._thought = self._field(reasoning, "thought", tr("The thinking"))
            column.addWidget(_caption(tr("Thinking")))
            column.addWidget(self._thought)
            column.addWidget(_caption(tr("Answer")))
        self._text = self._field(text, "text", tr("Your question") if self._is_question else tr("The answer"))
        column.addWidget(self._text)
        column.addLayout(self._buttons())

    def focus(self) -> None:
        self._text.setFocus(Qt.FocusReason.OtherFocusReason)

    def _field(self, text: str, name: str, label: str) -> _TurnTextEdit:
        field = _TurnTextEdit(text, is_question=self._is_question)
        tip = tr("Press Enter to send, Shift+Enter for a new line") if self._is_question else label
        describe(field, f"thread.editor.{name}.{self._turn_id}", label, tip, self._accept_key)
        field.submitted.connect(self._submit)
        field.cancelled.connect(self.cancelled)
        field.textChanged.connect(self._on_text)
        return field

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        hint = QLabel(tr("The original is kept as another version."))
        hint.setProperty("kind", "small")
        row.addWidget(hint, 1)
        cancel = TextButton(tr("Cancel"), kind="quiet")
        describe(cancel, f"thread.editor.cancel.{self._turn_id}", tr("Cancel"), tr("Discard your changes"), "Esc")
        cancel.clicked.connect(self.cancelled)
        label, tip = (
            (tr("Send"), tr("Send the edited question"))
            if self._is_question
            else (tr("Save"), tr("Save as a new version of the answer"))
        )
        self._accept_button = TextButton(label, kind="primary")
        key = self._accept_key or "Return"
        describe(self._accept_button, f"thread.editor.take.{self._turn_id}", label, tip, key)
        self._accept_button.clicked.connect(self._submit)
        for button in (cancel, self._accept_button):
            row.addWidget(button)
        return row

    def _on_text(self) -> None:
        self._accept_button.setEnabled(self._has_words())
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
    """Opens a restored edit, for as long as its message exists."""

    def __init__(self, message: QWidget, node_id: str, intents: TurnIntents, edit: Callable[[], None]) -> None:
        super().__init__(message)
        self._message, self._node_id, self._intents, self._edit = message, node_id, intents, edit
        intents.edits_restored.connect(self.reopen)

    def reopen(self) -> None:
        if self._node_id in self._intents.edits and not self._message.property(EDITED):
            self._edit()


def reopen_edit(message: QWidget, node_id: str, intents: TurnIntents, edit: Callable[[], None]) -> None:
    """Open the editor of a message with an unfinished edit, now or once edits are restored."""
    _Reopener(message, node_id, intents, edit).reopen()


def edit_in_place(
    turn: Turn, intents: TurnIntents, column: QVBoxLayout, hidden: list[QWidget], *, question: bool
) -> None:
    """Replace the widgets `hidden` of a message with an editor.

    The editor starts with an unfinished edit if there is one. If the change is accepted, the message and its editor are
    replaced; if it is refused, the editor stays open.
    """
    node_id = turn.question_id if question else turn.answer_id
    draft = intents.edits.get(node_id)
    if question:
        editor = TurnEditor(turn.id, draft.text if draft else turn.question.text)
        editor.may_be_empty = bool(turn.question.images or turn.question.documents)
    else:
        text, thought = turn.answer.text, turn.answer.reasoning
        editor = TurnEditor(turn.id, draft.text if draft else text, draft.thought if draft else thought)

    def accept(text: str, thought: str) -> None:
        # While the edit is refused, or the user is asked first, the typed text must not be lost.
        if not intents.is_busy() and not (question and intents.asks_first()):
            intents.drop_edit(node_id)
        if question:
            intents.edit_ended.emit()
            intents.question_edited.emit(turn.id, text)
        else:
            intents.answer_edited.emit(turn.id, text, thought)

    editor.done.connect(accept)
    editor.typed.connect(lambda text, thought: intents.keep_edit(node_id, EditDraft(text, thought)))
    if question:
        editor.typed.connect(lambda: intents.edit_begun.emit(turn.id))  # restored edits begin when they go on
    shown = [widget for widget in hidden if not widget.isHidden()]
    message, margins = column.parentWidget(), column.contentsMargins()
    assert message is not None, "the column is that of a message"
    message.setProperty(EDITED, True)

    def close() -> None:
        intents.drop_edit(node_id)
        if question:
            intents.edit_ended.emit()
        message.setProperty(EDITED, False)
        for widget in shown:
            widget.show()
        edit_button = message.findChild(QWidget, f"thread.{'question.' if question else ''}edit.{turn.id}")
        if edit_button is not None:
            # It had the focus when the editor opened.
            edit_button.setFocus(Qt.FocusReason.OtherFocusReason)
        column.removeWidget(editor)
        column.setContentsMargins(margins)
        editor.hide()
        editor.deleteLater()

    editor.cancelled.connect(close)
    if question:
        column.setContentsMargins(0, 0, 0, _GAP_BELOW)
    column.addWidget(editor)
    editor.show()
    if draft is None:
        if question:
            intents.edit_begun.emit(turn.id)
        editor.focus()  # before the pressed button is hidden and loses the focus
    for widget in shown:
        widget.hide()
