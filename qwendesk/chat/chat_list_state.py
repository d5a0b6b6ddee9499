"""The state of ChatListService, and its events about the open chat and the store."""

from collections.abc import Mapping

import msgspec

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.chats import ChatSettings, ChatSummary, Folder, ReadPosition, SavedDraft


class ChatListState(msgspec.Struct, frozen=True, kw_only=True):
    current_id: str
    """Id of the open chat. The chat is added to `summaries` with its first message."""
    is_incognito: bool = False
    """Nothing of the open chat is written to disk."""
    is_loaded: bool = False
    """The store is open, and `summaries` contains its chats."""
    summaries: Mapping[str, ChatSummary] = {}
    """All chats that have a message, by id, archived ones included."""
    folders: tuple[Folder, ...] = ()
    """Sorted by name."""
    collapsed_folders: frozenset[str] = frozenset()
    """Ids of the folders whose chats are hidden in the list."""


class ChatOpened(msgspec.Struct, frozen=True):
    """Another chat was opened: an empty one, or one from the store."""

    chat_id: str
    tree: ChatTree
    settings: ChatSettings
    node_id: str = ""
    """Id of the message to jump to; "" for none."""
    position: ReadPosition = ReadPosition()
    draft: SavedDraft = SavedDraft()


class StoreProblem(msgspec.Struct, frozen=True):
    """A problem of the chats file that the user should know about."""

    title: str
    sentence: str
    backup: str = ""
    """Name of a backup that can be restored instead; "" if none is offered."""


class StoreWorksAgain(msgspec.Struct, frozen=True):
    """The last StoreProblem about saving is solved."""


ChatListEvent = ChatOpened | StoreProblem | StoreWorksAgain
