"""Version 2: the text of attached documents is searched too.

`documents` is a copy of what stands in `more`, and empty for nearly every message. It has an index of its own, so that
the one of the messages need not be made anew: that would take long for years of chats.
"""

import sqlite3

FILL = """UPDATE messages SET documents = coalesce((
        SELECT group_concat(json_extract(part.value, '$.text'), char(10) || char(10))
        FROM json_each(messages.more, '$.parts') AS part WHERE json_extract(part.value, '$.type') = 'document'
    ), '') WHERE documents = '' AND more LIKE '%"document"%' AND json_valid(more)"""
"""Puts the copy where it is missing."""

STATEMENTS = (
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
    FILL,
)


def apply(connection: sqlite3.Connection) -> None:
    """From version 1 to version 2, inside the caller's transaction."""
    for statement in STATEMENTS:
        connection.execute(statement)
