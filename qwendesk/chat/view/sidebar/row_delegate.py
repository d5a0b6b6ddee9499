"""Draws the rows of the chat list: chats, headings and folders."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from qwendesk.chat.view.sidebar.chat_model import ROW_ROLE
from qwendesk.chat.view.sidebar.rows import Heading
from qwendesk.core.chats import ChatSummary
from qwendesk.core.translation import tr
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.text_layout import draw_line
from qwendesk.widgets.theme_keeper import current_theme

_SIDE = 12
"""Distance in pixels between the panel's edge and the background of a row."""
_INNER = 10
_RADIUS = 8
_ICON = 14


class RowDelegate(QStyledItemDelegate):
    """Draws the rows. All have the same height, so that the view needn't measure each of 10,000 rows."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.current_id = ""
        """Id of the open chat, which is highlighted."""
        self.several_selected = False
        """Whether more than one row is selected, so that the open chat must show if it is one of them."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(120, current_theme().px(13) + current_theme().space(23))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        row = index.data(ROW_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        if isinstance(row, Heading):
            self._paint_heading(painter, rect, state, row)
        elif isinstance(row, ChatSummary):
            self._paint_chat(painter, rect, state, row)
        painter.restore()

    def createEditor(
        self, parent: QWidget, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex
    ) -> QWidget:
        editor = QLineEdit(parent)
        editor.setObjectName("chats.rename")
        editor.setProperty("kind", "rename")
        editor.setAccessibleName(tr("New name"))
        editor.setToolTip(tr("Enter saves the new name, Esc cancels"))
        return editor

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex
    ) -> None:
        rect: QRect = option.rect
        editor.setGeometry(rect.adjusted(_SIDE, 2, -_SIDE, -2))

    def _paint_chat(self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, chat: ChatSummary) -> None:
        theme = current_theme()
        box = QRectF(rect.adjusted(_SIDE, 2, -_SIDE, -2))
        is_open = chat.id == self.current_id
        is_selected = bool(state & QStyle.StateFlag.State_Selected) and (self.several_selected or not is_open)
        if is_open or is_selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(theme.color("pill_on_border") if is_selected else Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("card" if is_open else "pill_on" if is_selected else "hover"))
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
        self._paint_focus(painter, box, state)
        text = box.adjusted(_INNER, 0, -_INNER, 0)
        marks = {"pin": chat.pinned, "branch": bool(chat.settings.branched_from)}
        for icon in (name for name, is_shown in marks.items() if is_shown):
            drawing = pixmap(icon, theme["text_dim"], _ICON, painter.device().devicePixelRatioF())
            painter.drawPixmap(int(text.right()) - _ICON, int(text.center().y()) - _ICON // 2, drawing)
            text.setRight(text.right() - _ICON - 6)
        painter.setFont(theme.font(13, QFont.Weight.Medium if is_open else QFont.Weight.Normal))
        painter.setPen(theme.color("text"))
        # The end of a branch's name is what tells it from its original.
        elide = Qt.TextElideMode.ElideMiddle if marks["branch"] else Qt.TextElideMode.ElideRight
        draw_line(painter, text, chat.title or tr("Untitled"), elide)

    def _paint_heading(self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, heading: Heading) -> None:
        theme = current_theme()
        box = QRectF(rect.adjusted(_SIDE, 2, -_SIDE, -2))
        text = QRectF(rect.adjusted(_SIDE + _INNER - 2, 0, -_SIDE - _INNER, -5))
        painter.setPen(theme.color("text_dim"))
        painter.setFont(theme.font(11, QFont.Weight.DemiBold))
        if not heading.folder_id:
            self._paint_focus(painter, box, state)
            painter.setPen(theme.color("text_dim"))
            painter.drawText(text, int(Qt.AlignmentFlag.AlignBottom), heading.text)
            return
        if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            painter.save()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("hover"))
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
            painter.restore()
        self._paint_focus(painter, box, state)
        ratio = painter.device().devicePixelRatioF()
        y = int(box.center().y()) - _ICON // 2
        painter.drawPixmap(int(text.left()), y, pixmap("folder", theme["text_dim"], _ICON, ratio))
        arrow = pixmap("down" if heading.is_open else "right", theme["text_dim"], _ICON, ratio)
        painter.drawPixmap(int(box.right()) - _INNER - _ICON, y, arrow)
        painter.setFont(theme.font(12, QFont.Weight.DemiBold))
        painter.setPen(theme.color("text_dim"))
        name = QRectF(text.left() + _ICON + 8, box.top(), text.width() - 2 * _ICON - 16, box.height())
        label = heading.text if heading.is_open else tr("{0} · {1}", heading.text, heading.count)
        draw_line(painter, name, label)

    def _paint_focus(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        """Draw a frame around the row that has the keyboard focus."""
        both = QStyle.StateFlag.State_HasFocus | QStyle.StateFlag.State_KeyboardFocusChange
        if state & both == both:
            painter.setPen(current_theme().color("focus"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
