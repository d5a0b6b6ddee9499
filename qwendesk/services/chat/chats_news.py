"""What the list of chats tells who listens to it."""

import msgspec

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.chats import ChatSettings, ReadPosition, SavedDraft


class ListChanged(msgspec.Struct, frozen=True):
    """Some row of the list is another one now, or a folder is."""


class ChatOpened(msgspec.Struct, frozen=True):
    """Another chat is open: an empty one, or one that was kept."""

    chat_id: str
    tree: ChatTree
    settings: ChatSettings
    node_id: str = ""
    """The message to jump to, if one was asked for."""
    position: ReadPosition = ReadPosition()
    draft: SavedDraft = SavedDraft()


class StoreTold(msgspec.Struct, frozen=True):
    """Something about the file of the chats that a person should know."""

    title: str
    sentence: str


class StoreWorks(msgspec.Struct, frozen=True):
    """What was told about saving is over."""


ChatsNews = ListChanged | ChatOpened | StoreTold | StoreWorks
