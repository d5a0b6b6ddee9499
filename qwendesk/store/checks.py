"""Checks whether an open database and its full-text indexes are what the app wrote.

A flipped bit on the disk may leave a valid database with a changed schema, a number in place of a text, JSON with a
changed name, or an index that misses a row.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core.translation import tr
from qwendesk.store.rows import KEYS, TEXT_CHECKS, columns_of

# The first bytes of a database file.
MAGIC: Final = b"SQLite format 3\0"

# Newer SQLite versions name it in problems of a full-text index. These lose no row: the index is rebuilt.
_FULL_TEXT_MARK = "FTS5"
_UNREADABLE_INDEX = "vtable constructor failed"
_MAX_PROBLEMS = 100
_OR_NULL = ", 'null'"


class Findings(msgspec.Struct, frozen=True):
    """Problems of a database. `damage` is a text for the log and the user; "" if no row is affected."""

    damage: str = ""
    is_index_damaged: bool = False
    """True if the full-text index must be rebuilt."""


def header_problem(path: Path) -> str:
    """Return what is wrong with the header of the file, which SQLite would trust; "" if nothing is.

    Source of the offsets: section 1.3 of sqlite.org/fileformat2.html. Raises OSError.
    """
    with path.open("rb") as file:
        header = file.read(100)
    is_valid = (
        len(header) == 100
        and header.startswith(MAGIC)
        and set(header[18:20]) <= {1, 2}
        and header[20] <= 32
        and header[21:24] == bytes((64, 32, 32))
        and int.from_bytes(header[44:48]) in range(5)
        and not any(header[52:56])
        and int.from_bytes(header[56:60]) in (0, 1)
        and not any(header[64:68])
    )
    return "" if is_valid else tr("it doesn't begin like a database")


def examine(connection: sqlite3.Connection, model: sqlite3.Connection, version: int) -> Findings:
    """Check a database of this version, except the content of full-text indexes. Raises sqlite3.Error.

    `model` is an empty database of the same version.
    """
    problems = _integrity_problems(connection)
    of_full_text = [problem for problem in problems if _FULL_TEXT_MARK in problem]
    damage = next((problem for problem in problems if problem != "ok" and problem not in of_full_text), "")
    if not damage:
        damage = _schema_damage(connection, model) or _value_damage(connection, model) or _text_damage(connection)
    is_index_damaged = not damage and version > 0 and (bool(of_full_text) or not can_be_read(connection))
    return Findings(damage, is_index_damaged)


def _integrity_problems(connection: sqlite3.Connection) -> list[str]:
    """Return what SQLite finds wrong, which is ["ok"] if nothing is. Raises sqlite3.Error."""
    try:
        return [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
    except sqlite3.DatabaseError as error:
        if _UNREADABLE_INDEX not in str(error):
            raise
        problems = [f"{_FULL_TEXT_MARK}: {error}"]
    # Since SQLite 3.44 the check opens the full-text indexes too, and ends at one that can't be opened.
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'"
    for (name,) in connection.execute(tables).fetchall():
        found = connection.execute(f"PRAGMA integrity_check({name})")
        problems += [str(row[0]) for row in found if row[0] != "ok"]
    return problems


def _schema_damage(connection: sqlite3.Connection, model: sqlite3.Connection) -> str:
    expected, actual = _schema(model), _schema(connection)
    if not expected and actual:
        return tr("its version is lost")
    return next((tr("{0} is lost or changed", name) for name in expected if actual.get(name) != expected[name]), "")


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the statement that created each table, index and trigger, with normalised whitespace."""
    found = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'")
    return {str(name): " ".join(str(statement).split()) for name, statement in found}


def _value_damage(connection: sqlite3.Connection, model: sqlite3.Connection) -> str:
    """Name the first table with a value of a type that the app never writes there; return "" if there is none."""
    for table in (*KEYS, "shown", "message_attachments"):
        conditions = [
            f"typeof({column.name}) NOT IN ('{column.kind.lower()}'{_OR_NULL * column.is_nullable})"
            for column in columns_of(model, table)
        ]
        # One statement reads the table once, however many columns it has.
        wrong = f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {' OR '.join(conditions)})" if conditions else "SELECT 0"
        if connection.execute(wrong).fetchone()[0]:
            return tr("a value in {0} is damaged", table)
    return ""


def _text_damage(connection: sqlite3.Connection) -> str:
    """Name the first table with JSON or a role that the app never writes there; return "" if there is none."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for (table, column), is_sound in TEXT_CHECKS.items():
        if table in tables:
            texts = connection.execute(f"SELECT {column} FROM {table}")
            if not all(is_sound(text) for (text,) in texts):
                return tr("a value in {0} is damaged", table)
    return ""


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
