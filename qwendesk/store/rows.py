"""Converts between database rows and values."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.chats import ChatSettings, ChatSummary, DraftFile
from qwendesk.core.messages import DocumentPart, Message, Part, TextPart, ToolCall, ToolStep
from qwendesk.core.stats import AnswerStats

StructT = TypeVar("StructT", bound=msgspec.Struct)

_DRAFT_FILES = msgspec.json.Decoder(tuple[str | DraftFile, ...])
_STATS = msgspec.json.Decoder(AnswerStats, strict=False)
_SETTINGS = msgspec.json.Decoder(ChatSettings)
_NO_STATS = AnswerStats()
_NO_SETTINGS = ChatSettings()


class _More(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the column `more`: parts of a message beyond plain text, and its tool calls."""

    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    steps: tuple[ToolStep, ...] = ()


_MORE = msgspec.json.Decoder(_More)

SELECT_NODES = """SELECT messages.id, coalesce(parent_id, ''), role, text, reasoning, more, created_s, stop_reason,
    stats, thought_s, error, model, coalesce(options.json, '')
    FROM messages LEFT JOIN options ON options.id = options_id WHERE chat_id = ? ORDER BY seq"""

SAVE_NODE = """INSERT INTO messages (id, chat_id, parent_id, role, text, reasoning, more, created_s, stop_reason, stats,
    thought_s, error, model, options_id, indexed, documents)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET role = excluded.role, text = excluded.text, reasoning = excluded.reasoning,
    more = excluded.more, created_s = excluded.created_s, stop_reason = excluded.stop_reason, stats = excluded.stats,
    thought_s = excluded.thought_s, error = excluded.error, model = excluded.model, options_id = excluded.options_id,
    indexed = excluded.indexed, documents = excluded.documents"""


def encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def storable(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 can't encode, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def values(chat_id: str, node: ChatNode, option_id: int | None, *, indexed: bool) -> tuple[object, ...]:
    """Return the parameters of SAVE_NODE."""
    message = node.message
    plain = not message.steps and message.parts == ((TextPart(message.text),) if message.text else ())
    parts = tuple(_storable_part(part) for part in message.parts)
    more = _More(() if plain else parts, message.tool_calls, message.steps)
    return (
        node.id,
        chat_id,
        node.parent_id or None,
        message.role,
        storable(_searched(message)),
        storable(message.reasoning),
        "" if more == _More() else encode(more),
        node.created_s,
        node.stop_reason,
        "" if node.stats == _NO_STATS else encode(node.stats),
        node.thought_s,
        node.error,
        node.model,
        option_id,
        indexed,
        "\n\n".join(storable(document.text) for document in message.documents),
    )


def _storable_part(part: Part) -> Part:
    if isinstance(part, TextPart):
        return TextPart(storable(part.text))
    if isinstance(part, DocumentPart):
        return msgspec.structs.replace(part, name=storable(part.name), text=storable(part.text))
    return msgspec.structs.replace(part, file_stamp=None)


def _searched(message: Message) -> str:
    """Return the searchable text: the message and the names of its documents, whose text has its own column.

    Of an answer with steps, also what was written before tools were called, but not what they gave.
    """
    before = (step.text for step in message.steps if step.text)
    return "\n".join((*before, message.text, *(document.name for document in message.documents)))


def node(row: Sequence[Any]) -> ChatNode:
    """Return the message for a row of SELECT_NODES."""
    (
        id_,
        parent_id,
        role,
        text,
        reasoning,
        more_json,
        created_s,
        stop_reason,
        stats,
        thought_s,
        error,
        model,
        options,
    ) = row
    more = _decoded(_MORE, more_json, _More())
    parts = more.parts or ((TextPart(text),) if text and not more.steps else ())
    return ChatNode(
        id=id_,
        parent_id=parent_id,
        message=Message(role, parts, reasoning, more.tool_calls, more.steps),
        created_s=created_s,
        stop_reason=stop_reason,
        stats=_decoded(_STATS, stats, _NO_STATS),
        thought_s=thought_s,
        error=error,
        model=model,
        options_json=options,
    )


def _decoded(decoder: msgspec.json.Decoder[StructT], text: str, default: StructT) -> StructT:
    """Decode JSON; return `default` if it is damaged, so that a damaged byte in statistics doesn't hide the message."""
    try:
        return decoder.decode(text) if text else default
    except msgspec.DecodeError:
        return default


def settings(text: str) -> ChatSettings:
    """Return the decoded settings; the defaults if they are damaged."""
    return _NO_SETTINGS if text == "{}" else _decoded(_SETTINGS, text, _NO_SETTINGS)


def draft_files(text: str) -> tuple[str | DraftFile, ...]:
    """Return the files of a draft; none if the list is damaged."""
    try:
        return _DRAFT_FILES.decode(text)
    except msgspec.DecodeError:
        return ()


def settings_text(value: ChatSettings) -> str:
    """Return the settings as the text that `settings` reads."""
    return "{}" if value == _NO_SETTINGS else encode(value)


class SettingsReader:
    """Decodes the settings of many rows, each distinct text once."""

    def __init__(self) -> None:
        self._known: dict[str, ChatSettings] = {}

    def __call__(self, text: str) -> ChatSettings:
        if text not in self._known:
            self._known[text] = settings(text)
        return self._known[text]


def summary(row: Sequence[Any], read_settings: SettingsReader) -> ChatSummary:
    """Return the summary for a row of id, title, folder, pinned, archived, created, changed and settings."""
    id_, title, folder_id, pinned, archived, created_s, changed_s, settings_json = row
    return ChatSummary(
        id=id_,
        title=title,
        folder_id=folder_id or "",
        pinned=bool(pinned),
        archived=bool(archived),
        created_s=created_s,
        changed_s=changed_s,
        settings=read_settings(settings_json),
    )
