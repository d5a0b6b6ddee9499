"""Saves drafts of edited messages, so that another chat or page, or closing the app, doesn't lose them."""

import msgspec
from PySide6.QtCore import QObject

from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.thread.turn_intents import EditDraft, TurnIntents
from qwendesk.core.chats import SavedDraft, edits_key
from qwendesk.widgets.tasks import window_tasks

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
