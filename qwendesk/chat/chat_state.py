"""The state of ChatService, the events of its conversation, and the pictures of incognito chats."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import ImagePart

# Folder of the pictures of an incognito chat. It is never created: their paths are only names.
_FOLDER = Path("(in memory)")


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
    context_tokens: int = 0
    """Tokens in the context with this text; 0 if unknown, as with most servers."""


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


class IncognitoImages:
    """Pictures of an incognito chat: bytes in memory, each stored under a path that serves as its name. Thread-safe."""

    def __init__(self) -> None:
        self._files: dict[Path, bytes] = {}
        self._scaled: dict[tuple[str, int], ImagePart] = {}

    def add(self, data: bytes, name: str) -> ImagePart:
        """Store the content of an image file, and return a part for it whose path ends in `name`."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = _FOLDER / sha256[:16] / name
        self._files[path] = data
        return ImagePart(str(path), sha256)

    def keep(self, image: ImagePart) -> None:
        """Store a part with its bytes under its own path."""
        self._files[Path(image.path)] = image.data

    def get(self, path: Path) -> bytes | None:
        """Return the image stored under this path; None if the path is that of a file."""
        return self._files.get(path)

    def scaled(self, sha256: str, longest_side: int) -> ImagePart | None:
        """Return the stored copy of this size, with its bytes; None if there is none."""
        return self._scaled.get((sha256, longest_side))

    def add_scaled(self, sha256: str, longest_side: int, path: str, data: bytes) -> ImagePart:
        """Store a smaller copy of the image with this hash, and return it as a part with its bytes."""
        copy = ImagePart(path, hashlib.sha256(data).hexdigest(), data=data)
        self._scaled[(sha256, longest_side)] = copy
        return copy

    def clear(self) -> None:
        self._files.clear()
        self._scaled.clear()
