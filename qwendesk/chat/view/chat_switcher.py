"""Shows the chat that the user opened: at its reading position, with its draft and its unsaved edits."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject

from qwendesk.chat.chat_list import ChatListEvent, ChatListService, ChatOpened
from qwendesk.chat.chat_services import ChatServices
from qwendesk.chat.chat_state import ChatEvent, ConversationReplaced, TurnEnded
from qwendesk.chat.drafts import NEW_CHAT
from qwendesk.chat.open_chat import Part
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.chat.view.model_offer import ModelOffer
from qwendesk.chat.view.sidebar.sidebar import Sidebar
from qwendesk.chat.view.thread.rows import ScrollAnchor
from qwendesk.chat.view.thread.turn_intents import EditDraft, TurnIntents
from qwendesk.core.chats import OF_MESSAGE, ReadPosition, SavedDraft, SearchHit, edits_key
from qwendesk.core.conversation import Turn
from qwendesk.core.served_model import is_served
from qwendesk.widgets.bind import follow
from qwendesk.widgets.tasks import window_tasks


class ChatSwitcher(QObject):
    """Shows each chat that is opened, and saves the reading position and the draft of the previous one."""

    def __init__(self, services: ChatServices, page: ChatPage, sidebar: Sidebar, offer: ModelOffer) -> None:
        super().__init__(page)
        self._chat, self._chat_list = services.chat, services.chat_list
        self._page, self._offer, self._tasks = page, offer, window_tasks()
        self._is_switching = False
        self._hit: SearchHit | None = None
        self._shown_id = self._chat.chat_id
        self._shown_turns: tuple[Turn, ...] = ()
        self._edits = EditDrafts(page.thread_view.intents, self._chat_list, self._chat)
        services.before_switch = self._before_switch
        follow(self, self._chat.subscribe, self._on_chat_event)
        follow(self, self._chat_list.subscribe, self._on_list_event)
        page.composer.text.textChanged.connect(self._save_draft)
        page.composer.attachments.changed.connect(self._save_draft)
        sidebar.chat_chosen.connect(page.composer.setFocus)
        sidebar.hit_chosen.connect(self._open_hit)
        sidebar.search.textChanged.connect(lambda _text: page.thread_view.find_bar.forget_hit())

    def save_position(self) -> None:
        """Save the reading position of the chat that is shown."""
        position = read_position(self._page.thread_view.position(), self._shown_turns)
        self._chat_list.save_read_position(self._shown_id, position)

    def _before_switch(self) -> None:
        """Save the reading position, and stop saving drafts until the page shows the other chat."""
        self._is_switching = True
        self.save_position()
        self._edits.discard()

    def _on_chat_event(self, event: ChatEvent) -> None:
        # Record what the page shows, because when another chat opens, the service already has that conversation.
        if isinstance(event, ConversationReplaced | TurnEnded):
            self._shown_id, self._shown_turns = self._chat.chat_id, self._chat.conversation.turns
        if isinstance(event, ConversationReplaced):
            self._on_replaced()

    def _on_replaced(self) -> None:
        self._is_switching = False
        self._edits.restore()
        if self._chat.conversation.turns:
            return
        self._offer.withdraw()
        if not self._chat_list.is_incognito:
            self._tasks.start(self._restore_new_chat_draft(self._chat_list.current_id))

    async def _restore_new_chat_draft(self, chat_id: str) -> None:
        """Restore what was typed in a new chat before another chat was opened."""
        draft = await self._chat_list.drafts.get(NEW_CHAT)
        composer = self._page.composer
        is_empty = not composer.text.toPlainText() and not composer.attachments.paths
        if self._chat_list.current_id == chat_id and is_empty and not self._chat.conversation.turns:
            self._show_draft(draft)

    def _on_list_event(self, event: ChatListEvent) -> None:
        if not isinstance(event, ChatOpened):
            return
        if event.draft != SavedDraft() and not self._page.composer.text.toPlainText():
            self._show_draft(event.draft)
        position = ReadPosition(event.node_id) if event.node_id else event.position
        anchor = scroll_anchor(position, self._chat.conversation.turns)
        if anchor is not None:
            self._page.thread_view.show_position(anchor)
        if self._hit is not None and self._hit.node_id == event.node_id:
            self._show_hit(self._hit)
        self._tasks.start(self._offer_model(event.chat_id, event.settings.model if event.tree.nodes else ""))

    def _open_hit(self, hit: SearchHit) -> None:
        """Open the chat of a search result at its message, and mark the words that were found."""
        self._hit = hit
        self._tasks.start(self._chat_list.open(hit.chat_id, hit.node_id))

    def _show_hit(self, hit: SearchHit) -> None:
        """Scroll to the words that were found and mark them."""
        turn = turn_with(hit.node_id, self._chat.conversation.turns)
        if turn is None:
            return
        words = next((text for text, is_found in hit.snippet if is_found), "")
        part: Part = "question" if hit.node_id == turn.question_id else "answer"
        self._page.thread_view.find_bar.show_hit(turn.id, part, words, in_thought=hit.in_reasoning)

    async def _offer_model(self, chat_id: str, model: str) -> None:
        """Offer the model that answered the chat, if its file still exists or it is on a server."""
        self._offer.withdraw()
        exists = is_served(model) or (bool(model) and await asyncio.to_thread(Path(model).is_file))
        if exists and self._chat.chat_id == chat_id:
            self._offer.offer(model)

    def _show_draft(self, draft: SavedDraft) -> None:
        text = self._page.composer.text
        text.setPlainText(draft.text)
        text.moveCursor(text.textCursor().MoveOperation.End)
        if draft.files:
            self._page.attachments.restore(draft.files)

    def _save_draft(self) -> None:
        if not self._is_switching:
            composer = self._page.composer
            draft = SavedDraft(composer.text.toPlainText(), tuple(composer.attachments.drafts))
            self._chat_list.change_draft(draft)


def read_position(anchor: ScrollAnchor, turns: Sequence[Turn]) -> ReadPosition:
    """Return the position to store for `anchor`; the empty position if the thread is scrolled to its end."""
    turn = next((each for each in turns if each.id == anchor.turn), None)
    if turn is None or anchor.at_end:
        return ReadPosition()
    node_id = turn.question_id if anchor.part == "question" else turn.answer_id
    return ReadPosition(node_id, anchor.section if anchor.in_text else OF_MESSAGE, anchor.offset)


def scroll_anchor(position: ReadPosition, turns: Sequence[Turn]) -> ScrollAnchor | None:
    """Return the scroll anchor for `position`; None if its message is not among the turns."""
    turn = turn_with(position.node_id, turns)
    if turn is None:
        return None
    is_question = position.node_id == turn.question_id
    return ScrollAnchor(
        turn=turn.id,
        part="question" if is_question else "answer",
        section=max(0, position.section),
        offset=int(position.offset),
        in_text=position.section != OF_MESSAGE and not is_question,
        at_end=False,
    )


def turn_with(node_id: str, turns: Sequence[Turn]) -> Turn | None:
    """Return the turn whose question or answer has this id; None if there is none."""
    if not node_id:
        return None
    return next((turn for turn in turns if node_id in (turn.question_id, turn.answer_id)), None)


_Edits = dict[str, EditDraft]


class EditDrafts(QObject):
    """Saves and restores the open edits of a chat, all in one draft per chat."""

    def __init__(self, intents: TurnIntents, chats: ChatListService, chat: ChatService) -> None:
        super().__init__()
        self._intents, self._chats, self._chat, self._tasks = intents, chats, chat, window_tasks()
        intents.edits_changed.connect(self._save)

    def discard(self) -> None:
        """Close all edits without deleting their saved drafts, because another chat is about to be shown."""
        self._intents.edits = {}

    def restore(self) -> None:
        """Reopen the saved edits of the chat that is shown."""
        self._tasks.start(self._restore(self._chat.chat_id))

    def _save(self) -> None:
        if self._chats.is_incognito:
            return
        edits = self._intents.edits
        text = msgspec.json.encode(edits).decode() if edits else ""
        self._chats.drafts.change(edits_key(self._chat.chat_id), SavedDraft(text))

    async def _restore(self, chat_id: str) -> None:
        draft = await self._chats.drafts.get(edits_key(chat_id))
        if draft.text and chat_id == self._chat.chat_id:
            self._intents.restore(_decode(draft.text))


def _decode(text: str) -> _Edits:
    """Return the saved edits; none if the text is not in this format."""
    try:
        return msgspec.json.decode(text, type=_Edits)
    except msgspec.MsgspecError:
        return {}
