"""Full-text search in titles, messages, their documents and, if asked, reasoning. Blocks.

A hit contains every word of the query, each at least as the beginning of a word. Words in double quotes must be
adjacent. All words must be in the message itself, or all in its documents.

Chinese, Japanese and Korean are written without spaces, so the index contains only whole runs of their characters. A
query with such a character scans the texts instead, which takes longer the more text there is.
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
# Only this many characters of a text are searched for a snippet while ignoring accents.
_MAX_SEARCHED_CHARS = 20_000
_BEGIN, _END, _MORE = "\x02", "\x03", "…"
_SNIPPET_TOKENS = 14
# Characters of context on each side of the word, in snippets that are not made by FTS5.
_CONTEXT_CHARS = 40
_MOST_WORDS = 12
_PHRASES = re.compile(r'"([^"]+)"|(\S+)')
_NO_SPACES = re.compile(
    r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)

_ROW = "chats.id, messages.id, chats.title, messages.role, messages.created_s, messages.seq"
_TITLES = """SELECT chats.id, '', chats.title, '', changed_s, 0 FROM chats_fts
    CROSS JOIN chats ON chats.seq = chats_fts.rowid AND chats.deleted_s IS NULL
    WHERE chats_fts MATCH ? ORDER BY chats_fts.rowid DESC LIMIT ?"""
_MATCHING = """CROSS JOIN messages ON messages.seq = {0}.rowid
    CROSS JOIN chats ON chats.id = messages.chat_id AND chats.deleted_s IS NULL
    WHERE {0} MATCH ? ORDER BY {0}.rowid DESC LIMIT ?"""
_MESSAGES = f"""SELECT {_ROW},
    snippet(messages_fts, 0, char(2), char(3), '{_MORE}', {_SNIPPET_TOKENS}),
    snippet(messages_fts, 1, char(2), char(3), '{_MORE}', {_SNIPPET_TOKENS})
    FROM messages_fts {_MATCHING.format("messages_fts")}"""
_DOCUMENTS = f"SELECT {_ROW}, messages.documents FROM documents_fts {_MATCHING.format('documents_fts')}"
_TITLES_BY_SCAN = """SELECT id, '', title, '', changed_s, 0 FROM chats
    WHERE deleted_s IS NULL AND {where} ORDER BY seq DESC LIMIT ?"""
_BY_SCAN = f"""SELECT {_ROW}, {{columns}}
    FROM messages CROSS JOIN chats ON chats.id = messages.chat_id AND chats.deleted_s IS NULL
    WHERE {{where}} ORDER BY messages.seq DESC LIMIT ?"""


class ChatSearch:
    """Finds chats and messages by their words."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query: str, *, reasoning: bool = False, most: int = MOST_HITS) -> tuple[SearchHit, ...]:
        """Return hits in titles first, then in messages, each newest first; nothing for a query without words."""
        words = words_of(query)
        if not words:
            return ()
        needs_scan = _NO_SPACES.search(query) is not None

        def work(connection: sqlite3.Connection) -> tuple[SearchHit, ...]:
            find = _find_by_scan if needs_scan else _find_in_index
            return find(connection, words, most, reasoning=reasoning)

        return self._database.read(work)


def words_of(query: str) -> tuple[tuple[str, bool], ...]:
    """Return the words and quoted phrases of a query, each with whether it also matches the beginning of a word."""
    found = []
    for match in _PHRASES.finditer(query.replace("\0", " ")):
        text = (match[1] or match[2]).strip('"')
        if any(character.isalnum() for character in text):
            found.append((text, match[1] is None and len(text) > 1 and text[-1].isalnum()))
    return tuple(found[:_MOST_WORDS])


def _find_in_index(
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
    """Return the hits in titles, then up to `most` hits in messages, newest first and each message once."""
    by_place: dict[int, _Row] = {}
    for row in messages:
        by_place.setdefault(row[5], row)
    newest = sorted(by_place.values(), key=itemgetter(5), reverse=True)[:most]
    return tuple(_hit(row) for row in (*titles, *newest))


def _hit(row: _Row) -> SearchHit:
    """Return the hit for a row of chat, message, title, role, time, position and up to three snippets."""
    chat_id, node_id, title, role, created_s, _seq, *snippets = row
    text, reasoning, document = (*snippets, "", "", "")[:3]
    in_document = _BEGIN not in text + reasoning and bool(document)
    in_reasoning = not in_document and _BEGIN not in text and _BEGIN in reasoning
    return SearchHit(
        chat_id=chat_id,
        node_id=node_id,
        title=title,
        snippet=snippet_pieces(document if in_document else reasoning if in_reasoning else text),
        is_answer=role == "assistant",
        in_reasoning=in_reasoning,
        in_document=in_document,
        created_s=created_s,
    )


def snippet_pieces(text: str) -> tuple[tuple[str, bool], ...]:
    """Return an FTS5 snippet as pieces of text on one line, each with whether it is a match."""
    parts = re.split(f"(?<={_END})|(?={_BEGIN})", " ".join(text.split()))
    pieces = ((part.strip(_BEGIN + _END), part.startswith(_BEGIN)) for part in parts)
    return tuple(piece for piece in pieces if piece[0])


def _find_by_scan(
    connection: sqlite3.Connection, words: tuple[tuple[str, bool], ...], most: int, *, reasoning: bool
) -> tuple[SearchHit, ...]:
    likes = [f"%{_escaped(text)}%" for text, _open_end in words]
    one = "({0} LIKE ? ESCAPE '\\')"
    where = " AND ".join(one.format("title") for _ in likes)
    titles = connection.execute(_TITLES_BY_SCAN.format(where=where), (*likes, min(most, _MOST_TITLES))).fetchall()
    room = most - len(titles)

    def rows_with(fields: Sequence[str], columns: str, limit: int) -> list[_Row]:
        where = " OR ".join("(" + " AND ".join(one.format(field) for _ in likes) + ")" for field in fields)
        statement = _BY_SCAN.format(columns=columns, where=f"({where})")
        return connection.execute(statement, (*likes * len(fields), limit)).fetchall()

    fields = ("messages.text", "messages.reasoning") if reasoning else ("messages.text",)
    messages = rows_with(fields, "messages.text, messages.reasoning", room)
    documents = rows_with(("messages.documents",), "messages.documents", min(room, _MOST_DOCUMENTS))
    first = words[0][0]
    found = [(*row[:6], _cut(row[6], first), _cut(row[7], first)) for row in messages]
    return _hits(titles, (*found, *((*row[:6], "", "", _cut(row[6], first)) for row in documents)), room)


def _escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)


def _cut(text: str, word: str) -> str:
    """Return the text around the first `word`, marked as in FTS5; the beginning of the text if it has no such word."""
    at = _place_of(word.lower(), text.lower())
    if at < 0 and len(text) > 2 * _CONTEXT_CHARS:
        at = _without_accents(text[:_MAX_SEARCHED_CHARS]).find(_without_accents(word))
    if at < 0:
        return text[: 2 * _CONTEXT_CHARS]
    begin, end = max(0, at - _CONTEXT_CHARS), at + len(word)
    head, tail = _MORE if begin else "", _MORE if end + _CONTEXT_CHARS < len(text) else ""
    return f"{head}{text[begin:at]}{_BEGIN}{text[at:end]}{_END}{text[end : end + _CONTEXT_CHARS]}{tail}"


def _place_of(word: str, text: str) -> int:
    """Return the index of `word` at the beginning of a word, else of its first occurrence; -1 if there is none."""
    first = at = text.find(word)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(word, at + 1)
    return first if at < 0 else at


def _without_accents(text: str) -> str:
    """Return the text as the index has it, in lower case and without diacritics. Its length stays the same."""
    return "".join((unicodedata.normalize("NFD", character.lower()) or " ")[0] for character in text)
