"""The list of chats for widgets: its news become signals, intents go to the service."""

from collections.abc import Iterable, Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from qwendesk.core.chats import ChatSummary, DraftFile, Folder, ReadPosition, SavedDraft, SearchHit
from qwendesk.services.chat.chats import ChatOpened, ChatsNews, ChatsService, ListChanged, StoreTold, StoreWorks
from qwendesk.ui.bridges.repaint import REPAINT_EVERY_MS
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr, tr_n


class ChatsBridge(QObject):
    """The list of chats for widgets."""

    changed = Signal()
    """Rows or folders changed, or another chat is open; every 30 ms at most."""
    opened = Signal(object)
    """A ChatOpened."""
    told = Signal(str, str)
    """Title and sentence: something about the file of the chats."""
    undoable = Signal(str)
    """What was done just now, in a few words; `undo` takes it back."""
    works = Signal()
    """What was told about saving is over."""

    def __init__(self, service: ChatsService, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service = service
        self._tasks = tasks
        self.hit: SearchHit | None = None
        """What was chosen last of what a search found."""
        self._timer = QTimer(self, singleShot=True, interval=REPAINT_EVERY_MS)
        self._timer.timeout.connect(self.changed)
        self._unsubscribe = service.subscribe(self._on_news)

    @property
    def summaries(self) -> Mapping[str, ChatSummary]:
        return self._service.summaries

    @property
    def folders(self) -> tuple[Folder, ...]:
        return self._service.folders

    @property
    def folded(self) -> frozenset[str]:
        return self._service.folded

    def toggle_folder(self, folder_id: str) -> None:
        self._service.toggle_folder(folder_id)

    @property
    def current_id(self) -> str:
        return self._service.current_id

    @property
    def is_incognito(self) -> bool:
        return self._service.is_incognito

    def open(self, chat_id: str, node_id: str = "") -> None:
        self._tasks.start(self._service.open(chat_id, node_id))

    def open_hit(self, hit: SearchHit) -> None:
        """A chat where a search found something, at that message."""
        self.hit = hit
        self.open(hit.chat_id, hit.node_id)

    def new(self) -> None:
        self._service.new()

    def new_incognito(self) -> None:
        self._service.new(incognito=True)

    def rename(self, chat_id: str, title: str) -> None:
        self._service.rename(chat_id, title)

    def pin(self, chat_ids: Iterable[str], *, pinned: bool) -> None:
        self._service.pin(tuple(chat_ids), pinned=pinned)

    def archive(self, chat_ids: Iterable[str], *, archived: bool) -> None:
        ids = tuple(chat_ids)
        self._service.archive(ids, archived=archived)
        if archived:
            self.undoable.emit(tr_n("Archived {0} chat", "Archived {0} chats", len(ids)))
        else:
            self.undoable.emit(tr_n("{0} chat is in the list again", "{0} chats are in the list again", len(ids)))

    def move(self, chat_ids: Iterable[str], folder_id: str) -> None:
        ids = tuple(chat_ids)
        self._service.move(ids, folder_id)
        name = next((folder.name for folder in self._service.folders if folder.id == folder_id), "")
        if name:
            self.undoable.emit(tr_n("Moved {0} chat to “{1}”", "Moved {0} chats to “{1}”", len(ids), name))
        else:
            self.undoable.emit(tr_n("{0} chat has no folder now", "{0} chats have no folder now", len(ids)))

    def move_to_new_folder(self, chat_ids: Iterable[str], name: str) -> None:
        self.move(chat_ids, self._service.add_folder(name).id)

    def rename_folder(self, folder_id: str, name: str) -> None:
        self._service.rename_folder(folder_id, name)

    def delete_folder(self, folder_id: str) -> None:
        name = next((folder.name for folder in self._service.folders if folder.id == folder_id), "")
        self._service.delete_folder(folder_id)
        self.undoable.emit(tr("Removed the folder “{0}”; its chats stay", name))

    def delete(self, chat_ids: Iterable[str]) -> None:
        self._service.delete(tuple(chat_ids))

    def undo(self) -> None:
        """Take back what was deleted, archived or moved last."""
        self._service.undo()

    async def search(self, query: str, *, reasoning: bool) -> tuple[SearchHit, ...]:
        return await self._service.search(query, reasoning=reasoning)

    def change_draft(self, text: str, files: Iterable[str | DraftFile]) -> None:
        self._service.change_draft(SavedDraft(text, tuple(files)))

    def save_read_position(self, chat_id: str, position: ReadPosition) -> None:
        self._service.save_read_position(chat_id, position)

    def note_current(self) -> None:
        """The open chat is another one; the list marks it."""
        if not self._timer.isActive():
            self._timer.start()

    def close(self) -> None:
        self._unsubscribe()
        self._timer.stop()

    def _on_news(self, news: ChatsNews) -> None:
        match news:
            case ListChanged():
                self.note_current()
            case ChatOpened():
                self.opened.emit(news)
                self.note_current()
            case StoreTold(title=title, sentence=sentence):
                self.told.emit(title, sentence)
            case StoreWorks():
                self.works.emit()
