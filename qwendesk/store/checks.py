"""Checks whether an open database is what the app wrote, beyond the checks that SQLite does itself.

A flipped bit on the disk may leave a valid database with a changed schema, a number in place of a text, JSON with a
changed name, or an index that misses a row.
"""

import sqlite3
from pathlib import Path

import msgspec

from qwendesk.core.translation import tr
from qwendesk.store.columns import KEYS, TEXT_CHECKS, columns_of
from qwendesk.store.search_index import can_be_read
from qwendesk.store.sqlite_pages import MAGIC

_FULL_TEXT_MARK = "FTS5"
"""Newer SQLite versions name it in problems of a full-text index. These lose no row: the index is rebuilt."""
_UNREADABLE_INDEX = "vtable constructor failed"
_MAX_PROBLEMS = 100
_OR_NULL = ", 'null'"


class Findings(msgspec.Struct, frozen=True):
    """Problems of a database. `damage` is a text for the log and the user; "" if no row is affected."""

    damage: str = ""
    is_index_damaged: bool = False
    """Whether the full-text index must be rebuilt."""


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
