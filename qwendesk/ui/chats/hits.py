"""What a search found: a model, and how each hit looks: the chat's title over the words around what was found."""

from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from qwendesk.core.chats import SearchHit
from qwendesk.ui.kit.direction import draw_line
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_SIDE, _INNER, _RADIUS = 12, 10, 8
_BOLD_IS_WIDER = 0.95
"""What is found is bold; the rest is measured as if nothing were."""
_ROOT = QModelIndex()


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
                    each for each in (hit.title, where(hit), "".join(text for text, _ in hit.snippet)) if each
                )
        return None


def where(hit: SearchHit) -> str:
    """In a few words, what was found."""
    if not hit.node_id:
        return tr("Title")
    if hit.in_reasoning:
        return tr("Thought")
    if hit.in_document:
        return tr("Document")
    return tr("Answer") if hit.is_answer else tr("Question")


class HitDelegate(QStyledItemDelegate):
    """Two lines: title and where, then the snippet with what was found in bold."""

    def __init__(self, keeper: ThemeKeeper, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._keeper = keeper

    def sizeHint(self, _option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        theme = self._keeper.theme
        hit: SearchHit = index.data(Qt.ItemDataRole.UserRole)
        return QSize(120, theme.px(13) + (theme.px(12) + 33 if hit.snippet else 25))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme = self._keeper.theme
        hit: SearchHit = index.data(Qt.ItemDataRole.UserRole)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(rect.adjusted(_SIDE, 2, -_SIDE, -2))
        if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("card" if state & QStyle.StateFlag.State_Selected else "hover"))
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
        inner = box.adjusted(_INNER, 6, -_INNER, -6)
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("text_dim"))
        label = where(hit)
        label_width = painter.fontMetrics().horizontalAdvance(label)
        first = QRectF(inner.left(), inner.top(), inner.width(), painter.fontMetrics().height() + 4)
        painter.drawText(first, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), label)
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("text"))
        draw_line(painter, first.adjusted(0, 0, -label_width - 8, 0), hit.title or tr("Untitled"))
        self._paint_snippet(painter, QPointF(inner.left(), first.bottom() + 4), inner.width(), hit)
        painter.restore()

    def _paint_snippet(self, painter: QPainter, at: QPointF, width: float, hit: SearchHit) -> None:
        theme = self._keeper.theme
        pieces = _fitting(_from_first_match(hit.snippet), QFontMetrics(theme.font(12)), width)
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
            line.setLineWidth(width)  # the side where Arabic and Hebrew begin
        layout.endLayout()
        painter.setPen(theme.color("text_dim"))
        painter.setClipRect(QRectF(at.x(), at.y() - 2, width, theme.px(12) + 8))
        layout.draw(painter, at)


def _fitting(
    snippet: tuple[tuple[str, bool], ...], metrics: QFontMetrics, width: float
) -> tuple[tuple[str, bool], ...]:
    """The same snippet, its end left out where there is no room for it."""
    text = "".join(piece for piece, _ in snippet)
    room = int(width * _BOLD_IS_WIDER)
    if metrics.horizontalAdvance(text) <= room:
        return snippet
    left = len(metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)) - 1
    fitting: list[tuple[str, bool]] = []
    for piece, is_found in snippet:
        fitting.append((piece[:left], is_found))
        left = max(0, left - len(piece))
    return (*fitting, ("…", False))


def _from_first_match(snippet: tuple[tuple[str, bool], ...], before: int = 12) -> tuple[tuple[str, bool], ...]:
    """The same snippet beginning a little before what was found, so that it is seen in a narrow list."""
    if not snippet or snippet[0][1]:
        return snippet
    first = snippet[0][0]
    if len(first) <= before:
        return snippet
    cut = first[-before:]
    return (("…" + (cut.split(" ", 1)[1] if " " in cut else cut), False), *snippet[1:])
