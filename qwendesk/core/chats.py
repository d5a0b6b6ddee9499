"""The entries of the chat list, and the data stored with a chat besides its messages."""

import msgspec

from qwendesk.core.clips import ClipChoice
from qwendesk.core.messages import Message


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one chat; "" or an empty mapping uses the app's."""

    system_prompt: str = ""
    preset: str = ""
    """Sampling style; see core/presets.py."""
    preset_name: str = ""
    """Name of the user's own preset if one was chosen; its style is "custom"."""
    preset_values: dict[str, str] = {}
    """The values of that preset when it was chosen, as for `--set`; later changes to it do not affect the chat."""
    thinking: bool | None = None
    overrides: dict[str, str] = {}
    """GenerationOptions that the user set, as for `--set`; they override the preset."""
    model: str = ""
    """Path of the model file that gave the last answer."""
    json_schema: str = ""
    """JSON schema that answers must follow, as text."""
    left_out_turns: int = 0
    """Number of the oldest turns that are not sent."""
    leave_out_old_pictures: bool = False
    """Send only the pictures of the last question."""
    leave_out_old_documents: bool = False
    """Send only the documents of the last question."""
    branched_from: str = ""
    """Id of the chat that this one is a branch of."""
    branched_at: str = ""
    """Id of the last message of that chat that was copied; "" if unknown, as in older branches."""
    is_imported: bool = False
    """The chat came from a file, so others may have written its questions and answers."""
    has_read_descriptions: bool = False
    """The model has read what others wrote about their tools, of which no message tells once the tools are off."""
    has_foreign_text: bool = False
    """The system prompt came with a pasted command or a Modelfile, or a preset from a file closes the thinking."""
    is_damaged: bool = False
    """Damage of the chats file lost settings or messages, so nothing is known of what the model has read."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the model may call."""
    tool_folders: tuple[str, ...] = ()
    """Paths of the folders in which tools may read."""
    leave_out_reasoning: bool = msgspec.field(default=False, name="leave_out_thoughts")
    """Do not send earlier reasoning, even if the generation options would."""

    @property
    def is_tainted(self) -> bool:
        """Whether the chat may hold text that its user did not type, whatever its messages are."""
        return self.is_imported or self.has_read_descriptions or self.has_foreign_text or self.is_damaged


class ChatSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the chat list."""

    id: str
    """32 hex digits of a random UUID."""
    title: str = ""
    """From the user or the first question; "" while the chat is empty."""
    folder_id: str = ""
    pinned: bool = False
    archived: bool = False
    created_s: float = 0.0
    changed_s: float = 0.0
    """Time of the last message, by which the list is sorted. Seconds since 1970, UTC."""
    settings: ChatSettings = ChatSettings()


class Folder(msgspec.Struct, frozen=True):
    id: str
    name: str


# Value of `ReadPosition.section` if the offset is measured from the top of the whole message.
OF_MESSAGE = -1


class ReadPosition(msgspec.Struct, frozen=True):
    """The scroll position in a chat."""

    node_id: str = ""
    """The message at the top of the view; "" if the view follows the end of the chat."""
    section: int = 0
    """Index of the answer's section at the top, or OF_MESSAGE."""
    offset: float = 0.0
    """Logical pixels from the top of that section to the top of the view."""


class DraftFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file attached to an unsent message."""

    path: str
    longest_side: int = 0
    """For an image; see ImagePart."""
    pages: str = ""
    """Pages of a PDF attached as text: "1-3, 7"."""
    encoding: str = ""
    """Encoding that the user chose for a text, by Python's name."""
    text: str = ""
    """A pasted text; `path` is only its name then."""
    clip: ClipChoice | None = None
    """For a clip with choices."""


class SavedDraft(msgspec.Struct, frozen=True):
    """The unsent message of a chat."""

    text: str = ""
    files: tuple[str | DraftFile, ...] = ()
    """The attachments in order; one without further choices is stored as its path alone."""


def edits_key(chat_id: str) -> str:
    """Return the key under which the drafts of a chat's edited messages are stored."""
    return f"edits:{chat_id}"


MOST_TITLE_CHARACTERS = 80


def title_of_question(message: Message) -> str:
    """Return a title for a chat from its first question, or from the name of its first document or clip."""
    clips = (image.frame.clip for image in message.images if image.frame is not None)
    names = (*(document.name for document in message.documents), *clips)
    return title_of(message.text) or next(iter(names), "")[:MOST_TITLE_CHARACTERS]


def title_of(text: str) -> str:
    """Return the first line of `text` that contains words, without Markdown, cut at a word."""
    lines = (" ".join(line.strip(" \t#>*_`~|-=").split()) for line in text.splitlines())
    line = next((line for line in lines if any(character.isalnum() for character in line)), "")
    if len(line) <= MOST_TITLE_CHARACTERS:
        return line
    head = line[:MOST_TITLE_CHARACTERS]
    at_word = head.rsplit(" ", 1)[0] if " " in head[MOST_TITLE_CHARACTERS // 2 :] else head
    return at_word.rstrip(" ,;:.-") + "…"


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a search."""

    chat_id: str
    node_id: str = ""
    """The message that matches; "" if the chat's title matches."""
    title: str
    """Title of the chat."""
    snippet: tuple[tuple[str, bool], ...] = ()
    """Pieces of the text around the match, each with whether it matches."""
    is_answer: bool = False
    in_reasoning: bool = False
    in_document: bool = False
    """The match is in the text of an attached document."""
    created_s: float = 0.0
