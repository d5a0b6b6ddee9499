"""What input methods (Chinese, Japanese, Korean and others) need from the field in which text is composed."""

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QInputMethodQueryEvent, QKeyEvent, QTransform
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QTextEdit, QWidget
from shiboken6 import isValid

# Keys that come with one of these are commands, whatever their text is.
_COMMAND_KEYS = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
_PLACES = (Qt.InputMethodQuery.ImCursorRectangle, Qt.InputMethodQuery.ImAnchorRectangle)


class CompositionGuard(QObject):
    """Watches the field that has the focus, in every window of the app.

    - While text is being composed, no key does anything but compose: some input methods also pass on the Enter that
      takes a candidate, the Esc that drops one and the arrows that choose one.
    - The placeholder isn't drawn over text that is being composed, as QPlainTextEdit does.
    - The candidates appear at the cursor. Qt puts them too high by a field's padding, over the text, and where the
      field was before something around it moved.
    """

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._field: QWidget | None = None
        self._is_composing = False
        self._placeholder = ""
        app.focusChanged.connect(self._on_focus)

    def _on_focus(self, _before: QWidget | None, field: QWidget | None) -> None:
        if self._field is not None and isValid(self._field):
            self._field.removeEventFilter(self)
            self._compose(self._field, "")
        self._field, self._is_composing, self._placeholder = field, False, ""
        if field is not None:
            field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QInputMethodEvent) and isinstance(watched, QWidget):
            self._compose(watched, event.preeditString())
        elif isinstance(event, QInputMethodQueryEvent) and isinstance(watched, QWidget):
            return _answer_query(watched, event)
        elif self._is_composing and isinstance(event, QKeyEvent) and event.type() is not QEvent.Type.KeyRelease:
            return self._take_key(event)
        return False

    def _compose(self, field: QWidget, text: str) -> None:
        self._is_composing = bool(text)
        if not isinstance(field, QPlainTextEdit):
            return
        if text and field.placeholderText():
            self._placeholder = field.placeholderText()
            field.setPlaceholderText("")
        elif not text and self._placeholder:
            field.setPlaceholderText(field.placeholderText() or self._placeholder)
            self._placeholder = ""

    def _take_key(self, event: QKeyEvent) -> bool:
        """Keep a key from shortcuts, the field and its dialog, unless it types a letter."""
        if event.type() is QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.text().isprintable() and event.text() and not event.modifiers() & _COMMAND_KEYS:
            # An input method passes on no letter while it composes. It was reset, which it doesn't tell.
            self._is_composing = False
            return False
        return True


def _answer_query(field: QWidget, event: QInputMethodQueryEvent) -> bool:
    """Have the field answer what the input method asks, and correct where it says that its cursor is."""
    method, window = QGuiApplication.inputMethod(), field.mapTo(field.window(), QPoint())
    to_window = QTransform.fromTranslate(window.x(), window.y())
    if method.inputItemTransform() != to_window:
        method.setInputItemTransform(to_window)
    if not isinstance(field, QPlainTextEdit | QTextEdit):
        return False
    field.event(event)
    edge = field.viewport().pos()
    for place in _PLACES:
        rectangle = event.value(place)
        if isinstance(rectangle, QRectF):
            event.setValue(place, rectangle.translated(edge))
    return True
