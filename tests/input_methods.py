"""Composes text in the field that has the focus, as an input method does."""

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QGuiApplication, QInputMethodEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget


def compose(text: str) -> QWidget:
    """Show `text` as what is being composed, with the cursor after it. Return the field."""
    return _send(QInputMethodEvent(text, [_cursor_at(len(text))]))


def commit(text: str, rest: str = "") -> QWidget:
    """Put `text` into the field, and go on composing `rest`. Return the field."""
    event = QInputMethodEvent(rest, [_cursor_at(len(rest))])
    event.setCommitString(text)
    return _send(event)


def composed(field: QPlainTextEdit) -> str:
    """Return what is being composed in a field."""
    return field.textCursor().block().layout().preeditAreaText()


def candidates_at(field: QWidget) -> QRect:
    """Return where the input method shows candidates, in the window's coordinates."""
    assert QApplication.focusWidget() is field
    return QGuiApplication.inputMethod().cursorRectangle().toRect()


def cursor_of(field: QLineEdit | QPlainTextEdit) -> QRect:
    """Return where the cursor is drawn, in the window's coordinates."""
    drawn_in = field.viewport() if isinstance(field, QPlainTextEdit) else field
    place = field.cursorRect()
    return QRect(drawn_in.mapTo(field.window(), place.topLeft()), place.size())


def is_below(candidates: QRect, cursor: QRect) -> bool:
    """Return whether candidates below that rectangle begin at the cursor and leave its line free; rounded to pixels."""
    corner = candidates.bottomLeft() - cursor.bottomLeft()
    return QPoint(abs(corner.x()), abs(corner.y())).manhattanLength() <= 2


def _cursor_at(place: int) -> QInputMethodEvent.Attribute:
    return QInputMethodEvent.Attribute(QInputMethodEvent.AttributeType.Cursor, place, 1, None)


def _send(event: QInputMethodEvent) -> QWidget:
    field = QApplication.focusWidget()
    assert field is not None, "nothing has the focus"
    QApplication.sendEvent(field, event)
    return field
