"""What the list of chats knows of each, and what a chat keeps beside its messages."""

import msgspec


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one chat has of its own; "" or an empty mapping follows the app."""

    system_prompt: str = ""
    preset: str = ""
    """Style of sampling; see core/presets.py."""
    thinking: bool | None = None
    overrides: dict[str, str] = {}
    """GenerationOptions set by hand, as `--set` takes them."""
    model: str = ""
    """Path of the model file this chat was last answered by."""
    json_schema: str = ""
    """JSON text; answers follow it by grammar."""


class ChatSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the list of chats."""

    id: str
    """32 hex digits of a random UUID."""
    title: str = ""
    """Of the person, or from the first question; "" while the chat is empty."""
    folder_id: str = ""
    pinned: bool = False
    archived: bool = False
    created_s: float = 0.0
    changed_s: float = 0.0
    """Of the last message; what the list is sorted by. Seconds since 1970, UTC."""
    settings: ChatSettings = ChatSettings()


class Folder(msgspec.Struct, frozen=True):
    id: str
    name: str
