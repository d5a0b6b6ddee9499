"""Paints what a text document cannot: code cards, quote bars, rules, table lines and list markers."""

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QPen,
    QTextBlock,
    QTextDocument,
    QTextFrame,
    QTextTable,
)

from qwendesk.chat.view.answer.markdown_writer import (
    CARD_BELOW,
    CARD_GAP,
    CARD_HEADER,
    CARD_PADDING,
    HAS_CONTINUATION,
    IS_CONTINUATION,
    KIND,
    LANGUAGE,
    MARKER,
)
from qwendesk.core.translation import tr
from qwendesk.widgets.theme import Theme

# Pixels by which a card that continues in another section is painted beyond the edge of its own.
_BEYOND = 40
_BUTTONS = 150
_RADIUS = 10


def paint_frames(painter: QPainter, document: QTextDocument, theme: Theme, area: QRect) -> None:
    """Paint everything below the text of `document` that intersects `area`."""
    _paint(painter, document, document.rootFrame(), theme, QRectF(area))
    paint_markers(painter, document, theme, QRectF(area))


def card_rect(document: QTextDocument, frame: QTextFrame) -> QRectF:
    """Return the rectangle of a code card: the frame with its header, without the margin."""
    box: QRectF = document.documentLayout().frameBoundingRect(frame)
    form = frame.frameFormat()
    left = box.left() + form.leftMargin() - CARD_PADDING
    right = box.right() - form.rightMargin() + CARD_PADDING
    top = box.top() - _BEYOND if form.boolProperty(IS_CONTINUATION) else box.top() + CARD_GAP
    bottom = box.bottom() + _BEYOND if form.boolProperty(HAS_CONTINUATION) else box.bottom() - CARD_BELOW
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
    if frame.frameFormat().boolProperty(IS_CONTINUATION):
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
    """Paint a rounded rectangle. Only its corners are antialiased, which makes it ten times as fast."""
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
    """Paint a line below each row, as wide as the table."""
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


# Pixels from the centre of a marker to the text.
_MARKER_GAP = 12.0
_BOX_SIDE = 13.0
_BULLET_RADIUS = 2.5


def paint_markers(painter: QPainter, document: QTextDocument, theme: Theme, area: QRectF) -> None:
    """Paint the markers of the list items that intersect `area`."""
    layout = document.documentLayout()
    block = document.begin()
    while block.isValid():
        marker = block.blockFormat().property(MARKER)
        if marker and block.isVisible():
            box: QRectF = layout.blockBoundingRect(block)
            if box.top() > area.bottom():
                return
            if box.bottom() >= area.top():
                _paint_marker(painter, str(marker), _marker_centre(block, box), theme)
        block = block.next()


def _marker_centre(block: QTextBlock, box: QRectF) -> QPointF:
    """Return the centre of a marker: before the first line, at half the height of a lower-case x."""
    line = block.layout().lineAt(0)
    text_rect = line.naturalTextRect()
    is_rtl = block.textDirection() is Qt.LayoutDirection.RightToLeft
    x = text_rect.right() + _MARKER_GAP if is_rtl else text_rect.left() - _MARKER_GAP
    middle = QFontMetricsF(block.charFormat().font()).xHeight() / 2
    return box.topLeft() + QPointF(x, line.y() + line.ascent() - middle)


def _paint_marker(painter: QPainter, marker: str, middle: QPointF, theme: Theme) -> None:
    painter.save()
    if marker in ("done", "open"):
        _paint_box(painter, middle, theme, is_done=marker == "done")
    else:
        color, radius = theme.color("text_dim"), _BULLET_RADIUS * theme.text_scale
        painter.setPen(QPen(color, 1.2) if marker == "circle" else Qt.PenStyle.NoPen)
        painter.setBrush(Qt.BrushStyle.NoBrush if marker == "circle" else color)
        if marker == "square":
            painter.drawRect(QRectF(middle.x() - radius, middle.y() - radius, 2 * radius, 2 * radius))
        else:
            painter.drawEllipse(middle, radius, radius)
    painter.restore()


def _paint_box(painter: QPainter, middle: QPointF, theme: Theme, *, is_done: bool) -> None:
    side = theme.px(_BOX_SIDE)
    box = QRectF(round(middle.x() - side / 2), round(middle.y() - side / 2), side, side).adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setPen(QPen(theme.color("fill" if is_done else "text_dim"), 1))
    painter.setBrush(theme.color("fill") if is_done else Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(box, 3, 3)
    if is_done:
        painter.setPen(QPen(theme.color("on_fill"), 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        corner = QPointF(box.left() + side * 0.40, box.top() + side * 0.66)
        painter.drawLine(QPointF(box.left() + side * 0.20, box.top() + side * 0.46), corner)
        painter.drawLine(corner, QPointF(box.left() + side * 0.72, box.top() + side * 0.26))
