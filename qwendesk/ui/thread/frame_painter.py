"""Paints what a text document cannot draw by itself: code cards, quote bars, rules, lines under table rows."""

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QTextDocument, QTextFrame, QTextTable

from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme import Theme
from qwendesk.ui.thread.markdown_writer import (
    CARD_BELOW,
    CARD_GAP,
    CARD_HEADER,
    CARD_PADDING,
    FOLLOWS,
    GOES_ON,
    KIND,
    LANGUAGE,
)
from qwendesk.ui.thread.marker_painter import paint_markers

_BEYOND = 40
"""How far a card that goes on in the next section is painted beyond the edge of this one."""
_BUTTONS = 150
_RADIUS = 10


def paint_frames(painter: QPainter, document: QTextDocument, theme: Theme, area: QRect) -> None:
    """Everything under the text of `document` that touches `area`."""
    _paint(painter, document, document.rootFrame(), theme, QRectF(area))
    paint_markers(painter, document, theme, QRectF(area))


def card_rect(document: QTextDocument, frame: QTextFrame) -> QRectF:
    """Where a code card is painted: the frame's box with its header, without the gap around it."""
    box: QRectF = document.documentLayout().frameBoundingRect(frame)
    form = frame.frameFormat()
    left = box.left() + form.leftMargin() - CARD_PADDING
    right = box.right() - form.rightMargin() + CARD_PADDING
    top = box.top() - _BEYOND if form.boolProperty(FOLLOWS) else box.top() + CARD_GAP
    bottom = box.bottom() + _BEYOND if form.boolProperty(GOES_ON) else box.bottom() - CARD_BELOW
    return QRectF(left, top, right - left, bottom - top)


def _paint(painter: QPainter, document: QTextDocument, parent: QTextFrame, theme: Theme, area: QRectF) -> None:
    layout = document.documentLayout()
    for frame in parent.childFrames():
        box = layout.frameBoundingRect(frame)
        if not box.adjusted(0, -_BEYOND, 0, _BEYOND).intersects(area):
            continue
        match frame.frameFormat().property(KIND):
            case "code":
                _paint_card(painter, document, frame, theme)
            case "quote":
                painter.fillRect(QRectF(box.left(), box.top() + 4, 3, box.height() - 8), theme.color("quote_bar"))
                _paint(painter, document, frame, theme, area)
            case "rule":
                line = QRectF(box.left(), round(box.center().y()), document.textWidth(), 1)
                painter.fillRect(line, theme.color("divider"))
            case _ if isinstance(frame, QTextTable):
                _paint_rows(painter, document, frame, box, theme)
            case _:
                _paint(painter, document, frame, theme, area)


def _paint_card(painter: QPainter, document: QTextDocument, frame: QTextFrame, theme: Theme) -> None:
    card = card_rect(document, frame).toAlignedRect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
    _paint_round(painter, card, theme.color("code_background"), theme.color("code_border"))
    if frame.frameFormat().boolProperty(FOLLOWS):
        return
    line = card.top() + CARD_HEADER
    painter.fillRect(QRectF(card.left(), line - 0.5, card.width(), 1), theme.color("code_border"))
    painter.setPen(theme.color("text_dim"))
    painter.setFont(theme.font(12))
    header = QRectF(card.left() + CARD_PADDING, card.top(), card.width() - _BUTTONS, CARD_HEADER)
    language = painter.fontMetrics().elidedText(
        str(frame.frameFormat().property(LANGUAGE) or tr("code")), Qt.TextElideMode.ElideRight, int(header.width())
    )
    painter.drawText(header, Qt.AlignmentFlag.AlignVCenter, language)


def _paint_round(painter: QPainter, card: QRectF, fill: QColor, line: QColor) -> None:
    """A rounded rectangle. Only its corners are smoothed: smoothing all of a large one takes ten times as long."""
    outer, side = card.adjusted(-0.5, -0.5, 0.5, 0.5), 2 * _RADIUS
    painter.fillRect(outer.adjusted(_RADIUS, 0, -_RADIUS, 0), fill)
    painter.fillRect(outer.adjusted(0, _RADIUS, 0, -_RADIUS), fill)
    inner = outer.adjusted(_RADIUS, 0, -_RADIUS, 0)
    painter.fillRect(QRectF(inner.left(), outer.top(), inner.width(), 1), line)
    painter.fillRect(QRectF(inner.left(), outer.bottom() - 1, inner.width(), 1), line)
    inner = outer.adjusted(0, _RADIUS, 0, -_RADIUS)
    painter.fillRect(QRectF(outer.left(), inner.top(), 1, inner.height()), line)
    painter.fillRect(QRectF(outer.right() - 1, inner.top(), 1, inner.height()), line)
    painter.setPen(QPen(line, 1))
    painter.setBrush(fill)
    corners = (
        (outer.left(), outer.top(), 0, 0),
        (outer.right() - _RADIUS, outer.top(), 1, 0),
        (outer.left(), outer.bottom() - _RADIUS, 0, 1),
        (outer.right() - _RADIUS, outer.bottom() - _RADIUS, 1, 1),
    )
    for x, y, right, below in corners:
        painter.save()
        painter.setClipRect(QRectF(x, y, _RADIUS, _RADIUS), Qt.ClipOperation.IntersectClip)
        circle = QRectF(x - right * _RADIUS, y - below * _RADIUS, side, side)
        painter.drawEllipse(circle.adjusted(0.5, 0.5, -0.5, -0.5))
        painter.restore()


def _paint_rows(painter: QPainter, document: QTextDocument, table: QTextTable, box: QRectF, theme: Theme) -> None:
    """One line under each row, as wide as the words reach."""
    layout = document.documentLayout()
    bottoms = []
    for row in range(table.rows()):
        bottom = 0.0
        for column in range(table.columns()):
            cell = layout.blockBoundingRect(table.cellAt(row, column).lastCursorPosition().block())
            bottom = max(bottom, cell.bottom())
        bottoms.append(bottom + 6)
    for bottom in bottoms:
        painter.fillRect(QRectF(box.left(), bottom, box.width(), 1), theme.color("divider"))
