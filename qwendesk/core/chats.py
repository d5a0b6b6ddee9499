"""What the list of chats knows of each, and what a chat keeps beside its messages."""

import msgspec

from qwendesk.core.messages import Message


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one chat has of its own; "" or an empty mapping follows the app."""

    system_prompt: str = ""
    preset: str = ""
    """Style of sampling; see core/presets.py."""
    preset_name: str = ""
    """Of the person's own preset that was chosen; its style is "custom"."""
    preset_values: dict[str, str] = {}
    """What that preset said when it was chosen, as `--set` takes it: the chat stays as it is when it is changed."""
    thinking: bool | None = None
    overrides: dict[str, str] = {}
    """GenerationOptions set by hand, as `--set` takes them; they win over the preset."""
    model: str = ""
    """Path of the model file this chat was last answered by."""
    json_schema: str = ""
    """JSON text; answers follow it by grammar."""
    left_out_turns: int = 0
    """So many of the oldest turns are kept here but not sent."""
    leave_out_old_pictures: bool = False
    """Only the last question's pictures are sent."""
    leave_out_old_documents: bool = False
    """Only the last question's documents are sent."""
    leave_out_thoughts: bool = False
    """Earlier thoughts are not sent, even where the options keep them."""


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


OF_MESSAGE = -1
"""In place of a section: the offset is from the top of the whole message."""


class ReadPosition(msgspec.Struct, frozen=True):
    """Where the reader was in a chat."""

    node_id: str = ""
    """The message at the top of the view; "" follows the end."""
    section: int = 0
    """Which of an answer's sections that is, or OF_MESSAGE."""
    offset: float = 0.0
    """Logical pixels from that section's top down to the top of the view."""


class DraftFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file attached to a question that is not sent yet."""

    path: str
    longest_side: int = 0
    """Of a picture; see ImagePart."""
    pages: str = ""
    """Of a PDF taken as text: "1-3, 7"."""


class SavedDraft(msgspec.Struct, frozen=True):
    """What stands in the composer of a chat."""

    text: str = ""
    files: tuple[str | DraftFile, ...] = ()
    """What is attached, in order; a picture or document with nothing chosen for it is only its path."""


def edits_key(chat_id: str) -> str:
    """Where a chat's draft of messages being changed is kept, beside that of its composer."""
    return f"edits:{chat_id}"


MOST_TITLE_CHARACTERS = 80


def title_of_question(message: Message) -> str:
    """A title from a chat's first question; without words, from the first document attached to it."""
    names = (document.name for document in message.documents)
    return title_of(message.text) or next(names, "")[:MOST_TITLE_CHARACTERS]


def title_of(text: str) -> str:
    """A title from a question: its first line with words in it, without marks of Markdown, cut at a word."""
    lines = (" ".join(line.strip(" \t#>*_`~|-=").split()) for line in text.splitlines())
    line = next((line for line in lines if any(character.isalnum() for character in line)), "")
    if len(line) <= MOST_TITLE_CHARACTERS:
        return line
    head = line[:MOST_TITLE_CHARACTERS]
    at_word = head.rsplit(" ", 1)[0] if " " in head[MOST_TITLE_CHARACTERS // 2 :] else head
    return at_word.rstrip(" ,;:.-") + "…"


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a search found its words."""

    chat_id: str
    node_id: str = ""
    """The message to jump to; "" when the chat's title was found."""
    title: str
    """Of the chat."""
    snippet: tuple[tuple[str, bool], ...] = ()
    """Pieces of the text around what was found, each with whether it is what was found."""
    is_answer: bool = False
    in_reasoning: bool = False
    in_document: bool = False
    """In the text of a document that is attached to the question."""
    created_s: float = 0.0
