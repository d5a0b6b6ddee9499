"""What the chat service tells who listens."""

from typing import Literal

import msgspec


class TurnStarted(msgspec.Struct, frozen=True):
    """The turn is the conversation's last; its answer, or the rest of it, is on the way."""

    turn_id: int


class PromptRead(msgspec.Struct, frozen=True):
    """`done` of `total` prompt tokens are in the engine's memory."""

    turn_id: int
    done: int
    total: int


class Wrote(msgspec.Struct, frozen=True):
    """A piece of the thought or of the answer; the conversation holds it already."""

    turn_id: int
    kind: Literal["reasoning", "answer"]
    text: str


class TurnEnded(msgspec.Struct, frozen=True):
    """The answer is final: finished, stopped or failed."""

    turn_id: int


class ConversationReplaced(msgspec.Struct, frozen=True):
    """Another conversation is shown now."""


class TurnsReplaced(msgspec.Struct, frozen=True):
    """The first `kept` turns stand as they were; those after them are others now, or gone."""

    kept: int


class Deleted(msgspec.Struct, frozen=True):
    """`messages` were taken out of the chat; `undo_delete` brings them back until the next deletion or chat."""

    messages: int


class SettingsChanged(msgspec.Struct, frozen=True):
    """The chat's system prompt, style, thinking or anything else it has of its own."""


ChatNews = (
    TurnStarted | PromptRead | Wrote | TurnEnded | ConversationReplaced | TurnsReplaced | Deleted | SettingsChanged
)
