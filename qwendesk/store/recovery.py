"""What is done with a file of chats that is damaged: it is set aside, and what can be read of it is carried over.

The damaged file is never written: it is moved to a folder of its own, with what SQLite keeps beside it, and stays
there until the person removes it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from qwendesk.core.chats import title_of
from qwendesk.core.files import replace
from qwendesk.store import rows
from qwendesk.store.database import Database, connect
from qwendesk.store.migrations.m002_documents import FILL

_TABLES = (
    "folders",
    "chats",
    "options",
    "messages",
    "shown",
    "attachments",
    "message_attachments",
    "drafts",
    "remembered",
)
_MOST_SINGLE = 20_000
"""How many rows between two damaged places are asked for one by one."""


class Recovered(msgspec.Struct, frozen=True):
    """What came over from a damaged file, and where that file is now."""

    chats: int
    messages: int
    folder: Path


def set_aside(path: Path, now: datetime | None = None) -> Path:
    """Moves the database with its companions into a new folder beside it. Returns the folder; raises OSError."""
    stamp = f"{now or datetime.now(UTC):%Y%m%d-%H%M%S}"
    folder = path.with_name(f"damaged-{stamp}")
    count = 1
    while folder.exists():
        count += 1
        folder = path.with_name(f"damaged-{stamp}-{count}")
    folder.mkdir(parents=True)
    for ending in ("", "-wal", "-shm"):
        companion = path.with_name(path.name + ending)
        if companion.exists():
            replace(companion, folder / companion.name)
    return folder


def carry_over(damaged: Path, database: Database) -> Recovered:
    """Copies every row that can still be read into a new, empty database. Never fails on what is damaged."""

    def work(target: sqlite3.Connection) -> tuple[int, int]:
        target.execute("PRAGMA defer_foreign_keys = ON")
        with suppress(sqlite3.Error), closing(_reading(damaged)) as source:
            for table in _TABLES:
                _copy(source, target, table)
        _mend(target)
        return (_count(target, "chats"), _count(target, "messages"))

    chats, messages = database.write(work).result()
    return Recovered(chats, messages, damaged.parent)


def _reading(damaged: Path) -> sqlite3.Connection:
    source = connect(damaged)
    source.execute("PRAGMA query_only = ON")
    # Otherwise SQLite reads nothing at all of a file that is shorter than its header says.
    source.execute("PRAGMA writable_schema = ON")
    source.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return source


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> None:
    known = [row[1] for row in target.execute(f"PRAGMA table_info({table})")]
    try:
        there = {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    except sqlite3.Error:
        return
    columns = [name for name in known if name in there]
    if not columns:
        return
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    for row in _readable(source, table, names):
        # A row that breaks a rule of its table (NOT NULL, a damaged key) is worth nothing.
        with suppress(sqlite3.Error):
            target.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", row)


def _readable(source: sqlite3.Connection, table: str, names: str) -> Iterator[tuple[object, ...]]:
    """From the front until something is damaged, from the back until there, and one by one between."""
    if table in {"shown", "message_attachments"}:
        with suppress(sqlite3.Error):
            yield from source.execute(f"SELECT {names} FROM {table}")
        return
    first, last = -(2**63), 2**63 - 1
    try:
        for row in source.execute(f"SELECT rowid, {names} FROM {table} ORDER BY rowid"):
            first = int(row[0])
            yield tuple(row[1:])
        return
    except sqlite3.Error:
        pass
    with suppress(sqlite3.Error):
        for row in source.execute(f"SELECT rowid, {names} FROM {table} WHERE rowid > {first} ORDER BY rowid DESC"):
            last = int(row[0])
            yield tuple(row[1:])
    lowest = max(first + 1, 1)
    for rowid in range(lowest, min(last, lowest + _MOST_SINGLE)):
        with suppress(sqlite3.Error):
            yield from source.execute(f"SELECT {names} FROM {table} WHERE rowid = ?", (rowid,))


def _mend(target: sqlite3.Connection) -> None:
    """Gives every message a chat and a place again: below the message before it where its own parent is lost."""
    target.execute("UPDATE messages SET indexed = 1 WHERE indexed = 0")
    target.execute("UPDATE messages SET options_id = NULL WHERE options_id NOT IN (SELECT id FROM options)")
    target.execute("UPDATE chats SET folder_id = NULL WHERE folder_id NOT IN (SELECT id FROM folders)")
    target.execute(
        """INSERT INTO chats (id, created_s, changed_s) SELECT chat_id, min(created_s), max(created_s) FROM messages
        WHERE chat_id NOT IN (SELECT id FROM chats) GROUP BY chat_id"""
    )
    target.execute(
        """UPDATE messages SET parent_id = (
            SELECT id FROM messages AS before WHERE before.chat_id = messages.chat_id AND before.seq < messages.seq
            ORDER BY before.seq DESC LIMIT 1
        ) WHERE parent_id IS NOT NULL AND parent_id NOT IN (SELECT id FROM messages)"""
    )
    target.execute("DELETE FROM shown WHERE child_id NOT IN (SELECT id FROM messages)")
    target.execute("DELETE FROM shown WHERE chat_id NOT IN (SELECT id FROM chats)")
    target.execute("DELETE FROM message_attachments WHERE message_id NOT IN (SELECT id FROM messages)")
    target.execute(FILL)
    _blank_undecodable(target)
    _name_chats(target)


def _blank_undecodable(target: sqlite3.Connection) -> None:
    """A message whose figures or settings are no longer JSON keeps its text."""
    for (chat_id,) in target.execute("SELECT id FROM chats").fetchall():
        for row in target.execute(rows.SELECT_NODES, (chat_id,)).fetchall():
            try:
                rows.node(row)
            except (msgspec.DecodeError, TypeError, ValueError):
                target.execute("UPDATE messages SET more = '', stats = '' WHERE id = ?", (row[0],))
    for chat_id, settings in target.execute("SELECT id, settings FROM chats").fetchall():
        try:
            rows.settings(settings)
        except (msgspec.DecodeError, TypeError):
            target.execute("UPDATE chats SET settings = '{}' WHERE id = ?", (chat_id,))


def _name_chats(target: sqlite3.Connection) -> None:
    nameless = """SELECT chats.id, (SELECT text FROM messages WHERE chat_id = chats.id AND role = 'user'
        ORDER BY seq LIMIT 1) FROM chats WHERE title = ''"""
    for chat_id, text in target.execute(nameless).fetchall():
        target.execute("UPDATE chats SET title = ? WHERE id = ?", (title_of(str(text or "")), chat_id))


def _count(target: sqlite3.Connection, table: str) -> int:
    return int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
