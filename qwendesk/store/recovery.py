"""Recovery of a damaged database into a new one: what can be read, and the rest from a backup.

The damaged file is never written to. It is moved to its own folder with its -wal and -shm files, and stays there until
the user deletes it.
"""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from qwendesk.core.chats import title_of
from qwendesk.core.files import replace
from qwendesk.core.links import real_path
from qwendesk.core.permissions import make_folder
from qwendesk.store.attachment_cleaning import own_files
from qwendesk.store.backups import Backup
from qwendesk.store.database import Database
from qwendesk.store.migrations import FILL_DOCUMENTS
from qwendesk.store.rows import doubted
from qwendesk.store.salvage import TableOutcome, salvage


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

    Chats that have lost messages in between, or their own row, are marked as doubted; see salvage.py.
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
