"""The sidebar: the search field, and below it the chats by folder and day or the search results."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QListView, QStackedWidget, QVBoxLayout

from qwendesk.chat.chat_list import ChatListService, ChatListState
from qwendesk.chat.view.sidebar.chat_list import ChatList, set_up_list
from qwendesk.chat.view.sidebar.chat_menu import ChatListActions, UndoToast, chats_menu, export_menu, folder_menu
from qwendesk.chat.view.sidebar.chat_model import ROW_ROLE, ChatModel, Heading, rows_of
from qwendesk.chat.view.sidebar.chat_search import HitDelegate, HitModel, SearchField
from qwendesk.core.served_model import incognito_text
from qwendesk.core.translation import tr
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.bind import REPAINT_EVERY_MS, bind, bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.tasks import window_tasks

if TYPE_CHECKING:
    from qwendesk.chat.exchange.values import ExportFormat

WIDTH = 260
# Milliseconds between the last key and the start of the search.
_SEARCH_DELAY_MS = 60


class Sidebar(QFrame):
    """The panel between the rail and the thread."""

    chat_chosen = Signal()
    """The user opened a chat or a new chat in the sidebar."""
    export_asked = Signal(str, tuple)
    """Format and the chats' ids; () means all chats."""
    import_asked = Signal()
    calls_asked = Signal(str)
    """The id of a chat whose tool calls the user wants to see."""
    hit_chosen = Signal(object)
    """A SearchHit whose message the user wants to see."""

    def __init__(self, chat_list: ChatListService) -> None:
        super().__init__()
        self._chat_list, self._tasks = chat_list, window_tasks()
        self._archived = False
        self.setObjectName("chats")
        self.setProperty("kind", "sidebar")
        self.setFixedWidth(WIDTH)
        self.toast = UndoToast()
        self.list_actions = ChatListActions(chat_list, self.toast)
        self._model = ChatModel(chat_list.chats.rename, chat_list.folders.rename, self.list_actions.move, self)
        self.list = ChatList(self._model)
        self._hit_model = HitModel(self)
        self.hits = self._hit_view()
        self._empty = QLabel()
        self._empty.setObjectName("chats.empty")
        self._empty.setProperty("kind", "small")
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignHCenter)
        self._empty.setContentsMargins(20, 24, 20, 0)
        self._stack = QStackedWidget()
        for widget in (self.list, self.hits, self._empty):
            self._stack.addWidget(widget)
        self._search_timer = QTimer(self, singleShot=True, interval=_SEARCH_DELAY_MS)
        self._search_timer.timeout.connect(self._search_now)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 12, 0, 10)
        column.setSpacing(8)
        DensitySpacing(column)
        column.addLayout(self._top_row())
        column.addLayout(self._archive_row())
        column.addWidget(self._incognito_note())
        column.addWidget(self._stack, 1)
        foot = QHBoxLayout()
        foot.setContentsMargins(10, 0, 10, 0)
        foot.addWidget(self.toast)
        column.addLayout(foot)
        self._connect()
        bind_field(self, chat_list.state, lambda state: state.current_id, lambda _id: self.list.note_opened())
        bind(self, chat_list.state, self.show_chats, every_ms=REPAINT_EVERY_MS)

    def show_chats(self, state: ChatListState) -> None:
        rows = rows_of(
            state.summaries.values(),
            state.folders,
            datetime.now(),
            archived=self._archived,
            collapsed=state.collapsed_folders,
        )
        self.list.show_rows(rows, state.current_id)
        self._incognito.setVisible(state.is_incognito)
        if not self.search.text().strip():
            self._show_chats()

    def show_model(self, model: str) -> None:
        """Say of an incognito chat what the model that answers it, as in `LoadOptions.model`, means for that."""
        self._incognito.setText(incognito_text(model))

    def rename(self) -> bool:
        """Let the user edit the name of the open chat, or of the current one while the list has the focus.

        Return False if the open chat isn't listed.
        """
        if not self.list.hasFocus():
            self.search.clear()
            self.list.go_to_open_chat()
        return self.list.rename_current()

    def focus_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def delete_selected(self) -> None:
        self.list_actions.delete(self.list.selected_chats())

    def show_message(self, text: str, folder: str = "") -> None:
        """Show a message for a while, with a button that opens `folder`; "" hides it."""
        self.toast.show_message(text, can_undo=False, folder=folder)

    def show_archive(self, *, on: bool) -> None:
        """Show the archived chats instead of the others."""
        self._archived = on
        self._back.setVisible(on)
        self.show_chats(self._chat_list.state.value)

    def new_incognito(self) -> None:
        self._chat_list.new(incognito=True)
        self.chat_chosen.emit()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if not self.list.isVisible():
            return
        by_key = event.reason() is QContextMenuEvent.Reason.Keyboard
        index = self.list.currentIndex()
        position = (
            self.list.viewport().mapToGlobal(self.list.visualRect(index).center()) if by_key else event.globalPos()
        )
        self._open_menu(position)

    def _connect(self) -> None:
        self.list.open_asked.connect(self._open)
        self.list.delete_asked.connect(self.delete_selected)
        self.list.folder_toggled.connect(self._chat_list.folders.toggle)
        self.toast.undone.connect(self._chat_list.chats.undo)
        self.search.textChanged.connect(self._on_typed)
        self.search.left.connect(self._go_to_list)
        self._with_thinking.toggled.connect(self._search_now)

    def _top_row(self) -> QHBoxLayout:
        self.search = SearchField()
        self.search.setPlaceholderText(tr("Search chats"))
        describe(
            self.search,
            "chats.search",
            tr("Search chats"),
            tr("Searches titles and messages. Put an exact phrase in quotes."),
            COMMANDS["search_chats"].shortcut,
        )
        self._with_thinking = IconButton("thought", size=16)
        self._with_thinking.setCheckable(True)
        describe(self._with_thinking, "chats.search.thoughts", tr("Search thinking too"))
        self._with_thinking.hide()
        new = IconButton("new", role="text", size=16)
        new.setProperty("kind", "framed")
        describe(new, "chats.new", tr("New chat"), shortcut=COMMANDS["new_chat"].shortcut)
        new.clicked.connect(self._new)
        more = IconButton("more", size=16)
        describe(more, "chats.more", tr("More"), tr("Incognito chat, folders, archive, import and export"))
        more.clicked.connect(lambda: self._more_menu().open_at(more))
        row = QHBoxLayout()
        row.setContentsMargins(12, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(self.search, 1)
        row.addWidget(self._with_thinking)
        row.addSpacing(2)
        row.addWidget(new)
        row.addWidget(more)
        return row

    def _archive_row(self) -> QHBoxLayout:
        self._back = TextButton(tr("Back to chats"), kind="quiet", icon_name="archive", size=14)
        describe(self._back, "chats.back", tr("Back to chats"), tr("Leave the archive"))
        self._back.clicked.connect(lambda: self.show_archive(on=False))
        self._back.hide()
        row = QHBoxLayout()
        row.setContentsMargins(12, 0, 12, 0)
        row.addWidget(self._back)
        return row

    def _incognito_note(self) -> QLabel:
        self._incognito = QLabel(incognito_text(""))
        self._incognito.setObjectName("chats.incognito")
        self._incognito.setProperty("kind", "notice")
        self._incognito.setWordWrap(True)
        self._incognito.setContentsMargins(20, 2, 20, 2)
        return self._incognito

    def _hit_view(self) -> QListView:
        view = QListView()
        set_up_list(view)
        view.setUniformItemSizes(False)  # a hit in a title has only one line
        view.setObjectName("chats.hits")
        view.setAccessibleName(tr("Search results"))
        view.setToolTip(tr("Press Enter to go to the message"))
        view.setModel(self._hit_model)
        view.setItemDelegate(HitDelegate(view))
        view.activated.connect(self._open_hit)
        view.clicked.connect(self._open_hit)
        return view

    def _new(self) -> None:
        self._chat_list.new()
        self.chat_chosen.emit()

    def _open(self, chat_id: str) -> None:
        self._tasks.start(self._chat_list.open(chat_id))
        self.chat_chosen.emit()

    def _on_typed(self, text: str) -> None:
        self._with_thinking.setVisible(bool(text.strip()))
        if text.strip():
            self._search_timer.start()
        else:
            self._search_timer.stop()
            self._show_chats()

    def _search_now(self) -> None:
        if self.search.text().strip():
            self._tasks.start(self._find(self.search.text()), self)

    async def _find(self, query: str) -> None:
        hits = await self._chat_list.search(query, reasoning=self._with_thinking.isChecked())
        if query != self.search.text():
            return
        self._hit_model.show_hits(hits)
        if hits:
            self._stack.setCurrentWidget(self.hits)
            self.hits.scrollToTop()
        else:
            self._show_empty(
                tr("No results. To search the model's thinking too, use the button next to the search field.")
            )

    def _go_to_list(self) -> None:
        if self._stack.currentWidget() is self.hits:
            self.hits.setFocus()
            self.hits.setCurrentIndex(self._hit_model.index(0))
        elif self._stack.currentWidget() is self.list:
            self.list.setFocus()

    def _open_hit(self, index: QModelIndex) -> None:
        self.hit_chosen.emit(self._hit_model.hit(index))
        self.chat_chosen.emit()

    def _show_chats(self) -> None:
        if self._model.rows:
            self._stack.setCurrentWidget(self.list)
        elif self._archived:
            self._show_empty(tr("The archive is empty."))
        else:
            self._show_empty(tr("Your chats will appear here."))

    def _show_empty(self, sentence: str) -> None:
        self._empty.setText(sentence)
        self._stack.setCurrentWidget(self._empty)

    def _open_menu(self, position: QPoint) -> None:
        chats = self.list.selected_chats()
        current = self.list.currentIndex().data(ROW_ROLE)
        if isinstance(current, Heading) and current.folder_id:
            menu = folder_menu(self, self.list_actions, current, self.list.rename_current)
        elif chats:
            menu = chats_menu(
                self, self._chat_list, self.list_actions, chats, self.list.rename_current, self.list.rename_folder,
                self.delete_selected, self.export_asked.emit, self.calls_asked.emit,
            )  # fmt: skip
            # Queued: "Delete" acts on the selection after the menu has hidden.
            menu.aboutToHide.connect(self.list.select_open_chat, Qt.ConnectionType.QueuedConnection)
        else:
            return
        _popup(menu, position)

    def _more_menu(self) -> Menu:
        menu = Menu(self)
        menu.setObjectName("chats.more_menu")
        entries: tuple[tuple[str, str, Callable[[], None]], ...] = (
            ("incognito", tr("New incognito chat (never saved)"), self.new_incognito),
            ("folder", tr("New folder"), self._add_folder),
            (
                "archive",
                tr("Back to chats") if self._archived else tr("Archived chats"),
                lambda: self.show_archive(on=not self._archived),
            ),
            ("import", tr("Import chats…"), self.import_asked.emit),
        )
        for name, text, run in entries:
            action = menu.addAction(text)
            action.setObjectName(f"chats.more.{name}")
            action.triggered.connect(lambda _checked=False, run=run: run())
        menu.addMenu(export_menu(menu, tr("Export all"), self._export_all))
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    def _add_folder(self) -> None:
        self.show_archive(on=False)
        self.list.rename_folder(self._chat_list.folders.add(tr("New folder")).id)

    def _export_all(self, kind: "ExportFormat") -> None:
        self.export_asked.emit(kind, ())


def _popup(menu: Menu, position: QPoint) -> None:
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(position)
