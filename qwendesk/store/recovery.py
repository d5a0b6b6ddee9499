"""Recovery of a damaged database into a new one: every row that can still be read, and the rest from a backup.

The damaged file is never written to. It is moved to its own folder with its -wal and -shm files, and stays there until
the user deletes it.

A table and the index of its key are read page by page and checked against each other. The index tells which rows must
exist, so deleted rows are not brought back and lost rows can be counted. Rows on pages that belong to no tree are
recognised by the types of their values.

A row that was not read as it was last written may have held less or other tool calls than it does now. It is marked as
doubted, which taints its chat (docs/adr/018-consent.md).
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core.chats import title_of
from qwendesk.core.files import replace
from qwendesk.core.links import real_path
from qwendesk.core.permissions import make_folder
from qwendesk.store.attachments import own_files
from qwendesk.store.backups import Backup
from qwendesk.store.database import Database, read_only
from qwendesk.store.migrations import FILL_DOCUMENTS
from qwendesk.store.rows import KEYS, Value, columns_of, doubted
from qwendesk.store.sqlite_pages import PageFile, Record, Tree

# Columns that must be readable for a damaged row to be worth keeping. Other tables need all columns.
_NEEDED: Final = MappingProxyType(
    {"folders": ("id", "name"), "chats": ("id",), "messages": ("id", "chat_id", "text"), "drafts": ("chat_id", "text")}
)
# Number of columns in rows that were written before a migration added more.
_FIRST_VERSION: Final = MappingProxyType({"messages": 16})
# Columns that tell whether a row is doubted.
_DOUBTED_IN: Final = MappingProxyType({"chats": "settings", "messages": "more"})
# Columns by which two versions of a row are told apart, where not all matter: a chat changes while it is read too.
_CHANGES_WITH: Final = MappingProxyType({"chats": ("changed_s",)})


class TableOutcome(msgspec.Struct, frozen=True):
    """The recovered and lost rows of one table."""

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


class Recovered(msgspec.Struct, frozen=True):
    """Content of a recovered database, and what became of the rows of the damaged one."""

    chats: int
    messages: int
    chat_rows: TableOutcome
    message_rows: TableOutcome
    lost_titles: int
    """Number of chats whose row is lost but whose messages were found."""
    doubted_chats: int
    """Number of chats that may have lost what the model has read."""
    backup: Backup | None
    """The backup that was used, if any."""

    @property
    def lost_chats(self) -> int:
        return len(self.chat_rows.lost) - self.lost_titles

    @property
    def lost_messages(self) -> int:
        return len(self.message_rows.lost)

    @property
    def is_exact(self) -> bool:
        return self.message_rows.is_exact and self.chat_rows.is_exact

    @property
    def is_complete(self) -> bool:
        """True if no chat or message is lost or incomplete."""
        rows = (self.chat_rows, self.message_rows)
        return self.is_exact and not any(each.lost or each.incomplete for each in rows)


def set_aside(path: Path, now: datetime | None = None, name: str = "damaged") -> Path:
    """Move the database and its -wal and -shm files into a new folder beside it, and return that. Raises OSError."""
    stamp = f"{now or datetime.now(UTC):%Y%m%d-%H%M%S}"
    folder = path.with_name(f"{name}-{stamp}")
    count = 1
    while folder.exists():
        count += 1
        folder = path.with_name(f"{name}-{stamp}-{count}")
    make_folder(folder)
    for ending in ("", "-wal", "-shm"):
        companion = path.with_name(path.name + ending)
        if companion.exists():
            replace(companion, folder / companion.name)
    return folder


def recover(damaged: Path, backup: Backup | None, database: Database, attachments: Path) -> Recovered:
    """Fill the new, empty `database`. Raises StoreFailure only for errors of this new database."""

    def work(target: sqlite3.Connection) -> Recovered:
        outcomes = salvage(damaged, backup.path if backup else None, target)
        _repair_rows(target)
        _find_attachments(target, attachments)
        known = {row[0] for row in target.execute("SELECT id FROM chats")}
        return Recovered(
            _count(target, "chats"),
            _count(target, "messages"),
            outcomes["chats"],
            outcomes["messages"],
            sum(key in known for key in outcomes["chats"].lost),
            _count_doubted(target),
            backup,
        )

    return database.write(work).result()


_HAS_LOST_PARENT = """parent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM messages AS parent WHERE parent.id = messages.parent_id
    AND parent.chat_id = messages.chat_id AND parent.seq < messages.seq
)"""


def _repair_rows(target: sqlite3.Connection) -> None:
    """Give every message a chat, role, time and parent. A lost parent is replaced by the message before it.

    Chats that have lost messages in between, or their own row, are marked as doubted.
    """
    target.execute("UPDATE messages SET indexed = 1 WHERE indexed = 0")
    target.execute("UPDATE messages SET options_id = NULL WHERE options_id NOT IN (SELECT id FROM options)")
    target.execute("UPDATE chats SET folder_id = NULL WHERE folder_id NOT IN (SELECT id FROM folders)")
    target.execute(
        """INSERT INTO chats (id, created_s, changed_s, settings)
        SELECT chat_id, min(created_s), max(created_s), ? FROM messages
        WHERE chat_id NOT IN (SELECT id FROM chats) GROUP BY chat_id""",
        (doubted("chats", "{}"),),
    )
    gaps = f"""SELECT id, settings FROM chats
        WHERE id IN (SELECT chat_id FROM messages WHERE {_HAS_LOST_PARENT})"""
    for chat_id, settings in target.execute(gaps).fetchall():
        target.execute("UPDATE chats SET settings = ? WHERE id = ?", (doubted("chats", settings), chat_id))
    target.execute(
        f"""UPDATE messages SET parent_id = (
            SELECT id FROM messages AS before WHERE before.chat_id = messages.chat_id AND before.seq < messages.seq
            ORDER BY before.seq DESC LIMIT 1
        ) WHERE {_HAS_LOST_PARENT}"""
    )
    target.execute(
        """UPDATE messages SET role = CASE (
            SELECT role FROM messages AS parent WHERE parent.id = messages.parent_id
        ) WHEN 'user' THEN 'assistant' ELSE 'user' END WHERE role = ''"""
    )
    target.execute(
        """UPDATE messages SET created_s = coalesce((
            SELECT max(created_s) FROM messages AS before
            WHERE before.chat_id = messages.chat_id AND before.seq < messages.seq
        ), 0) WHERE created_s = 0"""
    )
    for column in ("created_s", "changed_s"):
        target.execute(
            f"""UPDATE chats SET {column} = coalesce(
                (SELECT max(created_s) FROM messages WHERE chat_id = chats.id), 0) WHERE {column} = 0"""
        )
    target.execute("DELETE FROM shown WHERE child_id NOT IN (SELECT id FROM messages)")
    target.execute("DELETE FROM shown WHERE chat_id NOT IN (SELECT id FROM chats)")
    target.execute(FILL_DOCUMENTS)
    _name_chats(target)


def _count_doubted(target: sqlite3.Connection) -> int:
    mark = """LIKE '%"is_damaged":true%'"""
    found = f"SELECT id FROM chats WHERE settings {mark} UNION SELECT chat_id FROM messages WHERE more {mark}"
    return len(target.execute(found).fetchall())


def _name_chats(target: sqlite3.Connection) -> None:
    nameless = """SELECT chats.id, (SELECT text FROM messages WHERE chat_id = chats.id AND role = 'user'
        ORDER BY seq LIMIT 1) FROM chats WHERE title = ''"""
    for chat_id, text in target.execute(nameless).fetchall():
        target.execute("UPDATE chats SET title = ? WHERE id = ?", (title_of(str(text or "")), chat_id))


def _find_attachments(target: sqlite3.Connection, folder: Path) -> None:
    """Rebuild the rows of attachments from the messages and from the names of the files in `folder`.

    A picture that no message refers to gets no row. It is kept for a while, because it may belong to a lost message.
    """
    target.execute(
        """INSERT OR IGNORE INTO message_attachments (message_id, sha256)
        SELECT messages.id, json_extract(messages.more, kind.path || '.sha256')
        FROM messages, json_tree(messages.more) AS kind
        WHERE messages.more LIKE '%"image"%' AND json_valid(messages.more)
        AND kind.key = 'type' AND kind.value = 'image'
        AND json_extract(messages.more, kind.path || '.sha256') IS NOT NULL"""
    )
    for path in own_files(real_path(folder)):
        found = path.stat()
        target.execute(
            "INSERT OR IGNORE INTO attachments (sha256, file, size_bytes, created_s) VALUES (?, ?, ?, ?)",
            (path.name[:64], f"{path.parent.name}/{path.name}", found.st_size, max(found.st_mtime, 0)),
        )
    target.execute("DELETE FROM attachments WHERE sha256 NOT IN (SELECT sha256 FROM message_attachments)")


def _count(target: sqlite3.Connection, table: str) -> int:
    return int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
