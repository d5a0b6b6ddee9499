"""The state of ChatService, and the events of its conversation."""

from typing import Literal

import msgspec

from qwendesk.core.chats import ChatSettings


class ChatState(msgspec.Struct, frozen=True, kw_only=True):
    """The open chat, without its messages: they change too often to be compared as a whole."""

    chat_id: str
    settings: ChatSettings = ChatSettings()
    busy: bool = False
    """True from a question until its answer has ended."""
    can_undo_delete: bool = False
    is_incognito: bool = False
    """Nothing of the chat is written to disk."""


class TurnStarted(msgspec.Struct, frozen=True):
    """The last turn of the conversation is waiting for its answer, or for the rest of it."""

    turn_id: int


class PromptProcessed(msgspec.Struct, frozen=True):
    """The engine has processed `done` of `total` prompt tokens."""

    turn_id: int
    done: int
    total: int


class TextAdded(msgspec.Struct, frozen=True):
    """Text was appended to the answer or to its reasoning; the conversation contains it already."""

    turn_id: int
    kind: Literal["reasoning", "answer"]
    text: str


class CallsChanged(msgspec.Struct, frozen=True):
    """A tool call of the answer is being written, runs or is done; the conversation contains its state already."""

    turn_id: int


class TurnEnded(msgspec.Struct, frozen=True):
    """The answer is final: finished, stopped or failed."""

    turn_id: int


class ConversationReplaced(msgspec.Struct, frozen=True):
    """Another chat is open."""


class TurnsReplaced(msgspec.Struct, frozen=True):
    """All turns after the first `kept` were changed or removed."""

    kept: int


class MessagesDeleted(msgspec.Struct, frozen=True):
    """Messages were deleted. `undo_delete` restores them until the next deletion, or until another chat is opened."""

    messages: int


ChatEvent = (
    TurnStarted
    | PromptProcessed
    | TextAdded
    | CallsChanged
    | TurnEnded
    | ConversationReplaced
    | TurnsReplaced
    | MessagesDeleted
)
