"""Salvages every row of a damaged database that can still be read, and takes the others from a backup.

A table and the index of its key are read page by page and checked against each other. The index tells which rows must
exist, so deleted rows are not brought back and lost rows can be counted. Rows on pages that belong to no tree are
recognised by the types of their values.

A row that was not read as it was last written may have held less or other tool calls than it does now. It is marked as
doubted, which taints its chat (docs/adr/018-consent.md).
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.store.columns import KEYS, columns_of
from qwendesk.store.database import read_only
from qwendesk.store.rows import doubted
from qwendesk.store.sqlite_pages import PageFile, Record, Tree, Value

_NEEDED: Final = MappingProxyType(
    {"folders": ("id", "name"), "chats": ("id",), "messages": ("id", "chat_id", "text"), "drafts": ("chat_id", "text")}
)
"""Columns that must be readable for a damaged row to be worth keeping. Other tables need all columns."""
_FIRST_VERSION: Final = MappingProxyType({"messages": 16})
"""Number of columns in rows that were written before a migration added more."""
_DOUBTED_IN: Final = MappingProxyType({"chats": "settings", "messages": "more"})
"""Columns that tell whether a row is doubted."""
_CHANGES_WITH: Final = MappingProxyType({"chats": ("changed_s",)})
"""Columns by which two versions of a row are told apart, where not all matter: a chat changes while it is read too."""


class TableOutcome(msgspec.Struct, frozen=True):
    """What became of the rows of one table."""

    salvaged: int = 0
    from_backup: int = 0
    incomplete: int = 0
    lost: tuple[str, ...] = ()
    """Keys of the lost rows."""
    is_exact: bool = True
    """False if the index of the table is damaged too, so that more rows may be lost than are known."""


def salvage(damaged: Path, backup: Path | None, target: sqlite3.Connection) -> dict[str, TableOutcome]:
    """Fill the empty tables of `target` inside the caller's transaction. Damage in `damaged` raises no error."""
    target.execute("PRAGMA defer_foreign_keys = ON")
    tables = {name: _TableSalvage(target, name) for name in KEYS}
    shown: list[tuple[Value, ...]] = []
    try:
        with PageFile(damaged) as file:
            shown = _read(file, tables)
    except OSError:
        # The file is missing or can't be read: all tables count as damaged.
        pass
    if backup is not None:
        with closing(read_only(backup)) as source:
            for table in tables.values():
                table.add_missing(source)
            shown += source.execute("SELECT chat_id, parent_id, child_id FROM shown").fetchall()
    for table in tables.values():
        table.add_flawed()
    target.executemany("INSERT OR IGNORE INTO shown (chat_id, parent_id, child_id) VALUES (?, ?, ?)", shown)
    return {name: table.outcome() for name, table in tables.items()}


def _read(file: PageFile, tables: Mapping[str, "_TableSalvage"]) -> list[tuple[Value, ...]]:
    """Read all tables. Return the rows of `shown`, which has no rowids and is stored like an index."""
    roots = _roots(file)
    for name, table in tables.items():
        table.expect(_records(file, roots.get(f"sqlite_autoindex_{name}_1")))
    for name, table in tables.items():
        tree = _records(file, roots.get(name))
        for record in tree:
            _owner(record, table, tables).take(record)
        table.is_whole = tree.is_whole
    if not all(table.is_whole for table in tables.values()):
        for record in file.strays():
            for table in tables.values():
                if not table.is_whole and table.take_stray(record):
                    break
    by_child = [record.values for record in _records(file, roots.get("shown_by_child"))]
    shown = [record.values for record in _records(file, roots.get("shown"))]
    shown += [(row[1], row[2], row[0]) for row in by_child if len(row) == 3]
    return [row for row in shown if len(row) == 3 and all(isinstance(value, str) for value in row)]


def _roots(file: PageFile) -> dict[str, int]:
    """Return the root pages of tables and indexes by name, as far as the schema can be read."""
    roots = {}
    for record in Tree(file, 1):
        if len(record.values) == 5:
            _, name, _, root, _ = record.values
            if isinstance(name, str) and isinstance(root, int):
                roots[name] = root
    return roots


def _records(file: PageFile, root: int | None) -> Tree:
    return Tree(file, root or 0)


def _owner(record: Record, table: "_TableSalvage", tables: Mapping[str, "_TableSalvage"]) -> "_TableSalvage":
    """Return the table that the record belongs to. A damaged schema may lead from `table` to pages of another one."""
    if table.fits(record.values):
        return table
    return next((other for other in tables.values() if other.fits(record.values)), table)


class _TableSalvage:
    """Collects the rows of one table and inserts them into the target."""

    def __init__(self, target: sqlite3.Connection, name: str) -> None:
        self._target = target
        self._name = name
        self._columns = columns_of(target, name)
        self._key = self._place(KEYS[name])
        self._expected: dict[int, str] = {}
        self._is_exact = False
        self._rowids: set[int] = set()
        self._keys: set[str] = set()
        self._flawed: list[Record] = []
        self._salvaged = self._from_backup = self._incomplete = 0
        self.is_whole = False

    def expect(self, index: Tree) -> None:
        """Remember which rows must exist, according to the index of the key."""
        for record in index:
            match record.values:
                case (str(key), int(rowid)):
                    self._expected[rowid] = key
        self._is_exact = index.is_whole

    def fits(self, values: Sequence[Value]) -> bool:
        """Return whether the app could have written these values as a row of this table."""
        if len(values) not in (len(self._columns), _FIRST_VERSION.get(self._name)):
            return False
        fitting = (column.fits(value) for column, value in zip(self._columns, values, strict=False))
        return bool(values[self._key]) and all(fitting)

    def take(self, record: Record) -> None:
        """Take a row that was found in the tree of a table."""
        is_sound = record.rowid is not None and record.is_whole and self.fits(record.values)
        if is_sound and self._is_expected(record):
            self._salvaged += self._insert(record.rowid, record.values)
        else:
            self._flawed.append(record)

    def take_stray(self, record: Record) -> bool:
        """Take a row from a page that belongs to no tree, unless the row was deleted.

        Return False if it isn't a row of this table.
        """
        if record.is_whole and self.fits(record.values):
            if self._is_expected(record):
                self._salvaged += self._insert(record.rowid, record.values)
            return True
        if self._is_exact and self._is_worth_keeping(record.values) and self._is_expected(record):
            self._flawed.append(record)
            return True
        return False

    def add_missing(self, backup: sqlite3.Connection) -> None:
        """Add the lost rows from a backup; if it isn't known which are lost, add every row that is missing."""
        if self._is_exact:
            missing = {key for rowid, key in self._expected.items() if not self._has(rowid, key)}
        elif self.is_whole and not self._flawed:
            return
        else:
            missing = None
        there = {row[1] for row in backup.execute(f"PRAGMA table_info({self._name})")}
        names = [column.name for column in self._columns if column.name in there]
        readable = {self._key_of(record.values): record.values for record in self._flawed}
        is_alone = not self._keys and not self._expected and not readable
        for row in map(list, backup.execute(f"SELECT {', '.join(names)} FROM {self._name}")):
            key = row[self._key]
            if key in self._keys or (missing is not None and key not in missing):
                continue
            rowid = None
            if self._columns[0].is_rowid:
                rowid, row[0] = row[0], None
            if not self.fits(row):
                self._flawed.append(Record(rowid, tuple(row)))
            elif is_alone or self._is_same(row, readable.get(key, ())):
                self._from_backup += self._insert(rowid, row)
            else:
                self._from_backup += self._insert(rowid, self._doubted(row))

    def add_flawed(self) -> None:
        """Add the readable values of rows that are complete neither in the file nor in the backup."""
        for record in self._flawed:
            is_known = record.rowid in self._rowids or self._key_of(record.values) in self._keys
            if is_known or not self._is_worth_keeping(record.values):
                continue
            mended = self._mended(record.values)
            is_added = self._insert(record.rowid, mended)
            if record.is_whole and self.fits(record.values):
                self._salvaged += is_added
            else:
                self._incomplete += is_added

    def outcome(self) -> TableOutcome:
        lost = tuple(key for rowid, key in self._expected.items() if not self._has(rowid, key))
        is_exact = self._is_exact or (self.is_whole and not self._flawed)
        return TableOutcome(self._salvaged, self._from_backup, self._incomplete, lost, is_exact)

    def _is_worth_keeping(self, values: Sequence[Value]) -> bool:
        """Return whether all values that `_NEEDED` names are readable in a damaged row."""
        needed = [self._place(name) for name in _NEEDED.get(self._name, [column.name for column in self._columns])]
        return (
            bool(self._key_of(values))
            and len(values) > max(needed)
            and all(self._columns[place].fits(values[place]) for place in needed)
        )

    def _mended(self, values: Sequence[Value]) -> list[Value]:
        """Return the row with a default for each value that is missing or that the app can't have written."""
        row = list(values[: len(self._columns)])
        row += [column.default for column in self._columns[len(row) :]]
        mended = [
            value if column.fits(value) else column.default for column, value in zip(self._columns, row, strict=True)
        ]
        return mended if mended == list(values) else self._doubted(mended)

    def _is_same(self, row: Sequence[Value], readable: Sequence[Value]) -> bool:
        """Return whether a row of the backup agrees with all that is readable of the damaged one."""
        names = _CHANGES_WITH.get(self._name, [column.name for column in self._columns])
        pairs = zip(self._columns, row, readable, strict=False)
        readable_pairs = [pair for pair in pairs if pair[0].name in names and pair[0].fits(pair[2])]
        return bool(readable_pairs) and all(there == value for _column, there, value in readable_pairs)

    def _doubted(self, row: Sequence[Value]) -> list[Value]:
        """Return the row with the note that it may not be as it was last written."""
        doubted_row = list(row)
        if self._name in _DOUBTED_IN:
            place = self._place(_DOUBTED_IN[self._name])
            doubted_row[place] = doubted(self._name, str(row[place]))
        return doubted_row

    def _place(self, column: str) -> int:
        return [each.name for each in self._columns].index(column)

    def _key_of(self, values: Sequence[Value]) -> Value:
        return values[self._key] if len(values) > self._key else None

    def _is_expected(self, record: Record) -> bool:
        if not self._is_exact or record.rowid is None:
            return not self._is_exact
        return self._expected.get(record.rowid) == self._key_of(record.values)

    def _has(self, rowid: int, key: str) -> bool:
        return rowid in self._rowids or key in self._keys

    def _insert(self, rowid: int | None, values: Iterable[Value]) -> int:
        row = list(values)
        if self._columns[0].is_rowid:
            row[0] = None if rowid in self._rowids else rowid
        names = ", ".join(column.name for column in self._columns[: len(row)])
        marks = ", ".join("?" * len(row))
        try:
            added = self._target.execute(f"INSERT OR IGNORE INTO {self._name} ({names}) VALUES ({marks})", row).rowcount
        except sqlite3.IntegrityError:
            return 0
        if added:
            self._keys.add(str(row[self._key]))
            if rowid is not None:
                self._rowids.add(rowid)
        return added
