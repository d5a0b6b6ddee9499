"""How a row of the list looks: a chat is a rounded line, a heading is small and dim, a folder can be folded."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from qwendesk.core.chats import ChatSummary
from qwendesk.ui.chats.chat_model import ROW_ROLE
from qwendesk.ui.chats.rows import Heading
from qwendesk.ui.kit.direction import draw_line
from qwendesk.ui.kit.icons import pixmap
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_SIDE = 12
"""Between the panel's edge and a row's rounded background."""
_INNER = 10
_RADIUS = 8
_ICON = 14


class RowDelegate(QStyledItemDelegate):
    """All rows are of one height: the view then never has to measure 10,000 of them."""

    def __init__(self, keeper: ThemeKeeper, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._keeper = keeper
        self.current_id = ""
        """The open chat, which stands out."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(120, self._keeper.theme.px(13) + self._keeper.theme.space(23))

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
        editor.setToolTip(tr("Enter keeps the new name, Esc the old one"))
        return editor

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex
    ) -> None:
        rect: QRect = option.rect
        editor.setGeometry(rect.adjusted(_SIDE, 2, -_SIDE, -2))

    def _paint_chat(self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, chat: ChatSummary) -> None:
        theme = self._keeper.theme
        box = QRectF(rect.adjusted(_SIDE, 2, -_SIDE, -2))
        is_open = chat.id == self.current_id
        if is_open or state & QStyle.StateFlag.State_Selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("card"))
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("hover"))
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
        self._paint_focus(painter, box, state)
        text = box.adjusted(_INNER, 0, -_INNER, 0)
        if chat.pinned:
            drawing = pixmap("pin", theme["text_dim"], _ICON, painter.device().devicePixelRatioF())
            painter.drawPixmap(int(text.right()) - _ICON, int(text.center().y()) - _ICON // 2, drawing)
            text.setRight(text.right() - _ICON - 6)
        painter.setFont(theme.font(13, QFont.Weight.Medium if is_open else QFont.Weight.Normal))
        painter.setPen(theme.color("text"))
        draw_line(painter, text, chat.title or tr("Untitled"))

    def _paint_heading(self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, heading: Heading) -> None:
        theme = self._keeper.theme
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
        """A frame around the row that the keyboard is on."""
        both = QStyle.StateFlag.State_HasFocus | QStyle.StateFlag.State_KeyboardFocusChange
        if state & both == both:
            painter.setPen(self._keeper.theme.color("focus"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
