"""Keeps what is typed in messages being changed: through another chat, another page, and the end of the app."""

import msgspec
from PySide6.QtCore import QObject

from qwendesk.core.chats import SavedDraft, edits_key
from qwendesk.services.chat.chats import ChatsService
from qwendesk.services.chat.service import ChatService
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.thread.turn_intents import EditDraft, TurnIntents

_Edits = dict[str, EditDraft]


class EditsPart(QObject):
    """Lives as long as the list of chats. One draft per chat holds all of its open edits."""

    def __init__(self, intents: TurnIntents, chats: ChatsService, chat: ChatService, tasks: Tasks) -> None:
        super().__init__()
        self._intents, self._chats, self._chat, self._tasks = intents, chats, chat, tasks
        intents.edits_changed.connect(self._keep)

    def forget(self) -> None:
        """Another chat is about to be shown."""
        self._intents.edits = {}

    def bring(self) -> None:
        """The chat that is shown now: its edits are open again as they were left."""
        self._tasks.start(self._bring(self._chat.chat_id))

    def _keep(self) -> None:
        if self._chats.is_incognito:
            return
        edits = self._intents.edits
        text = msgspec.json.encode(edits).decode() if edits else ""
        self._chats.drafts.change(edits_key(self._chat.chat_id), SavedDraft(text))

    async def _bring(self, chat_id: str) -> None:
        draft = await self._chats.drafts.get(edits_key(chat_id))
        if draft.text and chat_id == self._chat.chat_id:
            self._intents.restore(_read(draft.text))


def _read(text: str) -> _Edits:
    """What was kept; nothing of what is not ours."""
    try:
        return msgspec.json.decode(text, type=_Edits)
    except msgspec.MsgspecError:
        return {}
