"""The columns of each table and the values that the app writes there. SQLite accepts any value in any column."""

import sqlite3
from collections.abc import Callable
from math import isfinite
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.store.rows import JSON_COLUMNS, is_role
from qwendesk.store.sqlite_pages import Value

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
"""Each table with rowids, and its key column. A row refers only to rows of the same table or of tables above."""


TEXT_CHECKS: Final = MappingProxyType({**JSON_COLUMNS, ("messages", "role"): is_role})
"""Returns for texts of some columns, by table and column, whether the app could have written them."""


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
