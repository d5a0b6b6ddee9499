"""Full-text search over titles, messages, their documents and, if asked, the thoughts behind answers. Blocking.

Every word of the query must be there, as the beginning of a word; words in double quotes must stand together. All of
them are in the message, or all in its documents. Chinese,
Japanese and Korean are written without spaces, so the index knows only whole runs of them: a query with such a
character reads through the texts instead, which takes longer the more there are.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from qwendesk.core.chats import SearchHit
from qwendesk.store.database import Database

_Row = tuple[Any, ...]

MOST_HITS = 100
_MOST_TITLES = 25
_MOST_DOCUMENTS = 25
_LOOKED_AT = 20_000
"""So many characters of a document are looked through for a snippet without regard to accents."""
_BEGIN, _END, _MORE = "\x02", "\x03", "…"
_SNIPPET_TOKENS = 14
_AROUND = 40
"""Characters of context on each side where the snippet is cut by us."""
_MOST_WORDS = 12
_PHRASES = re.compile(r'"([^"]+)"|(\S+)')
_NO_SPACES = re.compile(
    r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)

_ROW = "chats.id, messages.id, chats.title, messages.role, messages.created_s, messages.seq"
_TITLES = """SELECT chats.id, '', chats.title, '', changed_s, 0 FROM chats_fts
    CROSS JOIN chats ON chats.seq = chats_fts.rowid AND chats.deleted_s IS NULL
    WHERE chats_fts MATCH ? ORDER BY chats_fts.rowid DESC LIMIT ?"""
_OF = """CROSS JOIN messages ON messages.seq = {0}.rowid
    CROSS JOIN chats ON chats.id = messages.chat_id AND chats.deleted_s IS NULL
    WHERE {0} MATCH ? ORDER BY {0}.rowid DESC LIMIT ?"""
_MESSAGES = f"""SELECT {_ROW},
    snippet(messages_fts, 0, char(2), char(3), '{_MORE}', {_SNIPPET_TOKENS}),
    snippet(messages_fts, 1, char(2), char(3), '{_MORE}', {_SNIPPET_TOKENS})
    FROM messages_fts {_OF.format("messages_fts")}"""
_DOCUMENTS = f"SELECT {_ROW}, messages.documents FROM documents_fts {_OF.format('documents_fts')}"
_TITLES_BY_READING = """SELECT id, '', title, '', changed_s, 0 FROM chats
    WHERE deleted_s IS NULL AND {where} ORDER BY seq DESC LIMIT ?"""
_BY_READING = f"""SELECT {_ROW}, {{columns}}
    FROM messages CROSS JOIN chats ON chats.id = messages.chat_id AND chats.deleted_s IS NULL
    WHERE {{where}} ORDER BY messages.seq DESC LIMIT ?"""


class ChatSearch:
    """Finds chats and messages by their words."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query: str, *, reasoning: bool = False, most: int = MOST_HITS) -> tuple[SearchHit, ...]:
        """Chats by title first, then messages, each from new to old; nothing for a query without a word."""
        words = words_of(query)
        if not words:
            return ()
        by_reading = _NO_SPACES.search(query) is not None

        def work(connection: sqlite3.Connection) -> tuple[SearchHit, ...]:
            find = _by_reading if by_reading else _by_index
            return find(connection, words, most, reasoning=reasoning)

        return self._database.read(work)


def words_of(query: str) -> tuple[tuple[str, bool], ...]:
    """The words and quoted phrases of a query, each with whether more letters may follow."""
    found = []
    for match in _PHRASES.finditer(query.replace("\0", " ")):
        text = (match[1] or match[2]).strip('"')
        if any(character.isalnum() for character in text):
            found.append((text, match[1] is None and len(text) > 1 and text[-1].isalnum()))
    return tuple(found[:_MOST_WORDS])


def _by_index(
    connection: sqlite3.Connection, words: tuple[tuple[str, bool], ...], most: int, *, reasoning: bool
) -> tuple[SearchHit, ...]:
    match = " AND ".join(f'"{text}"{"*" if open_end else ""}' for text, open_end in words)
    titles = connection.execute(_TITLES, (match, min(most, _MOST_TITLES))).fetchall()
    room = most - len(titles)
    columns = "{text reasoning}" if reasoning else "{text}"
    messages = connection.execute(_MESSAGES, (f"{columns} : ({match})", room)).fetchall()
    documents = connection.execute(_DOCUMENTS, (match, min(room, _MOST_DOCUMENTS))).fetchall()
    found = ((*row[:6], "", "", _cut(row[6], words[0][0])) for row in documents)
    return _hits(titles, (*messages, *found), room)


def _hits(titles: Iterable[_Row], messages: Iterable[_Row], most: int) -> tuple[SearchHit, ...]:
    """Titles first, then messages from new to old, each once: with its own words before those of a document."""
    by_place: dict[int, _Row] = {}
    for row in messages:
        by_place.setdefault(row[5], row)
    newest = sorted(by_place.values(), key=itemgetter(5), reverse=True)[:most]
    return tuple(_hit(row) for row in (*titles, *newest))


def _hit(row: _Row) -> SearchHit:
    """Of chat, message, title, role, time and place, then the snippets of its text, thought and documents."""
    chat_id, node_id, title, role, created_s, _seq, *snippets = row
    text, thought, document = (*snippets, "", "", "")[:3]
    in_document = _BEGIN not in text + thought and bool(document)
    in_reasoning = not in_document and _BEGIN not in text and _BEGIN in thought
    return SearchHit(
        chat_id=chat_id,
        node_id=node_id,
        title=title,
        snippet=marked(document if in_document else thought if in_reasoning else text),
        is_answer=role == "assistant",
        in_reasoning=in_reasoning,
        in_document=in_document,
        created_s=created_s,
    )


def marked(text: str) -> tuple[tuple[str, bool], ...]:
    """A snippet of FTS5 as pieces, on one line."""
    parts = re.split(f"(?<={_END})|(?={_BEGIN})", " ".join(text.split()))
    pieces = ((part.strip(_BEGIN + _END), part.startswith(_BEGIN)) for part in parts)
    return tuple(piece for piece in pieces if piece[0])


def _by_reading(
    connection: sqlite3.Connection, words: tuple[tuple[str, bool], ...], most: int, *, reasoning: bool
) -> tuple[SearchHit, ...]:
    likes = [f"%{_escaped(text)}%" for text, _open_end in words]
    one = "({0} LIKE ? ESCAPE '\\')"
    where = " AND ".join(one.format("title") for _ in likes)
    titles = connection.execute(_TITLES_BY_READING.format(where=where), (*likes, min(most, _MOST_TITLES))).fetchall()
    room = most - len(titles)

    def having(fields: Sequence[str], columns: str, limit: int) -> list[_Row]:
        where = " OR ".join("(" + " AND ".join(one.format(field) for _ in likes) + ")" for field in fields)
        statement = _BY_READING.format(columns=columns, where=f"({where})")
        return connection.execute(statement, (*likes * len(fields), limit)).fetchall()

    fields = ("messages.text", "messages.reasoning") if reasoning else ("messages.text",)
    messages = having(fields, "messages.text, messages.reasoning", room)
    documents = having(("messages.documents",), "messages.documents", min(room, _MOST_DOCUMENTS))
    first = words[0][0]
    found = [(*row[:6], _cut(row[6], first), _cut(row[7], first)) for row in messages]
    return _hits(titles, (*found, *((*row[:6], "", "", _cut(row[6], first)) for row in documents)), room)


def _escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)


def _cut(text: str, word: str) -> str:
    """What stands around the first place of `word`, marked as FTS5 does; the beginning when it is not there."""
    at = _place_of(word.lower(), text.lower())
    if at < 0 and len(text) > 2 * _AROUND:
        at = _without_accents(text[:_LOOKED_AT]).find(_without_accents(word))
    if at < 0:
        return text[: 2 * _AROUND]
    begin, end = max(0, at - _AROUND), at + len(word)
    head, tail = _MORE if begin else "", _MORE if end + _AROUND < len(text) else ""
    return f"{head}{text[begin:at]}{_BEGIN}{text[at:end]}{_END}{text[end : end + _AROUND]}{tail}"


def _place_of(word: str, text: str) -> int:
    """Where a word begins with this one, else where it stands inside of one; -1 if it is nowhere."""
    first = at = text.find(word)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(word, at + 1)
    return first if at < 0 else at


def _without_accents(text: str) -> str:
    """As the index sees the text: small letters without their marks, one for each character."""
    return "".join((unicodedata.normalize("NFD", character.lower()) or " ")[0] for character in text)
