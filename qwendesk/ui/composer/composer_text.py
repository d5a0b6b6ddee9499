"""The text of the next question: grows to ten lines, Enter sends, pictures and files can be pasted."""

from types import MappingProxyType

from PySide6.QtCore import QEvent, QKeyCombination, QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from qwendesk.ui.composer.intake import Intake, offers_files, take
from qwendesk.ui.kit.direction import follow_letters
from qwendesk.ui.kit.text import tr

_MOST_LINES = 10
_PAGE_KEYS = MappingProxyType({QKeyCombination(Qt.Key.Key_PageUp): -1, QKeyCombination(Qt.Key.Key_PageDown): 1})


class ComposerText(QPlainTextEdit):
    """`submitted` on Enter; `pasted` carries an Intake with files; `focused` tells the card around it.

    `page_asked`: -1 for Page Up and 1 for Page Down while there is but one line, in which they mean nothing.
    """

    submitted = Signal()
    page_asked = Signal(int)
    pasted = Signal(object)
    focused = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("composer.text")
        self.setProperty("kind", "composer")
        self.setAccessibleName(tr("Your question"))
        self.setToolTip(tr("Enter sends, Shift+Enter starts a new line"))
        self.setPlaceholderText(tr("Ask anything, or drop a picture, a PDF, text or code"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAcceptDrops(False)
        self.viewport().setAcceptDrops(False)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(2)
        follow_letters(self)
        self.textChanged.connect(self.fit_height)
        self.fit_height()

    def fit_height(self) -> None:
        lines = max(1, min(_MOST_LINES, self._count_lines()))
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 8)
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if lines == _MOST_LINES else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )

    def _count_lines(self) -> int:
        """As they are drawn, long ones broken."""
        return round(self.document().size().height())

    def event(self, event: QEvent) -> bool:
        """At the end of the text Ctrl+End is free for the window: jump to the latest answer."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            to_end = event.matches(QKeySequence.StandardKey.MoveToEndOfDocument)
            if to_end and self.textCursor().atEnd():
                event.ignore()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
            return
        if event.keyCombination() in _PAGE_KEYS and self._count_lines() <= 1:
            self.page_asked.emit(_PAGE_KEYS[event.keyCombination()])
            return
        super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return offers_files(source) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        taken: Intake = take(source)
        if taken.has_files or taken.is_web_picture:
            self.pasted.emit(taken)
        else:
            super().insertFromMimeData(source)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit_height()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)
