"""Converts between database rows and values, and says what the app writes in each column.

Columns with JSON begin with a checksum of the rest. Without one, a changed byte could rename a key, which would then be
ignored, and with it the tool calls by which a chat is known to be tainted (docs/adr/018-consent.md).
"""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, get_args
from zlib import crc32

import msgspec

from qwendesk.core.chats import ChatSettings, ChatSummary, DraftFile
from qwendesk.core.conversation import ChatNode
from qwendesk.core.json_decoding import json_bytes, whole_characters
from qwendesk.core.messages import DocumentPart, Message, Part, Role, TextPart, ToolCall, ToolStep
from qwendesk.core.stats import AnswerStats

# A value in a column.
Value = int | float | str | bytes | None

StructT = TypeVar("StructT", bound=msgspec.Struct)

_DRAFT_FILES = msgspec.json.Decoder(tuple[str | DraftFile, ...])
_NO_STATS = AnswerStats()
_NO_SETTINGS = ChatSettings()
_UNREADABLE = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)
_SEAL = re.compile(r'\{"crc32":"([0-9a-f]{8})",')


class _More(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the column `more`: parts of a message beyond plain text, and its tool calls."""

    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    steps: tuple[ToolStep, ...] = ()
    is_damaged: bool = False


class _JsonColumn(Generic[StructT]):
    """A column with one value as JSON; "" stands for its default.

    Rows of older versions have no checksum. In these a key that isn't known counts as damage, if `knows_all_keys`.
    """

    def __init__(self, kind: type[StructT], *, knows_all_keys: bool) -> None:
        self._decoder = msgspec.json.Decoder(kind, strict=knows_all_keys)
        names = {field.encode_name for field in msgspec.structs.fields(kind)}
        self._known_keys = names if knows_all_keys else None
        self._keys = msgspec.json.Decoder(dict[str, msgspec.Raw])

    def encode(self, value: StructT) -> str:
        content = msgspec.json.encode(value)[1:]
        return f'{{"crc32":"{crc32(content):08x}",{content.decode()}'

    def is_sound(self, text: str) -> bool:
        """Return whether the app wrote exactly this text, as far as that can be told."""
        seal = _SEAL.match(text)
        if seal is not None:
            return crc32(text[seal.end() :].encode("utf-8", "replace")) == int(seal[1], 16)
        try:
            return not text or self._has_known_keys(text)
        except _UNREADABLE:
            return False

    def decode(self, text: str) -> StructT | None:
        """Return the value; None if it is damaged, or if only a newer version understands it."""
        try:
            return self._decoder.decode(text or "{}") if self.is_sound(text) else None
        except _UNREADABLE:
            return None

    def _has_known_keys(self, text: str) -> bool:
        self._decoder.decode(text)
        return self._known_keys is None or self._keys.decode(text).keys() <= self._known_keys


_MORE = _JsonColumn(_More, knows_all_keys=True)
_STATS = _JsonColumn(AnswerStats, knows_all_keys=False)
_SETTINGS = _JsonColumn(ChatSettings, knows_all_keys=True)

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
    return json_bytes(value).decode()


def storable(text: str) -> str:
    """Return the text with what UTF-8 can't encode, half characters, replaced by U+FFFD."""
    return whole_characters(text)


def values(chat_id: str, node: ChatNode, option_id: int | None, *, indexed: bool) -> tuple[object, ...]:
    """Return the parameters of SAVE_NODE."""
    message = node.message
    plain = not message.steps and message.parts == ((TextPart(message.text),) if message.text else ())
    parts = tuple(_storable_part(part) for part in message.parts)
    more = _More(() if plain else parts, message.tool_calls, message.steps, message.is_damaged)
    return (
        node.id,
        chat_id,
        node.parent_id or None,
        message.role,
        storable(_searched(message)),
        storable(message.reasoning),
        "" if more == _More() else _MORE.encode(more),
        node.created_s,
        node.stop_reason,
        "" if node.stats == _NO_STATS else _STATS.encode(node.stats),
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


def is_sound(row: Sequence[Any]) -> bool:
    """Return whether role and JSON of a row of SELECT_NODES are undamaged."""
    return is_role(row[2]) and _MORE.is_sound(row[5]) and _STATS.is_sound(row[8])


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
    more = _MORE.decode(more_json) or _More(is_damaged=True)
    parts = more.parts or ((TextPart(text),) if text and not more.steps else ())
    return ChatNode(
        id=id_,
        parent_id=parent_id,
        message=Message(
            role, parts, reasoning, more.tool_calls, more.steps, is_damaged=more.is_damaged or not is_role(role)
        ),
        created_s=created_s,
        stop_reason=stop_reason,
        stats=_STATS.decode(stats) or _NO_STATS,
        thought_s=thought_s,
        error=error,
        model=model,
        options_json=options,
    )


def is_role(text: str) -> bool:
    return text in get_args(Role)


def settings(text: str) -> ChatSettings:
    """Return the decoded settings. Damaged ones are the defaults, of a chat that counts as tainted."""
    return _NO_SETTINGS if text == "{}" else _SETTINGS.decode(text) or ChatSettings(is_damaged=True)


def draft_files(text: str) -> tuple[str | DraftFile, ...]:
    """Return the files of a draft; none if the list is damaged."""
    return _DRAFT_FILES.decode(text) if text and _is_draft_files(text) else ()


def settings_text(value: ChatSettings) -> str:
    """Return the settings as the text that `settings` reads."""
    return "{}" if value == _NO_SETTINGS else _SETTINGS.encode(value)


def _is_draft_files(text: str) -> bool:
    try:
        return not text or _DRAFT_FILES.decode(text) is not None
    except _UNREADABLE:
        return False


# Returns for the content of each column with JSON whether it is undamaged.
JSON_COLUMNS: Final[Mapping[tuple[str, str], Callable[[str], bool]]] = MappingProxyType(
    {
        ("chats", "settings"): _SETTINGS.is_sound,
        ("messages", "more"): _MORE.is_sound,
        ("messages", "stats"): _STATS.is_sound,
        ("drafts", "pictures"): _is_draft_files,
    }
)


def doubted(table: str, text: str) -> str:
    """Return the content of a chat's `settings` or of a message's `more` with a note that it may not be complete."""
    if table == "chats":
        return _SETTINGS.encode(msgspec.structs.replace(settings(text), is_damaged=True))
    return _MORE.encode(msgspec.structs.replace(_MORE.decode(text) or _More(), is_damaged=True))


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


# Each table with rowids, and its key column. A row refers only to rows of the same table or of tables above.
KEYS: Final = MappingProxyType(
    {
        "folders": "id",
        "chats": "id",
        "options": "json",
        "messages": "id",
        "attachments": "sha256",
        "drafts": "chat_id",
        "remembered": "key",
    }
)


# Returns for texts of some columns, by table and column, whether the app could have written them.
TEXT_CHECKS: Final = MappingProxyType({**JSON_COLUMNS, ("messages", "role"): is_role})


class DatabaseColumn(msgspec.Struct, frozen=True):
    name: str
    kind: str
    is_nullable: bool
    is_rowid: bool
    check: Callable[[str], bool] | None = None
    """One of TEXT_CHECKS."""

    def fits(self, value: Value) -> bool:
        """Return whether the app could have written this value."""
        if value is None:
            return self.is_nullable or self.is_rowid
        if self.kind == "TEXT":
            return isinstance(value, str) and (self.check is None or self.check(value))
        if self.kind == "INTEGER":
            return isinstance(value, int) and not self.is_rowid
        return isinstance(value, int | float) and isfinite(value)

    @property
    def default(self) -> Value:
        return None if self.is_nullable else "" if self.kind == "TEXT" else 0


def columns_of(connection: sqlite3.Connection, table: str) -> tuple[DatabaseColumn, ...]:
    """Return the columns of a table in the order in which its records store them."""
    return tuple(
        DatabaseColumn(
            name, kind, not required and not in_key, bool(in_key) and kind == "INTEGER", TEXT_CHECKS.get((table, name))
        )
        for _, name, kind, required, _default, in_key in connection.execute(f"PRAGMA table_info({table})")
    )
