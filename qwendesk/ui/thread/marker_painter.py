"""Paints what stands before the items of a list: Qt's own bullets touch the words, and its ticks are crosses."""

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen, QTextBlock, QTextDocument, QTextFormat

from qwendesk.ui.kit.theme import Theme

MARKER: Final = QTextFormat.Property.UserProperty.value + 20
"""Property of an item's first block: "disc", "circle", "square", "done" or "open"."""
_BEFORE = 12.0
"""Pixels from the middle of a marker to the words."""
_BOX = 13.0
_RADIUS = 2.5


def paint_markers(painter: QPainter, document: QTextDocument, theme: Theme, area: QRectF) -> None:
    """The markers of all items of `document` that touch `area`."""
    layout = document.documentLayout()
    block = document.begin()
    while block.isValid():
        marker = block.blockFormat().property(MARKER)
        if marker and block.isVisible():
            box: QRectF = layout.blockBoundingRect(block)
            if box.top() > area.bottom():
                return
            if box.bottom() >= area.top():
                _paint(painter, str(marker), _middle(block, box), theme)
        block = block.next()


def _middle(block: QTextBlock, box: QRectF) -> QPointF:
    """Where a marker's middle is: before the first line, as high as the middle of its small letters."""
    line = block.layout().lineAt(0)
    words = line.naturalTextRect()
    is_rtl = block.textDirection() is Qt.LayoutDirection.RightToLeft
    x = words.right() + _BEFORE if is_rtl else words.left() - _BEFORE
    middle = QFontMetricsF(block.charFormat().font()).xHeight() / 2
    return box.topLeft() + QPointF(x, line.y() + line.ascent() - middle)


def _paint(painter: QPainter, marker: str, middle: QPointF, theme: Theme) -> None:
    painter.save()
    if marker in ("done", "open"):
        _paint_box(painter, middle, theme, is_done=marker == "done")
    else:
        color, radius = theme.color("text_dim"), _RADIUS * theme.text_scale
        painter.setPen(QPen(color, 1.2) if marker == "circle" else Qt.PenStyle.NoPen)
        painter.setBrush(Qt.BrushStyle.NoBrush if marker == "circle" else color)
        if marker == "square":
            painter.drawRect(QRectF(middle.x() - radius, middle.y() - radius, 2 * radius, 2 * radius))
        else:
            painter.drawEllipse(middle, radius, radius)
    painter.restore()


def _paint_box(painter: QPainter, middle: QPointF, theme: Theme, *, is_done: bool) -> None:
    side = theme.px(_BOX)
    box = QRectF(round(middle.x() - side / 2), round(middle.y() - side / 2), side, side).adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setPen(QPen(theme.color("fill" if is_done else "text_dim"), 1))
    painter.setBrush(theme.color("fill") if is_done else Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(box, 3, 3)
    if is_done:
        painter.setPen(QPen(theme.color("on_fill"), 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        corner = QPointF(box.left() + side * 0.40, box.top() + side * 0.66)
        painter.drawLine(QPointF(box.left() + side * 0.20, box.top() + side * 0.46), corner)
        painter.drawLine(corner, QPointF(box.left() + side * 0.72, box.top() + side * 0.26))
