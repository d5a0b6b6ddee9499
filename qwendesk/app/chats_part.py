"""Joins the list of chats to the chat page: which chat is open, its draft, where the reader was, what is kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject

from qwendesk.app.edits_part import EditsPart
from qwendesk.app.exchange_part import ExchangePart
from qwendesk.core.chats import ReadPosition, SavedDraft
from qwendesk.core.conversation import Turn
from qwendesk.core.paths import data_folder
from qwendesk.services.chat.chats import ChatOpened, ChatsService
from qwendesk.services.chat.drafts import NEW_CHAT, Drafts
from qwendesk.services.chat.keeping import StoreKeeper
from qwendesk.services.chat.service import ChatNews, ChatService, ConversationReplaced, SettingsChanged
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.chats import ChatsBridge
from qwendesk.ui.chat.reading import go_to, go_to_hit, place_of_reader
from qwendesk.ui.chats.sidebar import Sidebar
from qwendesk.ui.frame.actions import install
from qwendesk.ui.frame.done_alert import DoneAlert
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.frame.model_offer import ModelOffer
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class ChatList:
    """The list and the chat service, each following the other. Made before any bridge listens to the chat service."""

    def __init__(self, chat: ChatService, keeper: StoreKeeper) -> None:
        self.chat = chat
        self.keeper = keeper
        self.service = ChatsService(keeper, Drafts(), chat.chat_id)
        self.before_replaced: Callable[[], None] = lambda: None
        """Called while the page still shows the chat before."""
        self._unsubscribe = chat.subscribe(self._on_chat)

    def close(self) -> None:
        self._unsubscribe()

    def _on_chat(self, news: ChatNews) -> None:
        if isinstance(news, ConversationReplaced):
            self.before_replaced()
            self.service.follow(self.chat.chat_id)
        if isinstance(news, ConversationReplaced | SettingsChanged):
            self.service.note_settings(self.chat.settings)


class ChatsPart(QObject):
    """The sidebar and all that happens when another chat is opened."""

    def __init__(self, theme: ThemeKeeper, tasks: Tasks, chats: ChatList, chat: ChatBridge, window: MainWindow) -> None:
        super().__init__()
        self._chats, self._chat, self._tasks, self._window = chats, chat, tasks, window
        self._page = window.chat_page
        self.offer = ModelOffer(theme, window)
        self._is_switching = False
        self._starting: asyncio.Task[None] | None = None
        self._shown_id = chats.chat.chat_id
        self._shown_turns: tuple[Turn, ...] = ()
        self.service = chats.service
        self.bridge = ChatsBridge(chats.service, tasks)
        self.sidebar = Sidebar(theme, self.bridge, tasks)
        self._edits = EditsPart(self._page.thread_view.intents, chats.service, chats.chat, tasks)
        self.exchange = ExchangePart(self.sidebar, window.report, chats.service, tasks)
        self.done_alert = DoneAlert(chat, window)
        room = window.chat_room
        room.set_sidebar(self.sidebar)
        install(
            window,
            {
                "sidebar": self._toggle_sidebar,
                "search_chats": self._search,
                "new_incognito": self._new_incognito,
                "archive": self._show_archive,
                "import_chats": self.exchange.ask_import,
                "export_chats": lambda: self.exchange.ask_export("markdown", ()),
            },
        )
        window.top_bar.sidebar_asked.connect(self._toggle_sidebar)
        self.sidebar.chat_chosen.connect(room.fold)
        self.sidebar.chat_chosen.connect(self._page.composer.setFocus)
        self.sidebar.search.textChanged.connect(lambda _text: self._page.thread_view.find_bar.forget_hit())
        chats.before_replaced = self._before_replaced
        self.bridge.opened.connect(self._on_opened)
        self.bridge.told.connect(window.report)
        self.bridge.works.connect(lambda: self.sidebar.note(tr("Chats are saved again.")))
        chat.replaced.connect(self._on_replaced)
        chat.turn_ended.connect(self._note_turns)
        composer = self._page.composer
        composer.text.textChanged.connect(self._on_draft)
        composer.attachments.changed.connect(self._on_draft)

    def start(self, folder: Path | None = None) -> None:
        """Open the file of the chats, and the chat that was open last."""
        self._starting = self._tasks.start(self.service.start(folder or data_folder()))

    async def opened(self) -> None:
        """Ends when the last chat is open, or could not be; at once when nothing was started."""
        if self._starting is not None:
            await asyncio.wait([self._starting])

    async def close(self) -> None:
        """Ends when everything is on the disk."""
        self._save_position()
        self.bridge.close()
        self._chats.close()
        await self.service.close()

    def _toggle_sidebar(self) -> None:
        self._window.show_page("chat")
        self._window.chat_room.toggle_sidebar()

    def _search(self) -> None:
        self._window.show_page("chat")
        self._window.chat_room.show_sidebar()
        self.sidebar.focus_search()

    def _new_incognito(self) -> None:
        self._window.show_page("chat")
        self.bridge.new_incognito()
        self._page.composer.setFocus()

    def _show_archive(self) -> None:
        self._search()
        self.sidebar.show_archive(on=True)

    def _before_replaced(self) -> None:
        """From here until the page shows the other chat, what changes in the composer is nobody's draft."""
        self._is_switching = True
        self._save_position()
        self._edits.forget()

    def _note_turns(self) -> None:
        """What the page shows: when that changes, the chat service has already gone on."""
        self._shown_id, self._shown_turns = self._chats.chat.chat_id, self._chat.conversation.turns

    def _on_replaced(self) -> None:
        self._is_switching = False
        self._note_turns()
        self._window.top_bar.show_incognito(on=self.bridge.is_incognito)
        if not self._chat.conversation.turns:
            self.offer.withdraw()
        self._edits.bring()
        self.bridge.note_current()
        if self._chat.conversation.turns or self.bridge.is_incognito:
            return
        self._tasks.start(self._bring_draft_of_new(self.service.current_id))

    async def _bring_draft_of_new(self, chat_id: str) -> None:
        """What was begun in an empty chat before another one was opened."""
        draft = await self.service.drafts.get(NEW_CHAT)
        composer = self._page.composer
        is_empty = not composer.text.toPlainText() and not composer.attachments.paths
        if self.service.current_id == chat_id and is_empty and not self._chat.conversation.turns:
            self._put_draft(draft)

    def _on_opened(self, opened: ChatOpened) -> None:
        if opened.chat_id != self._chats.chat.chat_id:
            if opened.tree.nodes:
                self._chats.chat.open(opened.chat_id, opened.tree, opened.settings)
            else:
                self._chats.chat.new_chat(opened.chat_id)
        elif not opened.tree.nodes:
            self._chats.chat.begin_with(opened.settings)
        elif opened.node_id and not self._shows(opened.node_id):
            self._chats.chat.open(opened.chat_id, opened.tree, opened.settings)
        if opened.draft != SavedDraft() and not self._page.composer.text.toPlainText():
            self._put_draft(opened.draft)
        position = ReadPosition(opened.node_id) if opened.node_id else opened.position
        go_to(self._page.thread_view, self._chat.conversation.turns, position)
        hit = self.bridge.hit
        if hit is not None and hit.node_id and hit.node_id == opened.node_id:
            go_to_hit(self._page.thread_view.find_bar, self._chat.conversation.turns, hit)
        self._tasks.start(self._offer_model(opened.chat_id, opened.settings.model if opened.tree.nodes else ""))

    def _shows(self, node_id: str) -> bool:
        """Whether this message is one of those on the page: then nothing is opened again, and an answer goes on."""
        return any(node_id in (turn.question_id, turn.answer_id) for turn in self._chat.conversation.turns)

    async def _offer_model(self, chat_id: str, model: str) -> None:
        """The model a chat was answered by, if it is another one and still there."""
        self.offer.withdraw()
        there = bool(model) and await asyncio.to_thread(Path(model).is_file)
        if there and self._chats.chat.chat_id == chat_id:
            self.offer.offer(model)

    def _save_position(self) -> None:
        """Of the chat that the page shows."""
        place = place_of_reader(self._page.thread_view, self._shown_turns)
        self.bridge.save_read_position(self._shown_id, place)

    def leave_no_trace(self) -> None:
        """For a tour of the app: what is asked now is nobody's chat."""
        self.bridge.new_incognito()

    def _put_draft(self, draft: SavedDraft) -> None:
        composer = self._page.composer
        composer.text.setPlainText(draft.text)
        composer.text.moveCursor(composer.text.textCursor().MoveOperation.End)
        if draft.files:
            self._page.attaching.restore(draft.files)

    def _on_draft(self) -> None:
        if not self._is_switching:
            composer = self._page.composer
            self.bridge.change_draft(composer.text.toPlainText(), composer.attachments.drafts)
