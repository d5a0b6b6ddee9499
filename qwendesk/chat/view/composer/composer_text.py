"""The text field of the composer: grows to ten lines, Enter sends, files and images can be pasted."""

from types import MappingProxyType

from PySide6.QtCore import QEvent, QKeyCombination, QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from qwendesk.chat.view.composer.pasted_content import PastedContent, has_files, is_image_page, read_mime
from qwendesk.core.translation import tr
from qwendesk.widgets.text_layout import align_by_first_letter, count_lines, fit_height
from qwendesk.widgets.theme_keeper import app_theme

_MAX_LINES = 10
_PAGE_KEYS = MappingProxyType({QKeyCombination(Qt.Key.Key_PageUp): -1, QKeyCombination(Qt.Key.Key_PageDown): 1})


class ComposerText(QPlainTextEdit):
    """The text field. Emits signals for keys that concern the chat instead of the text."""

    submitted = Signal()
    """Enter was pressed."""
    page_asked = Signal(int)
    """-1 for Page Up, 1 for Page Down; only while the text has one line."""
    pasted = Signal(object)
    """A PastedContent to attach."""
    text_pasted = Signal(str)
    picture_offered = Signal(object)
    """The PastedContent of a text that was pasted and also is there as a picture."""
    focused = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("composer.text")
        self.setProperty("kind", "composer")
        self.setAccessibleName(tr("Your message"))
        self.setToolTip(tr("Press Enter to send, Shift+Enter for a new line"))
        self.show_vision(can_see=True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAcceptDrops(False)
        self.viewport().setAcceptDrops(False)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(2)
        align_by_first_letter(self)
        self.textChanged.connect(self.fit_height)
        app_theme().follow(self, self.fit_height)
        self.fit_height()

    def show_vision(self, *, can_see: bool) -> None:
        """Set whether the loaded model sees pictures."""
        with_pictures = tr("Ask anything, or drop a picture, clip, PDF, text or code")
        self.setPlaceholderText(with_pictures if can_see else tr("Ask anything, or drop a PDF, text or code"))
        self.viewport().update()  # Qt paints a changed placeholder only when it appears or disappears

    @property
    def is_composing(self) -> bool:
        """Whether an input method composes text here, which `toPlainText` has only once it is committed."""
        return bool(self.textCursor().block().layout().preeditAreaText())

    def fit_height(self) -> None:
        fit_height(self, most=_MAX_LINES, extra=7)

    def event(self, event: QEvent) -> bool:
        """At the end of the text, let the window handle Ctrl+End, which jumps to the latest answer."""
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
        if event.keyCombination() in _PAGE_KEYS and count_lines(self, most=1) <= 1:
            self.page_asked.emit(_PAGE_KEYS[event.keyCombination()])
            return
        super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return has_files(source) or is_image_page(source) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        content = read_mime(source)
        if content.has_files or content.n_missing or content.is_long:
            self.pasted.emit(content)
        else:
            self.insert_text(content)

    def insert_text(self, content: PastedContent) -> None:
        """Insert a text that was pasted or dropped, and tell what else it can be."""
        self.insertPlainText(content.text)
        self.ensureCursorVisible()
        self.text_pasted.emit(content.text)
        if content.text_as_picture is not None:
            self.picture_offered.emit(content)

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
