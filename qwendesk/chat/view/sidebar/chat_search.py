"""The search in all chats: its field, and the model and delegate of its results."""

from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from qwendesk.core.chats import SearchHit
from qwendesk.core.translation import tr
from qwendesk.widgets.controls import add_clear_button
from qwendesk.widgets.text_layout import draw_line
from qwendesk.widgets.theme_keeper import current_theme

_SIDE, _INNER, _RADIUS = 12, 10, 8
# Share of the width used for the snippet: widths are measured without bold, and bold words need more space.
_BOLD_FACTOR = 0.95
_ROOT = QModelIndex()


class SearchField(QLineEdit):
    """The search field. Esc clears it unless it is empty; Down or Enter moves to the results."""

    left = Signal()
    """Down or Enter was pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "search")
        add_clear_button(self)
        self.setFixedHeight(32)

    def event(self, event: QEvent) -> bool:
        # Esc is also the shortcut of the window's command Stop, which otherwise has precedence.
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._is_clearing(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._is_clearing(event):
            self.clear()
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def _is_clearing(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Escape and bool(self.text())


class HitModel(QAbstractListModel):
    """Hits of one search, titles first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._hits: tuple[SearchHit, ...] = ()

    def show_hits(self, hits: tuple[SearchHit, ...]) -> None:
        self.beginResetModel()
        self._hits = hits
        self.endResetModel()

    def hit(self, index: QModelIndex) -> SearchHit:
        return self._hits[index.row()]

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._hits)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        hit = self._hits[index.row()]
        match role:
            case Qt.ItemDataRole.UserRole:
                return hit
            case Qt.ItemDataRole.DisplayRole:
                return hit.title or tr("Untitled")
            case Qt.ItemDataRole.AccessibleTextRole:
                return ". ".join(
                    each for each in (hit.title, place_of(hit), "".join(text for text, _ in hit.snippet)) if each
                )
        return None


def place_of(hit: SearchHit) -> str:
    """Return what kind of text was found: a title, thinking, a document, a question or an answer."""
    if not hit.node_id:
        return tr("Title")
    if hit.in_reasoning:
        return tr("Thinking")
    if hit.in_document:
        return tr("Document")
    return tr("Answer") if hit.is_answer else tr("Question")


class HitDelegate(QStyledItemDelegate):
    """Draws two lines: title and place, then the snippet with the words that were found in bold."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)

    def sizeHint(self, _option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        theme = current_theme()
        hit: SearchHit = index.data(Qt.ItemDataRole.UserRole)
        return QSize(120, theme.px(13) + (theme.px(12) + 33 if hit.snippet else 25))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme = current_theme()
        hit: SearchHit = index.data(Qt.ItemDataRole.UserRole)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(rect.adjusted(_SIDE, 2, -_SIDE, -2))
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        if is_selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(theme.color("pill_on_border") if is_selected else Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("pill_on" if is_selected else "hover"))
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
        inner = box.adjusted(_INNER, 6, -_INNER, -6)
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("text_dim"))
        label = place_of(hit)
        label_width = painter.fontMetrics().horizontalAdvance(label)
        first = QRectF(inner.left(), inner.top(), inner.width(), painter.fontMetrics().height() + 4)
        painter.drawText(first, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), label)
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("text"))
        draw_line(painter, first.adjusted(0, 0, -label_width - 8, 0), hit.title or tr("Untitled"))
        self._paint_snippet(painter, QPointF(inner.left(), first.bottom() + 4), inner.width(), hit)
        painter.restore()

    def _paint_snippet(self, painter: QPainter, at: QPointF, width: float, hit: SearchHit) -> None:
        theme = current_theme()
        pieces = _elided(_from_first_match(hit.snippet), QFontMetrics(theme.font(12)), width)
        layout = QTextLayout("".join(text for text, _ in pieces), theme.font(12))
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        layout.setTextOption(option)
        found = QTextCharFormat()
        found.setFontWeight(QFont.Weight.DemiBold)
        found.setForeground(theme.color("text_link"))
        ranges, begin = [], 0
        for text, is_found in pieces:
            if is_found:
                each = QTextLayout.FormatRange()
                each.start, each.length, each.format = begin, len(text), found
                ranges.append(each)
            begin += len(text)
        layout.setFormats(ranges)
        layout.beginLayout()
        line = layout.createLine()
        if line.isValid():
            line.setLineWidth(width)  # for Arabic and Hebrew, which are aligned at the right end of the line
        layout.endLayout()
        painter.setPen(theme.color("text_dim"))
        painter.setClipRect(QRectF(at.x(), at.y() - 2, width, theme.px(12) + 8))
        layout.draw(painter, at)


def _elided(snippet: tuple[tuple[str, bool], ...], metrics: QFontMetrics, width: float) -> tuple[tuple[str, bool], ...]:
    """Return the snippet, shortened at its end to fit into `width`."""
    text = "".join(piece for piece, _ in snippet)
    usable = int(width * _BOLD_FACTOR)
    if metrics.horizontalAdvance(text) <= usable:
        return snippet
    left = len(metrics.elidedText(text, Qt.TextElideMode.ElideRight, usable)) - 1
    kept: list[tuple[str, bool]] = []
    for piece, is_found in snippet:
        kept.append((piece[:left], is_found))
        left = max(0, left - len(piece))
    return (*kept, ("…", False))


# Characters that are shown before the first match.
_BEFORE_MATCH = 12


def _from_first_match(snippet: tuple[tuple[str, bool], ...]) -> tuple[tuple[str, bool], ...]:
    """Return the snippet from just before the first match, so that it is visible in a narrow list."""
    if not snippet or snippet[0][1]:
        return snippet
    first = snippet[0][0]
    if len(first) <= _BEFORE_MATCH:
        return snippet
    cut = first[-_BEFORE_MATCH:]
    return (("…" + (cut.split(" ", 1)[1] if " " in cut else cut), False), *snippet[1:])
