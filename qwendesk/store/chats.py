"""Storage of chats in the database, with their message trees, drafts, folders and read positions.

Methods that read block, so call them on a worker thread. Methods that write return a future at once (see
Database.write).
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from operator import itemgetter

from qwendesk.core.chats import (
    ChatSettings,
    ChatSummary,
    Folder,
    ReadPosition,
    SavedDraft,
    edits_key,
    title_of_question,
)
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.translation import tr
from qwendesk.store import rows
from qwendesk.store.database import DamagedStore, Database

_SUMMARY = "id, title, folder_id, pinned, archived, created_s, changed_s, settings"
_DESCENDANTS = """WITH RECURSIVE below (id) AS (
    SELECT id FROM messages WHERE chat_id = ? AND id = ?
    UNION SELECT messages.id FROM messages JOIN below ON messages.parent_id = below.id
)"""


class ChatStore:
    """Reads and writes the rows of chats."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.damage: DamagedStore | None = None
        """Damage that was found in messages since the start; they are read as far as they can be."""

    def list(self) -> tuple[ChatSummary, ...]:
        """Return all chats that aren't deleted, including archived ones, with the last changed chat first."""

        def work(connection: sqlite3.Connection) -> tuple[ChatSummary, ...]:
            found = connection.execute(f"SELECT {_SUMMARY} FROM chats WHERE deleted_s IS NULL").fetchall()
            # SQLite would move whole rows through its sorter, which takes three times as long as sorting here.
            found.sort(key=itemgetter(6), reverse=True)
            settings = rows.SettingsReader()
            return tuple(rows.summary(row, settings) for row in found)

        return self._database.read(work)

    def summary(self, chat_id: str) -> ChatSummary | None:
        """Return the summary of a chat; None if there is no such chat."""

        def work(connection: sqlite3.Connection) -> ChatSummary | None:
            found = connection.execute(
                f"SELECT {_SUMMARY} FROM chats WHERE id = ? AND deleted_s IS NULL", (chat_id,)
            ).fetchone()
            return None if found is None else rows.summary(found, rows.SettingsReader())

        return self._database.read(work)

    def load(self, chat_id: str) -> ChatTree:
        """Return all messages of a chat; an empty tree if there is no such chat."""

        def work(connection: sqlite3.Connection) -> ChatTree:
            found = connection.execute(rows.SELECT_NODES, (chat_id,)).fetchall()
            if not all(map(rows.is_sound, found)):
                self.damage = self._database.note_damage(tr("a value in {0} is damaged", "messages"))
            nodes = map(rows.node, found)
            shown = connection.execute("SELECT parent_id, child_id FROM shown WHERE chat_id = ?", (chat_id,))
            return ChatTree({node.id: node for node in nodes}, dict(shown.fetchall()))

        return self._database.read(work)

    def save_node(self, chat_id: str, node: ChatNode, *, growing: bool = False) -> Future[None]:
        """Add a message and show it, or replace the one with its id; the first message creates the chat.

        A chat without a title gets one from its first question. With `growing`, the message is not searchable yet.
        """
        return self._database.write(lambda connection: _save_nodes(connection, chat_id, (node,), growing=growing))

    def save_tree(self, summary: ChatSummary, tree: ChatTree) -> Future[None]:
        """Save a complete chat at once, for a branch, an import or an undo."""

        def work(connection: sqlite3.Connection) -> None:
            _save_summary(connection, summary)
            _save_nodes(connection, summary.id, tuple(tree.nodes.values()), growing=False)
            connection.execute("DELETE FROM shown WHERE chat_id = ?", (summary.id,))
            _show(connection, summary.id, tree.shown.items())
            _save_summary(connection, summary)

        return self._database.write(work)

    def set_shown(self, chat_id: str, parent_id: str, node_id: str) -> Future[None]:
        """Save which version is shown below `parent_id` ("" for the chat's first message)."""
        return self._database.write(lambda connection: _show(connection, chat_id, ((parent_id, node_id),)))

    def delete_node(self, chat_id: str, node_id: str) -> Future[None]:
        """Delete a message and everything below it."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(f"{_DESCENDANTS} DELETE FROM messages WHERE id IN below", (chat_id, node_id))

        return self._database.write(work)

    def save_summary(self, summary: ChatSummary) -> Future[None]:
        """Add a chat to the list, or replace its summary."""
        return self._database.write(lambda connection: _save_summary(connection, summary))

    def save_row(self, summary: ChatSummary) -> Future[None]:
        """Save the title, folder, pin and archive state of an existing chat."""
        row = (summary.folder_id or None, summary.pinned, summary.archived)
        return self._update(
            summary.id, "title = ?, folder_id = ?, pinned = ?, archived = ?", rows.storable(summary.title), *row
        )

    def save_settings(self, chat_id: str, settings: ChatSettings) -> Future[None]:
        """Save the settings of a chat; does nothing if the chat has no message yet."""
        return self._update(chat_id, "settings = ?", rows.settings_text(settings))

    def set_deleted(self, chat_ids: Iterable[str], at_s: float | None) -> Future[None]:
        """Mark chats as deleted at a time (seconds since 1970), or restore them (None)."""
        marks = [(at_s, chat_id) for chat_id in chat_ids]
        return self._write_many("UPDATE chats SET deleted_s = ? WHERE id = ?", marks)

    def purge(self) -> Future[None]:
        """Delete permanently what is marked as deleted, with its drafts. The clock may have been wrong at the time."""

        def work(connection: sqlite3.Connection) -> None:
            gone = [row[0] for row in connection.execute("SELECT id FROM chats WHERE deleted_s IS NOT NULL")]
            keys = [(key,) for chat_id in gone for key in (chat_id, edits_key(chat_id))]
            connection.executemany("DELETE FROM drafts WHERE chat_id = ?", keys)
            connection.execute("DELETE FROM chats WHERE deleted_s IS NOT NULL")
            connection.execute(
                "DELETE FROM options WHERE NOT EXISTS (SELECT 1 FROM messages WHERE options_id = options.id)"
            )

        return self._database.write(work)

    def known_ids(self, ids: Iterable[str]) -> frozenset[str]:
        """Return the ids that belong to a chat or message, including deleted chats."""

        def work(connection: sqlite3.Connection) -> frozenset[str]:
            statement = "SELECT 1 FROM messages WHERE id = ? UNION SELECT 1 FROM chats WHERE id = ?"
            return frozenset(each for each in ids if connection.execute(statement, (each, each)).fetchone())

        return self._database.read(work)

    def folders(self) -> tuple[Folder, ...]:
        """Return all folders, sorted by name."""

        def work(connection: sqlite3.Connection) -> tuple[Folder, ...]:
            found = connection.execute("SELECT id, name FROM folders ORDER BY name COLLATE NOCASE, id")
            return tuple(Folder(*row) for row in found)

        return self._database.read(work)

    def save_folder(self, folder: Folder) -> Future[None]:
        return self._write_many(
            "INSERT INTO folders (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
            [(folder.id, folder.name)],
        )

    def delete_folder(self, folder_id: str) -> Future[None]:
        """Delete a folder. Its chats are kept, without a folder."""
        return self._write_many("DELETE FROM folders WHERE id = ?", [(folder_id,)])

    def draft(self, chat_id: str) -> SavedDraft:
        """Return the draft of a chat ("" is the key for a chat without a message); an empty one if there is none."""

        def work(connection: sqlite3.Connection) -> SavedDraft:
            found = connection.execute("SELECT text, pictures FROM drafts WHERE chat_id = ?", (chat_id,)).fetchone()
            if found is None:
                return SavedDraft()
            return SavedDraft(found[0], rows.draft_files(found[1]))

        return self._database.read(work)

    def save_draft(self, chat_id: str, draft: SavedDraft, at_s: float) -> Future[None]:
        """Save a draft. An empty draft is deleted."""
        if draft == SavedDraft():
            return self._write_many("DELETE FROM drafts WHERE chat_id = ?", [(chat_id,)])
        return self._write_many(
            "INSERT OR REPLACE INTO drafts (chat_id, text, pictures, saved_s) VALUES (?, ?, ?, ?)",
            [(chat_id, rows.storable(draft.text), rows.encode(draft.files), at_s)],
        )

    def read_position(self, chat_id: str) -> ReadPosition:
        def work(connection: sqlite3.Connection) -> ReadPosition:
            found = connection.execute(
                "SELECT read_node_id, read_section, read_offset FROM chats WHERE id = ?", (chat_id,)
            ).fetchone()
            return ReadPosition() if found is None else ReadPosition(*found)

        return self._database.read(work)

    def save_read_position(self, chat_id: str, position: ReadPosition) -> Future[None]:
        place = (position.node_id, position.section, position.offset)
        return self._update(chat_id, "read_node_id = ?, read_section = ?, read_offset = ?", *place)

    def remembered(self, key: str) -> str:
        """Return a small value remembered for the next start, such as the last chat; "" if there is none."""

        def work(connection: sqlite3.Connection) -> str:
            found = connection.execute("SELECT value FROM remembered WHERE key = ?", (key,)).fetchone()
            return "" if found is None else str(found[0])

        return self._database.read(work)

    def remember(self, key: str, value: str) -> Future[None]:
        return self._write_many("INSERT OR REPLACE INTO remembered (key, value) VALUES (?, ?)", [(key, value)])

    def finish_index(self) -> Future[None]:
        """Index partial answers that a crash left unindexed."""
        return self._write_many("UPDATE messages SET indexed = 1 WHERE indexed = 0", [()])

    def _update(self, chat_id: str, what: str, *values: object) -> Future[None]:
        return self._write_many(f"UPDATE chats SET {what} WHERE id = ?", [(*values, chat_id)])

    def _write_many(self, statement: str, values: Sequence[tuple[object, ...]]) -> Future[None]:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(statement, values)

        return self._database.write(work)


def _save_nodes(connection: sqlite3.Connection, chat_id: str, nodes: Iterable[ChatNode], *, growing: bool) -> None:
    option_id = _option_ids(connection)
    for node in nodes:
        _create_or_update_chat(connection, chat_id, node)
        known = connection.execute("SELECT 1 FROM messages WHERE id = ?", (node.id,)).fetchone()
        connection.execute(
            rows.SAVE_NODE, rows.values(chat_id, node, option_id(node.options_json), indexed=not growing)
        )
        if known is None:
            _show(connection, chat_id, ((node.parent_id, node.id),))
        connection.execute("DELETE FROM message_attachments WHERE message_id = ?", (node.id,))
        connection.executemany(
            "INSERT OR IGNORE INTO message_attachments (message_id, sha256) VALUES (?, ?)",
            [(node.id, image.sha256) for image in node.message.all_images],
        )


def _create_or_update_chat(connection: sqlite3.Connection, chat_id: str, node: ChatNode) -> None:
    """Create or update the chat of a message. Its first question becomes the title if it has none.

    A time in the future, when the clock was wrong, gives way to that of the message.
    """
    title = rows.storable(title_of_question(node.message)) if not node.parent_id and node.message.role == "user" else ""
    connection.execute(
        """INSERT INTO chats (id, title, created_s, changed_s) VALUES (?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET
        changed_s = CASE WHEN changed_s > ? THEN excluded.changed_s ELSE max(changed_s, excluded.changed_s) END""",
        (chat_id, title, node.created_s, node.created_s, time.time()),
    )
    if title:
        connection.execute("UPDATE chats SET title = ? WHERE id = ? AND title = ''", (title, chat_id))


def _option_ids(connection: sqlite3.Connection) -> Callable[[str], int | None]:
    """Return a function that stores options and returns the id of their row. Equal options share one row."""
    known: dict[str, int] = {}

    def option_id(text: str) -> int | None:
        if not text:
            return None
        if text not in known:
            connection.execute("INSERT OR IGNORE INTO options (json) VALUES (?)", (text,))
            known[text] = int(connection.execute("SELECT id FROM options WHERE json = ?", (text,)).fetchone()[0])
        return known[text]

    return option_id


def _show(connection: sqlite3.Connection, chat_id: str, pairs: Iterable[tuple[str, str]]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO shown (chat_id, parent_id, child_id) VALUES (?, ?, ?)",
        [(chat_id, parent, child) for parent, child in pairs],
    )


def _save_summary(connection: sqlite3.Connection, summary: ChatSummary) -> None:
    connection.execute(
        f"""INSERT INTO chats ({_SUMMARY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET title = excluded.title, folder_id = excluded.folder_id,
        pinned = excluded.pinned, archived = excluded.archived, created_s = excluded.created_s,
        changed_s = max(changed_s, excluded.changed_s), settings = excluded.settings""",
        (
            summary.id,
            rows.storable(summary.title),
            summary.folder_id or None,
            summary.pinned,
            summary.archived,
            summary.created_s,
            summary.changed_s,
            rows.settings_text(summary.settings),
        ),
    )
