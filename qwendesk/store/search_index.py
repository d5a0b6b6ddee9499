"""Checks of the full-text indexes, and rebuilding them from the indexed texts."""

import sqlite3
from contextlib import closing
from types import MappingProxyType
from typing import Final

_FILL: Final = MappingProxyType(
    {
        "chats_fts": "INSERT INTO chats_fts (rowid, title) SELECT seq, title FROM chats",
        "messages_fts": """INSERT INTO messages_fts (rowid, text, reasoning)
            SELECT seq, text, reasoning FROM messages WHERE indexed""",
        "documents_fts": """INSERT INTO documents_fts (rowid, documents)
            SELECT seq, documents FROM messages WHERE documents <> ''""",
    }
)


def _names(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the names of the indexes that this version of the database has."""
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return tuple(name for name in _FILL if name in there)


def can_be_read(connection: sqlite3.Connection) -> bool:
    """Return False if a simple search fails. Takes almost no time."""
    try:
        for name in _names(connection):
            connection.execute(f"SELECT rowid FROM {name} WHERE {name} MATCH 'a' LIMIT 1").fetchall()
    except sqlite3.DatabaseError:
        return False
    return True


def is_sound(connection: sqlite3.Connection) -> bool:
    """Return whether the indexes match their checksums. Reads all of them; needs a writable connection."""
    try:
        for name in _names(connection):
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
    except sqlite3.DatabaseError:
        return False
    return True


def rebuild(connection: sqlite3.Connection) -> None:
    """Rebuild the indexes inside the caller's transaction. Raises sqlite3.Error."""
    for name in _names(connection):
        try:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('delete-all')")
        except sqlite3.DatabaseError:
            _empty(connection, name)
        connection.execute(_FILL[name])


def _empty(connection: sqlite3.Connection, name: str) -> None:
    """Empty an index through the tables that store it, because a damaged index accepts no commands."""
    (made_by,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    with closing(sqlite3.connect(":memory:")) as model:
        model.execute(made_by)
        for part in ("data", "idx", "docsize", "config"):
            connection.execute(f"DELETE FROM {name}_{part}")
            for row in model.execute(f"SELECT * FROM {name}_{part}"):
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {name}_{part} VALUES ({marks})", row)
