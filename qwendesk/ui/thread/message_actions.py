"""What can be done with one message, under it: drawn while the pointer or the focus is there, always in its place."""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QEnterEvent, QFocusEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLabel, QMenu, QWidget

from qwendesk.core.conversation import Turn
from qwendesk.services.chat.chat import Part
from qwendesk.ui.kit.buttons import IconButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.copying import copy
from qwendesk.ui.thread.turn_intents import TurnIntents

_SAY_COPIED_MS = 1500
_SIDE = 26


class _QuietButton(IconButton):
    """Takes its place and the focus always, and is drawn only while its row is lit."""

    def __init__(self, keeper: ThemeKeeper, icon_name: str, row: "MessageActions") -> None:
        super().__init__(keeper, icon_name, size=16, side=_SIDE)
        self._row = row

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._row.is_lit:
            super().paintEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._row.light()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._row.light()


class MessageActions(QWidget):
    """The row under one question or answer. `edited` opens the editor, which is the message's own business."""

    def __init__(self, keeper: ThemeKeeper, turn: Turn, part: Part, intents: TurnIntents, message: QWidget) -> None:
        """`message` is the widget whose hover lights the row."""
        super().__init__()
        self._keeper, self._turn, self._part, self._intents, self._message = keeper, turn, part, intents, message
        self._buttons: list[_QuietButton] = []
        self._changing: list[tuple[QAbstractButton, str]] = []
        """Those that change the chat, with their tooltips: nothing is changed while an answer is made."""
        self._hovered = False
        self._resume: _QuietButton | None = None
        self.setObjectName(f"thread.actions.{part}.{turn.id}")
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        if part == "answer":
            self._add_versions()
        self._add_copy()
        self.edit = self._changer("edit", "edit", tr("Edit"), self._edit_tip())
        if part == "answer":
            again = self._changer("again", "regenerate", tr("Regenerate"), tr("Answer again, as another version"))
            again.clicked.connect(lambda: intents.regenerate.emit(turn.id))
            self._resume = self._changer(
                "resume", "continue", tr("Continue"), tr("Go on with this answer where it was stopped")
            )
            self._resume.clicked.connect(lambda: intents.resume.emit(turn.id))
        branch = self._changer("branch", "branch", tr("Branch"), tr("Go on from here in a new chat; this one stays"))
        branch.clicked.connect(lambda: intents.branch.emit(turn.id))
        delete = self._changer("delete", "delete", tr("Delete"), self._delete_tip())
        delete.clicked.connect(lambda: intents.delete.emit(turn.id, part))
        if part == "question":
            self._add_versions()  # always drawn, and so at the side where the card is
        self.setFixedHeight(_SIDE)
        message.installEventFilter(self)
        intents.busy_changed.connect(self._show_possible)
        self._show_possible()
        self.light()

    @property
    def is_lit(self) -> bool:
        """Whether the buttons are drawn: the pointer is over the message, or one of them has the focus."""
        return self._hovered or any(button.hasFocus() for button in self._buttons)

    def light(self) -> None:
        """Look again at where the pointer and the focus are, and at what can be done now."""
        turn = self._turn
        if self._resume is not None:
            can_go_on = bool(turn.answer_id) and turn.answer.can_go_on
            self._resume.setVisible(can_go_on and self._intents.is_last(turn.id))
        for button in self._buttons:
            button.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._message and event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self._hovered = event.type() is QEvent.Type.Enter
            self.light()
        return super().eventFilter(watched, event)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.light()

    def _button(self, icon_name: str, name: str, text: str, tip: str = "") -> _QuietButton:
        button = _QuietButton(self._keeper, icon_name, self)
        describe(button, self._name(name), text, tip)
        self._buttons.append(button)
        self._row.addWidget(button)
        return button

    def _changer(self, icon_name: str, name: str, text: str, tip: str) -> _QuietButton:
        button = self._button(icon_name, name, text, tip)
        self._changing.append((button, tip))
        return button

    def _show_possible(self) -> None:
        self.light()  # the answer may not be the last one any more
        busy = self._intents.is_busy()
        for button, tip in self._changing:
            button.setEnabled(not busy)
            button.setToolTip(
                tr("{0}. Not while an answer is being made: wait for it, or stop it.", tip) if busy else tip
            )

    def _name(self, action: str) -> str:
        """Those of answers have the short names: `thread.copy.1`, and `thread.question.copy.1`."""
        part = "" if self._part == "answer" else "question."
        return f"thread.{part}{action}.{self._turn.id}"

    def _add_versions(self) -> None:
        """‹ 2/3 ›, always drawn where there is more than one."""
        shown, among = self._turn.answer_version if self._part == "answer" else self._turn.question_version
        if among < 2:
            return
        for icon_name, name, text, step, possible in (
            ("left", "earlier", tr("The version before"), -1, shown > 1),
            ("right", "later", tr("The next version"), 1, shown < among),
        ):
            button = IconButton(self._keeper, icon_name, size=14, side=_SIDE)
            describe(button, self._name(name), text)
            if possible:
                self._changing.append((button, text))
            button.setEnabled(possible)
            button.clicked.connect(lambda _checked=False, step=step: self._step(step))
            self._row.addWidget(button)
            if step < 0:
                label = QLabel(tr("{0}/{1}", shown, among))
                label.setProperty("kind", "small")
                label.setObjectName(self._name("version"))
                label.setAccessibleName(tr("Version {0} of {1}", shown, among))
                self._row.addWidget(label)
        self._row.addSpacing(6)

    def _step(self, step: int) -> None:
        self._intents.version.emit(self._turn.id, self._part, step)

    def _words(self) -> str:
        return self._turn.answer.text if self._part == "answer" else self._turn.question.text

    def _add_copy(self) -> None:
        words = self._words()
        if not words:
            return
        tip = tr("Copy the answer, without the thought") if self._part == "answer" else tr("Copy the question")
        button = self._button("copy", "copy", tr("Copy"), tip)

        def copied() -> None:
            copy(words)
            button.themed.show("done", "text_good")
            QTimer.singleShot(_SAY_COPIED_MS, button, lambda: button.themed.show("copy", "text_dim"))

        button.clicked.connect(copied)
        other = self._button("down", "copyas", tr("Copy as…"), tr("Copy as Markdown, plain text or rich text"))
        other.setFixedWidth(16)
        other.clicked.connect(lambda: self._copy_menu(words).popup(other.mapToGlobal(other.rect().bottomLeft())))

    def _copy_menu(self, words: str) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName("thread.copyas.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for form, text in (
            ("markdown", tr("Copy as Markdown")),
            ("plain", tr("Copy as plain text")),
            ("rich", tr("Copy as rich text")),
        ):
            menu.addAction(text).triggered.connect(lambda _checked=False, form=form: copy(words, form))
        return menu

    def _edit_tip(self) -> str:
        if self._part == "question":
            return tr("Ask in other words; this version stays")
        return tr("Change the answer or its thought; this version stays")

    def _delete_tip(self) -> str:
        if self._part == "question":
            return tr("Delete this question and all that follows it")
        return tr("Delete this answer and all that follows it")
