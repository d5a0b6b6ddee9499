"""The list of chats in the sidebar, and how its rows are drawn."""

from PySide6.QtCore import (
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFocusEvent, QFont, QFontMetrics, QHelpEvent, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QWidget,
)

from qwendesk.chat.view.sidebar.chat_model import ROW_ROLE, ChatModel, Heading, Row
from qwendesk.core.chats import ChatSummary
from qwendesk.core.translation import tr
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.text_layout import draw_line
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Distance in pixels between the panel's edge and the background of a row.
_SIDE = 12
_INNER = 10
_RADIUS = 8
_ICON, _ICON_GAP = 14, 6


class RowDelegate(QStyledItemDelegate):
    """Draws the rows. All have the same height, so that the view needn't measure each of 10,000 rows."""

    def __init__(self, parent: QObject) -> None:
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

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        """Show the title of a chat only where it is cut: elsewhere it would cover the next row to repeat this one."""
        row = index.data(ROW_ROLE)
        if isinstance(row, ChatSummary) and self._title_fits(option.rect, row):
            QToolTip.hideText()
            return True
        return super().helpEvent(event, view, option, index)

    def _title_fits(self, rect: QRect, chat: ChatSummary) -> bool:
        n_icons = sum(_marks(chat).values())
        room = rect.width() - 2 * (_SIDE + _INNER) - n_icons * (_ICON + _ICON_GAP)
        return QFontMetrics(self._title_font(chat)).horizontalAdvance(chat.title or tr("Untitled")) <= room

    def _title_font(self, chat: ChatSummary) -> QFont:
        weight = QFont.Weight.Medium if chat.id == self.current_id else QFont.Weight.Normal
        return current_theme().font(13, weight)

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
        marks = _marks(chat)
        for icon in (name for name, is_shown in marks.items() if is_shown):
            drawing = pixmap(icon, theme["text_dim"], _ICON, painter.device().devicePixelRatioF())
            painter.drawPixmap(int(text.right()) - _ICON, int(text.center().y()) - _ICON // 2, drawing)
            text.setRight(text.right() - _ICON - _ICON_GAP)
        painter.setFont(self._title_font(chat))
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


def _marks(chat: ChatSummary) -> dict[str, bool]:
    """Return which icons stand behind the title, by their names."""
    return {"pin": chat.pinned, "branch": bool(chat.settings.branched_from)}


def set_up_list(view: QListView) -> None:
    """Set the properties that both lists of the sidebar share."""
    view.setFrameShape(QFrame.Shape.NoFrame)
    view.setProperty("kind", "chats")
    view.setUniformItemSizes(True)
    view.setMouseTracking(True)
    view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    view.verticalScrollBar().setSingleStep(16)
    view.setTabKeyNavigation(False)


class ChatList(QListView):
    """The list of chats. It changes nothing itself: signals report what the user wants to do with chats."""

    open_asked = Signal(str)
    delete_asked = Signal()
    folder_toggled = Signal(str)

    def __init__(self, model: ChatModel) -> None:
        super().__init__()
        set_up_list(self)
        self._model = model
        self._delegate = RowDelegate(self)
        self._is_same_chat = True
        """Whether no other chat was opened since the rows were shown."""
        self._folder_to_rename = ""
        """Id of a new folder that the list doesn't show yet."""
        self.setObjectName("chats.list")
        self.setAccessibleName(tr("Chats"))
        self.setToolTip(
            tr(
                "Enter opens a chat, F2 renames it, Delete deletes it. Drag chats into folders. The menu "
                "key shows more."
            )
        )
        self.setModel(model)
        self.selectionModel().selectionChanged.connect(self._on_selection)
        self.setItemDelegate(self._delegate)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setDragDropOverwriteMode(True)  # chats are dropped onto a row, never between two rows
        app_theme().changed.connect(self.reset)

    def selected_chats(self) -> tuple[ChatSummary, ...]:
        """Return the selected chats in the order of the list."""
        indexes = sorted(self.selectionModel().selectedIndexes(), key=lambda index: index.row())
        rows = [index.data(ROW_ROLE) for index in indexes]
        return tuple(row for row in rows if isinstance(row, ChatSummary))

    def note_opened(self) -> None:
        """Note that another chat was opened, perhaps for a moment only: the next `show_rows` selects the open one."""
        self._is_same_chat = False

    def show_rows(self, rows: tuple[Row, ...], current_id: str) -> None:
        """Show new rows. Keep the scroll position, and the selection unless another chat was opened."""
        is_same_chat, self._is_same_chat = self._is_same_chat, True
        self._delegate.current_id = current_id
        selected = [chat.id for chat in self.selected_chats() if is_same_chat] or [current_id]
        scrolled = self.verticalScrollBar().value()
        is_renaming = self.state() is QAbstractItemView.State.EditingState  # the selection would end it
        if self._model.show_rows(rows) or not (is_same_chat or is_renaming):
            self._select(selected)
            self.verticalScrollBar().setValue(scrolled)
        self.viewport().update()
        self._edit_new_folder()

    def rename_folder(self, folder_id: str) -> None:
        """Let the user edit the name of a folder in its row, as soon as the list shows it."""
        self._folder_to_rename = folder_id
        self._edit_new_folder()

    def _edit_new_folder(self) -> None:
        index = self._model.index_of_folder(self._folder_to_rename)
        if index.isValid():
            self._folder_to_rename = ""
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
            self.edit(index)

    def select_open_chat(self) -> None:
        """Select the open chat instead of the only selected one; several selected chats stay selected."""
        if len(self.selected_chats()) <= 1:
            self.selectionModel().select(
                self._model.index_of(self._delegate.current_id), QItemSelectionModel.SelectionFlag.ClearAndSelect
            )

    def _select(self, chat_ids: list[str]) -> None:
        self.selectionModel().clearSelection()
        for chat_id in chat_ids:
            index = self._model.index_of(chat_id)
            self.selectionModel().select(index, QItemSelectionModel.SelectionFlag.Select)
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)

    def _on_selection(self) -> None:
        self._delegate.several_selected = len(self.selectionModel().selectedIndexes()) > 1
        self.viewport().update()

    def go_to_open_chat(self) -> None:
        """Make the open chat the current one; none, if it isn't listed yet."""
        index = self._model.index_of(self._delegate.current_id)
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.scrollTo(index)

    def rename_current(self) -> bool:
        """Let the user edit the name of the current chat. Return False if there is none."""
        if self.currentIndex().isValid() and self.state() is not QAbstractItemView.State.EditingState:
            self.edit(self.currentIndex())
        return self.currentIndex().isValid()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """If the focus arrives by Tab and nothing is selected, select the open chat or else the first one."""
        if not self.currentIndex().isValid():  # Qt would choose the first row, which is a heading
            index = self._model.index_of(self._delegate.current_id)
            index = index if index.isValid() else self._model.index(min(1, len(self._model.rows) - 1), 0)
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        by_key = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        if by_key and not self.selected_chats():  # the menu key and Delete need a selection
            self.selectionModel().select(self.currentIndex(), QItemSelectionModel.SelectionFlag.Select)
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.state() is QAbstractItemView.State.EditingState:  # Enter in the name editor arrives here too
            super().keyPressEvent(event)
            return
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._activate(self.currentIndex())
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace if self.selected_chats():
                self.delete_asked.emit()
            case _:
                super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() is Qt.MouseButton.LeftButton and not event.modifiers():
            self._activate(self.indexAt(event.position().toPoint()))

    def _activate(self, index: QModelIndex) -> None:
        row = index.data(ROW_ROLE) if index.isValid() else None
        if isinstance(row, ChatSummary):
            self.open_asked.emit(row.id)
        elif isinstance(row, Heading) and row.folder_id:
            self.folder_toggled.emit(row.folder_id)
