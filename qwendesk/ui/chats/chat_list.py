"""The view of the list of chats: opens, renames in place, folds folders, and asks to delete."""

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView

from qwendesk.core.chats import ChatSummary
from qwendesk.ui.chats.chat_model import ROW_ROLE, ChatModel
from qwendesk.ui.chats.row_delegate import RowDelegate
from qwendesk.ui.chats.rows import Heading, Row
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


def quiet_list(view: QListView) -> None:
    """How both lists of the sidebar behave: rows of one height, drawn only where they are seen."""
    view.setFrameShape(QFrame.Shape.NoFrame)
    view.setProperty("kind", "chats")
    view.setUniformItemSizes(True)
    view.setMouseTracking(True)
    view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    view.verticalScrollBar().setSingleStep(16)
    view.setTabKeyNavigation(False)


class ChatList(QListView):
    """Emits what the person wants with chats; changes none itself."""

    open_asked = Signal(str)
    delete_asked = Signal()
    folder_toggled = Signal(str)

    def __init__(self, keeper: ThemeKeeper, model: ChatModel) -> None:
        super().__init__()
        quiet_list(self)
        self._model = model
        self._delegate = RowDelegate(keeper, self)
        self.setObjectName("chats.list")
        self.setAccessibleName(tr("Chats"))
        self.setToolTip(
            tr("Enter opens, F2 renames, Delete deletes, drag moves into a folder, the menu key shows more")
        )
        self.setModel(model)
        self.setItemDelegate(self._delegate)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setDragDropOverwriteMode(True)  # onto a row, never between two
        keeper.changed.connect(self.reset)

    def chats_selected(self) -> tuple[ChatSummary, ...]:
        """In the order of the list."""
        indexes = sorted(self.selectionModel().selectedIndexes(), key=lambda index: index.row())
        rows = [index.data(ROW_ROLE) for index in indexes]
        return tuple(row for row in rows if isinstance(row, ChatSummary))

    def show_rows(self, rows: tuple[Row, ...], current_id: str) -> None:
        """Takes new rows; what is selected and how far it is scrolled stays."""
        self._delegate.current_id = current_id
        selected = [chat.id for chat in self.chats_selected()]
        scrolled = self.verticalScrollBar().value()
        if not self._model.show_rows(rows):
            self.viewport().update()
            return
        for chat_id in selected:
            index = self._model.index_of(chat_id)
            self.selectionModel().select(index, QItemSelectionModel.SelectionFlag.Select)
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        self.verticalScrollBar().setValue(scrolled)

    def rename_current(self) -> None:
        self.edit(self.currentIndex())

    def focusInEvent(self, event: QFocusEvent) -> None:
        """By Tab on the open chat, else on the first one: the arrow keys begin where it can be seen."""
        if not self.currentIndex().isValid():  # or Qt takes the first row, which is a heading
            index = self._model.index_of(self._delegate.current_id)
            index = index if index.isValid() else self._model.index(min(1, len(self._model.rows) - 1), 0)
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        by_key = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        if by_key and not self.chats_selected():  # or the menu key and Delete would mean nothing
            self.selectionModel().select(self.currentIndex(), QItemSelectionModel.SelectionFlag.Select)
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.state() is QAbstractItemView.State.EditingState:  # Enter in a new name comes here, too
            super().keyPressEvent(event)
            return
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._take(self.currentIndex())
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace if self.chats_selected():
                self.delete_asked.emit()
            case _:
                super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() is Qt.MouseButton.LeftButton and not event.modifiers():
            self._take(self.indexAt(event.position().toPoint()))

    def _take(self, index: QModelIndex) -> None:
        row = index.data(ROW_ROLE) if index.isValid() else None
        if isinstance(row, ChatSummary):
            self.open_asked.emit(row.id)
        elif isinstance(row, Heading) and row.folder_id:
            self.folder_toggled.emit(row.folder_id)
