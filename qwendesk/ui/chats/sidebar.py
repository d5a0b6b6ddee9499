"""The list of chats beside the thread: search on top, chats by folder and day, what a search found in their place."""

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QListView, QMenu, QStackedWidget, QVBoxLayout

from qwendesk.ui.bridges.chats import ChatsBridge
from qwendesk.ui.chats.chat_list import ChatList, quiet_list
from qwendesk.ui.chats.chat_menu import ExportFormat, chats_menu, export_menu, folder_menu
from qwendesk.ui.chats.chat_model import ROW_ROLE, ChatModel
from qwendesk.ui.chats.hits import HitDelegate, HitModel
from qwendesk.ui.chats.rows import Heading, rows_of
from qwendesk.ui.chats.search_field import SearchField
from qwendesk.ui.chats.undo_toast import UndoToast
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr, tr_n
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

WIDTH = 260
_TYPED_MS = 60
"""How long typing in the search must rest before it searches."""


class Sidebar(QFrame):
    """Everything between the rail and the thread."""

    chat_chosen = Signal()
    """A chat was opened or begun from here."""
    export_asked = Signal(str, tuple)
    """Format and the chats' ids; no ids are all chats."""
    import_asked = Signal()

    def __init__(
        self, keeper: ThemeKeeper, bridge: ChatsBridge, tasks: Tasks, now: Callable[[], datetime] = datetime.now
    ) -> None:
        super().__init__()
        self._bridge, self._tasks, self._now = bridge, tasks, now
        self._archived = False
        self.setObjectName("chats")
        self.setProperty("kind", "sidebar")
        self.setFixedWidth(WIDTH)
        self._model = ChatModel(bridge.rename, bridge.rename_folder, bridge.move, self)
        self.list = ChatList(keeper, self._model)
        self._hit_model = HitModel(self)
        self.hits = self._hit_view(keeper)
        self._empty = QLabel()
        self._empty.setObjectName("chats.empty")
        self._empty.setProperty("kind", "small")
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignHCenter)
        self._empty.setContentsMargins(20, 24, 20, 0)
        self._stack = QStackedWidget()
        for widget in (self.list, self.hits, self._empty):
            self._stack.addWidget(widget)
        self.toast = UndoToast(keeper)
        self._typed = QTimer(self, singleShot=True, interval=_TYPED_MS)
        self._typed.timeout.connect(self._search_now)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 12, 0, 10)
        column.setSpacing(8)
        Airy(keeper, column)
        column.addLayout(self._top_row(keeper))
        column.addLayout(self._archive_row(keeper))
        column.addWidget(self._incognito_note())
        column.addWidget(self._stack, 1)
        foot = QHBoxLayout()
        foot.setContentsMargins(10, 0, 10, 0)
        foot.addWidget(self.toast)
        column.addLayout(foot)
        self._connect()
        self.refresh()

    def refresh(self) -> None:
        """Shows the chats as they are now."""
        bridge = self._bridge
        rows = rows_of(
            bridge.summaries.values(), bridge.folders, self._now(), archived=self._archived, folded=bridge.folded
        )
        self.list.show_rows(rows, bridge.current_id)
        self._incognito.setVisible(bridge.is_incognito)
        if not self.search.text().strip():
            self._show_chats()

    def focus_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def delete_selected(self) -> None:
        """With a way back."""
        chats = self.list.chats_selected()
        if not chats:
            return
        self._bridge.delete(chat.id for chat in chats)
        many = tr_n("Deleted {0} chat", "Deleted {0} chats", len(chats))
        text = tr("Deleted “{0}”", chats[0].title) if len(chats) == 1 else many
        self.toast.say(text, can_undo=True)

    def note(self, text: str) -> None:
        """Says for a while what was done; "" takes it away."""
        self.toast.say(text, can_undo=False)

    def show_archive(self, *, on: bool) -> None:
        """The archived chats in place of the others."""
        self._archived = on
        self._back.setVisible(on)
        self.refresh()

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
        bridge = self._bridge
        bridge.changed.connect(self.refresh)
        self.list.open_asked.connect(self._open)
        self.list.delete_asked.connect(self.delete_selected)
        self.list.folder_toggled.connect(bridge.toggle_folder)
        self.toast.undone.connect(bridge.undo)
        bridge.undoable.connect(lambda text: self.toast.say(text, can_undo=True))
        self.search.textChanged.connect(self._on_typed)
        self.search.left.connect(self._go_to_list)
        self._thoughts.toggled.connect(self._search_now)

    def _top_row(self, keeper: ThemeKeeper) -> QHBoxLayout:
        self.search = SearchField()
        self.search.setPlaceholderText(tr("Search chats"))
        describe(
            self.search,
            "chats.search",
            tr("Search chats"),
            tr("Words anywhere in titles and messages; quotes for words that stand together"),
            COMMANDS["search_chats"].shortcut,
        )
        self._thoughts = IconButton(keeper, "thought", size=16)
        self._thoughts.setCheckable(True)
        describe(self._thoughts, "chats.search.thoughts", tr("Search thoughts too"))
        self._thoughts.hide()
        new = IconButton(keeper, "new", role="text", size=16)
        new.setProperty("kind", "framed")
        describe(new, "chats.new", tr("New chat"), shortcut=COMMANDS["new_chat"].shortcut)
        new.clicked.connect(self._new)
        more = IconButton(keeper, "more", size=16)
        describe(more, "chats.more", tr("More"), tr("Incognito chat, archive, import and export"))
        more.clicked.connect(lambda: self._more_menu().popup(more.mapToGlobal(QPoint(0, more.height() + 4))))
        row = QHBoxLayout()
        row.setContentsMargins(12, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(self.search, 1)
        row.addWidget(self._thoughts)
        row.addSpacing(2)
        row.addWidget(new)
        row.addWidget(more)
        return row

    def _archive_row(self, keeper: ThemeKeeper) -> QHBoxLayout:
        self._back = TextButton(keeper, " " + tr("Archive: back to chats"), kind="quiet", icon_name="archive", size=14)
        describe(self._back, "chats.back", tr("Back to chats"), tr("Leave the archive"))
        self._back.clicked.connect(lambda: self.show_archive(on=False))
        self._back.hide()
        row = QHBoxLayout()
        row.setContentsMargins(12, 0, 12, 0)
        row.addWidget(self._back)
        return row

    def _incognito_note(self) -> QLabel:
        self._incognito = QLabel(tr("This chat is incognito: nothing of it is saved."))
        self._incognito.setObjectName("chats.incognito")
        self._incognito.setProperty("kind", "notice")
        self._incognito.setWordWrap(True)
        self._incognito.setContentsMargins(20, 2, 20, 2)
        return self._incognito

    def _hit_view(self, keeper: ThemeKeeper) -> QListView:
        view = QListView()
        quiet_list(view)
        view.setUniformItemSizes(False)  # what was found in a title is one line
        view.setObjectName("chats.hits")
        view.setAccessibleName(tr("What was found"))
        view.setToolTip(tr("Enter goes to the message"))
        view.setModel(self._hit_model)
        view.setItemDelegate(HitDelegate(keeper, view))
        view.activated.connect(self._open_hit)
        view.clicked.connect(self._open_hit)
        return view

    def _new(self) -> None:
        self._bridge.new()
        self.chat_chosen.emit()

    def _open(self, chat_id: str) -> None:
        self._bridge.open(chat_id)
        self.chat_chosen.emit()

    def _on_typed(self, text: str) -> None:
        self._thoughts.setVisible(bool(text.strip()))
        if text.strip():
            self._typed.start()
        else:
            self._typed.stop()
            self._show_chats()

    def _search_now(self) -> None:
        if self.search.text().strip():
            self._tasks.start(self._find(self.search.text()), self)

    async def _find(self, query: str) -> None:
        hits = await self._bridge.search(query, reasoning=self._thoughts.isChecked())
        if query != self.search.text():
            return
        self._hit_model.show_hits(hits)
        if hits:
            self._stack.setCurrentWidget(self.hits)
            self.hits.scrollToTop()
        else:
            self._say_empty(tr("Nothing has these words. Thoughts are searched with the button beside the search."))

    def _go_to_list(self) -> None:
        if self._stack.currentWidget() is self.hits:
            self.hits.setFocus()
            self.hits.setCurrentIndex(self._hit_model.index(0))
        elif self._stack.currentWidget() is self.list:
            self.list.setFocus()

    def _open_hit(self, index: QModelIndex) -> None:
        hit = self._hit_model.hit(index)
        self._bridge.open_hit(hit)
        self.chat_chosen.emit()

    def _show_chats(self) -> None:
        if self._model.rows:
            self._stack.setCurrentWidget(self.list)
        elif self._archived:
            self._say_empty(tr("The archive is empty."))
        else:
            self._say_empty(tr("Your chats will be here."))

    def _say_empty(self, sentence: str) -> None:
        self._empty.setText(sentence)
        self._stack.setCurrentWidget(self._empty)

    def _open_menu(self, position: QPoint) -> None:
        chats = self.list.chats_selected()
        current = self.list.currentIndex().data(ROW_ROLE)
        if isinstance(current, Heading) and current.folder_id:
            menu = folder_menu(self, self._bridge, current, self.list.rename_current)
        elif chats:
            export = self.export_asked.emit
            menu = chats_menu(self, self._bridge, chats, self.list.rename_current, self.delete_selected, export)
        else:
            return
        _popup(menu, position)

    def _more_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName("chats.more_menu")
        entries: tuple[tuple[str, str, Callable[[], None]], ...] = (
            ("incognito", tr("New incognito chat (never saved)"), self._new_incognito),
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

    def _new_incognito(self) -> None:
        self._bridge.new_incognito()
        self.chat_chosen.emit()

    def _export_all(self, kind: ExportFormat) -> None:
        self.export_asked.emit(kind, ())


def _popup(menu: QMenu, position: QPoint) -> None:
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(position)
