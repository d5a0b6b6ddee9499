"""Migrations of the database, one numbered step for each release that changed it.

Only add steps: a released step must never be edited, because users have databases that it created. Step N leads from
version N - 1 to version N, which SQLite stores as `user_version`. An empty file has version 0.
"""

import sqlite3
from collections.abc import Callable

# Makes one step inside the caller's transaction.
Migration = Callable[[sqlite3.Connection], None]

# Chats, folders, the tree of messages, attachments, drafts, and full-text search.
#
# Ids are texts that the app creates, so that they survive export and import. `seq` is the order in which rows were
# inserted, and the search index refers to it. Parents of messages are checked at the end of a transaction. Deleting one
# doesn't cascade, because SQLite stops a cascade after 1,000 steps and a chat may be longer.
_VERSION_1 = (
    """CREATE TABLE folders (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, position INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE chats (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL DEFAULT '',
        folder_id TEXT REFERENCES folders (id) ON DELETE SET NULL,
        pinned INTEGER NOT NULL DEFAULT 0,
        archived INTEGER NOT NULL DEFAULT 0,
        created_s REAL NOT NULL,
        changed_s REAL NOT NULL,
        deleted_s REAL,
        settings TEXT NOT NULL DEFAULT '{}',
        read_node_id TEXT NOT NULL DEFAULT '',
        read_section INTEGER NOT NULL DEFAULT 0,
        read_offset REAL NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX chats_by_change ON chats (changed_s)",
    "CREATE INDEX chats_by_folder ON chats (folder_id)",
    """CREATE TABLE options (
        id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE
    )""",
    """CREATE TABLE messages (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        parent_id TEXT REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        reasoning TEXT NOT NULL DEFAULT '',
        more TEXT NOT NULL DEFAULT '',
        created_s REAL NOT NULL,
        stop_reason TEXT,
        stats TEXT NOT NULL DEFAULT '',
        thought_s REAL NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT '',
        options_id INTEGER REFERENCES options (id),
        indexed INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX messages_of_chat ON messages (chat_id, seq)",
    "CREATE INDEX messages_by_parent ON messages (parent_id)",
    "CREATE INDEX messages_by_options ON messages (options_id)",
    "CREATE INDEX messages_unindexed ON messages (indexed) WHERE indexed = 0",
    """CREATE TABLE shown (
        chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        parent_id TEXT NOT NULL,
        child_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        PRIMARY KEY (chat_id, parent_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX shown_by_child ON shown (child_id)",
    """CREATE TABLE attachments (
        sha256 TEXT PRIMARY KEY, file TEXT NOT NULL, size_bytes INTEGER NOT NULL, created_s REAL NOT NULL
    )""",
    """CREATE TABLE message_attachments (
        message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (message_id, sha256)
    ) WITHOUT ROWID""",
    "CREATE INDEX message_attachments_by_hash ON message_attachments (sha256)",
    """CREATE TABLE drafts (
        chat_id TEXT PRIMARY KEY, text TEXT NOT NULL, pictures TEXT NOT NULL DEFAULT '[]', saved_s REAL NOT NULL
    )""",
    "CREATE TABLE remembered (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE VIRTUAL TABLE messages_fts USING fts5 (
        text, reasoning, content = 'messages', content_rowid = 'seq',
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
    )""",
    """CREATE VIRTUAL TABLE chats_fts USING fts5 (
        title, content = 'chats', content_rowid = 'seq',
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
    )""",
    # A message is not indexed while it is generated: indexing it twice a second would cost more than it helps.
    """CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages WHEN new.indexed BEGIN
        INSERT INTO messages_fts (rowid, text, reasoning) VALUES (new.seq, new.text, new.reasoning);
    END""",
    """CREATE TRIGGER messages_fts_update AFTER UPDATE OF text, reasoning, indexed ON messages BEGIN
        INSERT INTO messages_fts (messages_fts, rowid, text, reasoning)
        SELECT 'delete', old.seq, old.text, old.reasoning WHERE old.indexed;
        INSERT INTO messages_fts (rowid, text, reasoning) SELECT new.seq, new.text, new.reasoning WHERE new.indexed;
    END""",
    """CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages WHEN old.indexed BEGIN
        INSERT INTO messages_fts (messages_fts, rowid, text, reasoning)
        VALUES ('delete', old.seq, old.text, old.reasoning);
    END""",
    """CREATE TRIGGER chats_fts_insert AFTER INSERT ON chats BEGIN
        INSERT INTO chats_fts (rowid, title) VALUES (new.seq, new.title);
    END""",
    """CREATE TRIGGER chats_fts_update AFTER UPDATE OF title ON chats BEGIN
        INSERT INTO chats_fts (chats_fts, rowid, title) VALUES ('delete', old.seq, old.title);
        INSERT INTO chats_fts (rowid, title) VALUES (new.seq, new.title);
    END""",
    """CREATE TRIGGER chats_fts_delete AFTER DELETE ON chats BEGIN
        INSERT INTO chats_fts (chats_fts, rowid, title) VALUES ('delete', old.seq, old.title);
    END""",
)

# Fills `documents` in rows where it is missing.
FILL_DOCUMENTS = """UPDATE messages SET documents = coalesce((
        SELECT group_concat(json_extract(part.value, '$.text'), char(10) || char(10))
        FROM json_each(messages.more, '$.parts') AS part WHERE json_extract(part.value, '$.type') = 'document'
    ), '') WHERE documents = '' AND more LIKE '%"document"%' AND json_valid(more)"""

# The text of attached documents can be searched too.
#
# `documents` is a copy of text in `more`, and is empty for nearly every message. It has its own index, so that the
# index of messages needn't be rebuilt, which would take long for years of chats.
_VERSION_2 = (
    "ALTER TABLE messages ADD COLUMN documents TEXT NOT NULL DEFAULT ''",
    """CREATE VIRTUAL TABLE documents_fts USING fts5 (
        documents, content = 'messages', content_rowid = 'seq',
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
    )""",
    """CREATE TRIGGER documents_fts_insert AFTER INSERT ON messages WHEN new.documents <> '' BEGIN
        INSERT INTO documents_fts (rowid, documents) VALUES (new.seq, new.documents);
    END""",
    """CREATE TRIGGER documents_fts_update AFTER UPDATE OF documents ON messages
    WHEN new.documents <> old.documents BEGIN
        INSERT INTO documents_fts (documents_fts, rowid, documents)
        SELECT 'delete', old.seq, old.documents WHERE old.documents <> '';
        INSERT INTO documents_fts (rowid, documents) SELECT new.seq, new.documents WHERE new.documents <> '';
    END""",
    """CREATE TRIGGER documents_fts_delete AFTER DELETE ON messages WHEN old.documents <> '' BEGIN
        INSERT INTO documents_fts (documents_fts, rowid, documents) VALUES ('delete', old.seq, old.documents);
    END""",
    FILL_DOCUMENTS,
)


def _migrate_to_1(connection: sqlite3.Connection) -> None:
    _execute(connection, _VERSION_1)


def _migrate_to_2(connection: sqlite3.Connection) -> None:
    _execute(connection, _VERSION_2)


def _execute(connection: sqlite3.Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)


MIGRATIONS: tuple[Migration, ...] = (_migrate_to_1, _migrate_to_2)
