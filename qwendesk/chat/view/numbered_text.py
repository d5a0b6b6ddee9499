"""Plain text to read, with numbers beside its lines and some of them marked."""

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QShowEvent, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from qwendesk.widgets.theme_keeper import app_theme, current_theme

_GAP = 10
"""Pixels on each side of the numbers."""


class NumberedText(QPlainTextEdit):
    """Shows `lines`, numbered from `first`. Those from number `marked` to `last` are marked and scrolled to."""

    def __init__(
        self, lines: Sequence[str], first: int, marked: int = 0, last: int = 0, *, is_code: bool = True
    ) -> None:
        super().__init__()
        self._first, self._marked, self._last, self._is_code = first, marked, last, is_code
        self._numbers = _Numbers(self)
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setPlainText("\n".join(lines))
        self.updateRequest.connect(lambda _rect, _dy: self._numbers.update())
        app_theme().follow(self, self._show_theme)
        self._show_theme()

    def number_width(self) -> int:
        """Return how much room the numbers need, in pixels."""
        last = self._first + self.blockCount() - 1
        return self.fontMetrics().horizontalAdvance(str(last)) + 2 * _GAP

    def paint_numbers(self, painter: QPainter, area: QRect) -> None:
        theme = current_theme()
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        height = self.fontMetrics().height()
        while block.isValid() and top <= area.bottom():
            number = self._first + block.blockNumber()
            is_marked = self._marked <= number <= self._last
            painter.setPen(theme.color("text_link" if is_marked else "text_dim"))
            place = QRect(0, round(top), self._numbers.width() - _GAP, height)
            painter.drawText(place, Qt.AlignmentFlag.AlignRight, str(number))
            top += self.blockBoundingRect(block).height()
            block = block.next()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        inside = self.contentsRect()
        self._numbers.setGeometry(inside.left(), inside.top(), self.number_width(), inside.height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self, self._scroll_to_marked)  # once it has its final size

    def _scroll_to_marked(self) -> None:
        if not self._marked:
            return
        cursor = self.textCursor()
        cursor.setPosition(self._cursor_of_marked().selectionStart())
        self.setTextCursor(cursor)
        self.centerCursor()

    def _cursor_of_marked(self) -> QTextCursor:
        """Return a cursor that has the marked lines selected."""
        cursor = QTextCursor(self.document())
        start = self.document().findBlockByNumber(self._marked - self._first)
        end = self.document().findBlockByNumber(min(self._last - self._first, self.blockCount() - 1))
        cursor.setPosition(start.position())
        cursor.setPosition(end.position() + end.length() - 1, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _show_theme(self) -> None:
        theme = current_theme()
        self.setFont(theme.mono_font(12) if self._is_code else theme.font(13))
        self.setViewportMargins(self.number_width(), 0, 0, 0)
        marks = []
        for number in range(self._marked, self._last + 1) if self._marked else ():
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(self.document().findBlockByNumber(number - self._first))
            mark.format.setBackground(theme.color("found"))
            mark.format.setProperty(QTextFormat.Property.FullWidthSelection.value, True)
            marks.append(mark)
        self.setExtraSelections(marks)


class _Numbers(QWidget):
    def __init__(self, text: NumberedText) -> None:
        super().__init__(text)
        self._text = text

    def sizeHint(self) -> QSize:
        return QSize(self._text.number_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._text.paint_numbers(painter, event.rect())
        painter.end()
