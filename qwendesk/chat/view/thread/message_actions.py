"""The actions of a message, shown below the last answer, and below the message that has the pointer or the focus."""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QEnterEvent, QFocusEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLabel, QWidget

from qwendesk.chat.open_chat import Part
from qwendesk.chat.view.answer.clipboard_text import Form, copy_in_steps, copy_markdown
from qwendesk.chat.view.thread.turn_intents import TurnIntents
from qwendesk.core.conversation import Turn
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, describe
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.step_budget import StepBudget, StepwiseWork

_COPIED_NOTE_MS = 1500
_SIDE = 26


class _QuietButton(IconButton):
    """A button that is drawn only while its row is highlighted. It always takes space and accepts the focus."""

    def __init__(self, icon_name: str, row: "MessageActions", size: int = 16, *, is_always_drawn: bool = False) -> None:
        super().__init__(icon_name, size=size, side=_SIDE)
        self._row, self._is_always_drawn = row, is_always_drawn

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._is_always_drawn or self._row.is_highlighted:
            super().paintEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._row.update_buttons()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._row.update_buttons()


class MessageActions(QWidget):
    """A row of buttons below a question or answer. The message itself handles `edit`."""

    def __init__(self, turn: Turn, part: Part, intents: TurnIntents, message: QWidget) -> None:
        """`message` is the widget that shows the row while the pointer is over it."""
        super().__init__()
        self._turn, self._part, self._intents, self._message = turn, part, intents, message
        self._buttons: list[_QuietButton] = []
        self._changing_buttons: list[tuple[QAbstractButton, str]] = []
        """Buttons that change the chat, with their tooltips. They are disabled while an answer is generated."""
        self._hovered = False
        self._copying = StepwiseWork(self, StepBudget(self))
        self._resume: _QuietButton | None = None
        self.setObjectName(f"thread.actions.{part}.{turn.id}")
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._add_copy()
        self.edit = self._changing_button("edit", "edit", tr("Edit"), self._edit_tip())
        if part == "answer":
            again = self._changing_button(
                "again", "regenerate", tr("Regenerate"), tr("Generate another version of this answer")
            )
            again.clicked.connect(lambda: intents.regenerate.emit(turn.id))
        branch = self._changing_button(
            "branch", "branch", tr("Branch"), tr("Continue from here in a new chat; this chat doesn't change")
        )
        branch.clicked.connect(lambda: intents.branch.emit(turn.id))
        delete = self._changing_button("delete", "delete", tr("Delete"), self._delete_tip())
        delete.clicked.connect(lambda: intents.delete.emit(turn.id, part))
        # What only some versions have comes last, so that no button moves from under the pointer.
        self._add_versions()
        if part == "answer":
            self._resume = self._changing_button(
                "resume", "continue", tr("Continue"), tr("Continue from where this answer stopped")
            )
            self._resume.clicked.connect(lambda: intents.resume.emit(turn.id))
        self.setFixedHeight(_SIDE)
        message.installEventFilter(self)
        intents.busy_changed.connect(self._update_enabled)
        intents.turns_changed.connect(self.update_buttons)
        self._update_enabled()
        self.update_buttons()

    @property
    def is_highlighted(self) -> bool:
        """Whether the buttons are drawn: below the last answer, under the pointer, or if one of them has the focus."""
        is_last_answer = self._part == "answer" and self._intents.is_last(self._turn.id)
        return is_last_answer or self._hovered or any(button.hasFocus() for button in self._buttons)

    def update_buttons(self) -> None:
        """Update the buttons after a change of the pointer, the focus or the available actions."""
        turn = self._turn
        if self._resume is not None:
            can_continue = bool(turn.answer_id) and turn.answer.can_continue
            self._resume.setVisible(can_continue and self._intents.is_last(turn.id))
        for button in self._buttons:
            button.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._message and event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self._hovered = event.type() is QEvent.Type.Enter
            self.update_buttons()
        return super().eventFilter(watched, event)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.update_buttons()

    def _button(self, icon_name: str, name: str, text: str, tip: str = "") -> _QuietButton:
        button = _QuietButton(icon_name, self)
        describe(button, self._name(name), text, tip)
        self._buttons.append(button)
        self._row.addWidget(button)
        return button

    def _changing_button(self, icon_name: str, name: str, text: str, tip: str) -> _QuietButton:
        button = self._button(icon_name, name, text, tip)
        self._changing_buttons.append((button, tip))
        return button

    def _update_enabled(self) -> None:
        self.update_buttons()  # the answer may not be the last one any more
        busy = self._intents.is_busy()
        for button, tip in self._changing_buttons:
            button.setEnabled(not busy)
            button.setToolTip(tr("{0}. Wait for the current answer, or stop it.", tip) if busy else tip)
        reason = self._intents.continue_reason()
        if self._resume is not None and reason:
            self._resume.setEnabled(False)
            self._resume.setToolTip(reason)

    def _name(self, action: str) -> str:
        """Return an object name: `thread.copy.1` for an answer, `thread.question.copy.1` for a question."""
        part = "" if self._part == "answer" else "question."
        return f"thread.{part}{action}.{self._turn.id}"

    def _add_versions(self) -> None:
        """Add ‹ 2/3 › if there is more than one version. It is always drawn."""
        shown, among = self._turn.answer_version if self._part == "answer" else self._turn.question_version
        if among < 2:
            return
        for icon_name, name, text, step, possible in (
            ("left", "earlier", tr("Previous version"), -1, shown > 1),
            ("right", "later", tr("Next version"), 1, shown < among),
        ):
            button = _QuietButton(icon_name, self, 14, is_always_drawn=True)
            describe(button, self._name(name), text)
            self._buttons.append(button)
            if possible:
                self._changing_buttons.append((button, text))
            button.setEnabled(possible)
            button.clicked.connect(lambda _checked=False, step=step: self._step(step))
            self._row.addWidget(button)
            if step < 0:
                label = QLabel(tr("{0}/{1}", shown, among))
                label.setProperty("kind", "small")
                label.setObjectName(self._name("version"))
                label.setAccessibleName(tr("Version {0} of {1}", shown, among))
                label.setAlignment(Qt.AlignmentFlag.AlignCenter)
                label.ensurePolished()
                label.setMinimumWidth(label.fontMetrics().horizontalAdvance(tr("{0}/{1}", among, among)))
                self._row.addWidget(label)

    def _step(self, step: int) -> None:
        self._intents.version.emit(self._turn.id, self._part, step)

    def _text(self) -> str:
        return self._turn.answer.text if self._part == "answer" else self._turn.question.text

    def _add_copy(self) -> None:
        text = self._text()
        if not text:
            return
        tip = tr("Copy the answer without the thinking") if self._part == "answer" else tr("Copy the question")
        button = self._button("copy", "copy", tr("Copy"), tip)

        def copied() -> None:
            copy_markdown(text)
            button.themed.show("done", "text_good")
            QTimer.singleShot(_COPIED_NOTE_MS, button, lambda: button.themed.show("copy", "text_dim"))

        button.clicked.connect(copied)
        other = self._button("down", "copyas", tr("Copy as…"), tr("Copy as Markdown, plain text or rich text"))
        other.setFixedWidth(16)
        other.clicked.connect(lambda: self._copy_menu(text).open_at(other))

    def _copy_menu(self, text: str) -> Menu:
        menu = Menu(self)
        menu.setObjectName("thread.copyas.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for form, label in (
            ("markdown", tr("Copy as Markdown")),
            ("plain", tr("Copy as plain text")),
            ("rich", tr("Copy as rich text")),
        ):
            menu.addAction(label).triggered.connect(lambda _checked=False, form=form: self._copy_as(text, form))
        return menu

    def _copy_as(self, text: str, form: Form) -> None:
        self._copying.stop()
        self._copying.start(lambda: copy_in_steps(text, form))

    def _edit_tip(self) -> str:
        if self._part == "question":
            return tr("Edit the question; the original is kept")
        return tr("Edit the answer or its thinking; the original is kept")

    def _delete_tip(self) -> str:
        if self._part == "question":
            return tr("Delete this question and everything after it")
        return tr("Delete this answer and everything after it")
