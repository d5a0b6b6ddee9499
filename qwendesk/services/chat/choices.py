"""What new chats take over from the one before, remembered for a start that begins with an empty chat."""

import asyncio
from concurrent.futures import Future

import msgspec

from qwendesk.core.chats import ChatSettings
from qwendesk.services.chat.chat import settings_for_new
from qwendesk.store.chats import ChatStore

_KEY = "settings_of_new_chats"


class Choices:
    """Remembers them by a key of the store. All methods are called on the event loop's thread."""

    def __init__(self) -> None:
        self._known: ChatSettings | None = None

    def note(self, store: ChatStore, settings: ChatSettings) -> Future[None] | None:
        """The open chat's settings; the writing of them, if a new chat takes over something else now."""
        chosen = settings_for_new(settings)
        if chosen == self._known:
            return None
        self._known = chosen
        return store.remember(_KEY, msgspec.json.encode(chosen).decode())

    async def get(self, store: ChatStore) -> ChatSettings:
        """Raises StoreFailure."""
        text = await asyncio.to_thread(store.remembered, _KEY)
        try:
            return msgspec.json.decode(text, type=ChatSettings) if text else ChatSettings()
        except msgspec.DecodeError:
            return ChatSettings()  # a newer version's; a new chat begins with the defaults
