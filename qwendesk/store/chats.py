"""Chats in the database: the list, each one's tree of messages, drafts, and where the reader was.

Reading methods block and are for a worker thread; writing ones return a future at once (see Database.write).
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from operator import itemgetter

import msgspec

from qwendesk.core.chat_tree import ChatNode, ChatTree
from qwendesk.core.chats import (
    ChatSettings,
    ChatSummary,
    DraftFile,
    Folder,
    ReadPosition,
    SavedDraft,
    edits_key,
    title_of_question,
)
from qwendesk.store import rows
from qwendesk.store.database import Database

_SUMMARY = "id, title, folder_id, pinned, archived, created_s, changed_s, settings"
_BELOW = """WITH RECURSIVE below (id) AS (
    SELECT id FROM messages WHERE chat_id = ? AND id = ?
    UNION SELECT messages.id FROM messages JOIN below ON messages.parent_id = below.id
)"""


class ChatStore:
    """All chats of this user."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> tuple[ChatSummary, ...]:
        """Every chat that is not deleted, archived ones too; the one with the newest message first."""

        def work(connection: sqlite3.Connection) -> tuple[ChatSummary, ...]:
            found = connection.execute(f"SELECT {_SUMMARY} FROM chats WHERE deleted_s IS NULL").fetchall()
            # Sorted here: SQLite would carry the whole rows through its sorter, which takes three times as long.
            found.sort(key=itemgetter(6), reverse=True)
            settings = rows.SettingsReader()
            return tuple(rows.summary(row, settings) for row in found)

        return self._database.read(work)

    def summary(self, chat_id: str) -> ChatSummary | None:
        """The chat's row in the list; None when there is no such chat."""

        def work(connection: sqlite3.Connection) -> ChatSummary | None:
            found = connection.execute(
                f"SELECT {_SUMMARY} FROM chats WHERE id = ? AND deleted_s IS NULL", (chat_id,)
            ).fetchone()
            return None if found is None else rows.summary(found, rows.SettingsReader())

        return self._database.read(work)

    def load(self, chat_id: str) -> ChatTree:
        """All messages of a chat; an empty tree when there is no such chat."""

        def work(connection: sqlite3.Connection) -> ChatTree:
            nodes = map(rows.node, connection.execute(rows.SELECT_NODES, (chat_id,)))
            shown = connection.execute("SELECT parent_id, child_id FROM shown WHERE chat_id = ?", (chat_id,))
            return ChatTree({node.id: node for node in nodes}, dict(shown.fetchall()))

        return self._database.read(work)

    def save_node(self, chat_id: str, node: ChatNode, *, growing: bool = False) -> Future[None]:
        """Adds a message and shows it, or replaces the one with its id; makes the chat with its first message.

        A chat without a title gets one from its first question. While `growing` the message is not searchable.
        """
        return self._database.write(lambda connection: _save_nodes(connection, chat_id, (node,), growing=growing))

    def save_nodes(self, chat_id: str, nodes: Sequence[ChatNode]) -> Future[None]:
        """Several messages at once, parents before what follows them."""
        return self._database.write(lambda connection: _save_nodes(connection, chat_id, nodes, growing=False))

    def save_tree(self, summary: ChatSummary, tree: ChatTree) -> Future[None]:
        """A whole chat at once, as it is: for a branch into a new chat, an import, an undo."""

        def work(connection: sqlite3.Connection) -> None:
            _save_summary(connection, summary)
            _save_nodes(connection, summary.id, tuple(tree.nodes.values()), growing=False)
            connection.execute("DELETE FROM shown WHERE chat_id = ?", (summary.id,))
            _show(connection, summary.id, tree.shown.items())
            _save_summary(connection, summary)

        return self._database.write(work)

    def set_shown(self, chat_id: str, parent_id: str, node_id: str) -> Future[None]:
        """Which version is shown below `parent_id` ("" for the chat's first message)."""
        return self._database.write(lambda connection: _show(connection, chat_id, ((parent_id, node_id),)))

    def delete_node(self, chat_id: str, node_id: str) -> Future[None]:
        """Takes this message away with everything that follows it."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(f"{_BELOW} DELETE FROM messages WHERE id IN below", (chat_id, node_id))

        return self._database.write(work)

    def save_summary(self, summary: ChatSummary) -> Future[None]:
        """Adds a chat to the list, or replaces what the list knows of it; its messages stay."""
        return self._database.write(lambda connection: _save_summary(connection, summary))

    def save_row(self, summary: ChatSummary) -> Future[None]:
        """The title, folder and marks of a chat that is there; its settings and times stay as they are."""
        row = (summary.folder_id or None, summary.pinned, summary.archived)
        return self._update(
            summary.id, "title = ?, folder_id = ?, pinned = ?, archived = ?", rows.storable(summary.title), *row
        )

    def save_settings(self, chat_id: str, settings: ChatSettings) -> Future[None]:
        """What the chat has of its own; nothing when the chat has no message yet."""
        return self._update(chat_id, "settings = ?", rows.settings_text(settings))

    def set_deleted(self, chat_ids: Iterable[str], at_s: float | None) -> Future[None]:
        """Hides chats until `purge` (seconds since 1970), or brings them back (None)."""
        marks = [(at_s, chat_id) for chat_id in chat_ids]
        return self._write_many("UPDATE chats SET deleted_s = ? WHERE id = ?", marks)

    def purge(self, before_s: float) -> Future[None]:
        """Ends for good what was deleted before that time, with its drafts."""

        def work(connection: sqlite3.Connection) -> None:
            gone = [row[0] for row in connection.execute("SELECT id FROM chats WHERE deleted_s < ?", (before_s,))]
            keys = [(key,) for chat_id in gone for key in (chat_id, edits_key(chat_id))]
            connection.executemany("DELETE FROM drafts WHERE chat_id = ?", keys)
            connection.execute("DELETE FROM chats WHERE deleted_s < ?", (before_s,))
            connection.execute(
                "DELETE FROM options WHERE NOT EXISTS (SELECT 1 FROM messages WHERE options_id = options.id)"
            )

        return self._database.write(work)

    def known_ids(self, ids: Iterable[str]) -> frozenset[str]:
        """Those that a chat or a message has, deleted chats included."""

        def work(connection: sqlite3.Connection) -> frozenset[str]:
            statement = "SELECT 1 FROM messages WHERE id = ? UNION SELECT 1 FROM chats WHERE id = ?"
            return frozenset(each for each in ids if connection.execute(statement, (each, each)).fetchone())

        return self._database.read(work)

    def folders(self) -> tuple[Folder, ...]:
        """By name."""

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
        """Its chats stay, outside of any folder."""
        return self._write_many("DELETE FROM folders WHERE id = ?", [(folder_id,)])

    def draft(self, chat_id: str) -> SavedDraft:
        """What stood in the composer of this chat ("" for a chat without a message); empty when nothing did."""

        def work(connection: sqlite3.Connection) -> SavedDraft:
            found = connection.execute("SELECT text, pictures FROM drafts WHERE chat_id = ?", (chat_id,)).fetchone()
            if found is None:
                return SavedDraft()
            return SavedDraft(found[0], msgspec.json.decode(found[1], type=tuple[str | DraftFile, ...]))

        return self._database.read(work)

    def save_draft(self, chat_id: str, draft: SavedDraft, at_s: float) -> Future[None]:
        """An empty one is forgotten."""
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
        """A small thing the app wants to know at its next start, such as the last chat; "" if it is not known."""

        def work(connection: sqlite3.Connection) -> str:
            found = connection.execute("SELECT value FROM remembered WHERE key = ?", (key,)).fetchone()
            return "" if found is None else str(found[0])

        return self._database.read(work)

    def remember(self, key: str, value: str) -> Future[None]:
        return self._write_many("INSERT OR REPLACE INTO remembered (key, value) VALUES (?, ?)", [(key, value)])

    def finish_index(self) -> Future[None]:
        """Makes searchable what a crash cut off while it grew."""
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
        _know_chat(connection, chat_id, node)
        known = connection.execute("SELECT 1 FROM messages WHERE id = ?", (node.id,)).fetchone()
        connection.execute(
            rows.SAVE_NODE, rows.values(chat_id, node, option_id(node.options_json), indexed=not growing)
        )
        if known is None:
            _show(connection, chat_id, ((node.parent_id, node.id),))
        connection.execute("DELETE FROM message_attachments WHERE message_id = ?", (node.id,))
        connection.executemany(
            "INSERT OR IGNORE INTO message_attachments (message_id, sha256) VALUES (?, ?)",
            [(node.id, image.sha256) for image in node.message.images],
        )


def _know_chat(connection: sqlite3.Connection, chat_id: str, node: ChatNode) -> None:
    """The chat of a message: there, as new as the message, and with a title if this is its first question."""
    title = rows.storable(title_of_question(node.message)) if not node.parent_id and node.message.role == "user" else ""
    connection.execute(
        """INSERT INTO chats (id, title, created_s, changed_s) VALUES (?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET changed_s = max(changed_s, excluded.changed_s)""",
        (chat_id, title, node.created_s, node.created_s),
    )
    if title:
        connection.execute("UPDATE chats SET title = ? WHERE id = ? AND title = ''", (title, chat_id))


def _option_ids(connection: sqlite3.Connection) -> Callable[[str], int | None]:
    """Answers share their options: most of a chat's were made with the same ones."""
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
