-- A database of version 1 as it was released. Never edited: it proves that today's app reads it.
CREATE TABLE folders (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, position INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE chats (
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
);
CREATE INDEX chats_by_change ON chats (changed_s);
CREATE INDEX chats_by_folder ON chats (folder_id);
CREATE TABLE options (
    id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE
);
CREATE TABLE messages (
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
);
CREATE INDEX messages_of_chat ON messages (chat_id, seq);
CREATE INDEX messages_by_parent ON messages (parent_id);
CREATE INDEX messages_by_options ON messages (options_id);
CREATE INDEX messages_unindexed ON messages (indexed) WHERE indexed = 0;
CREATE TABLE shown (
    chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    parent_id TEXT NOT NULL,
    child_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    PRIMARY KEY (chat_id, parent_id)
) WITHOUT ROWID;
CREATE INDEX shown_by_child ON shown (child_id);
CREATE TABLE attachments (
    sha256 TEXT PRIMARY KEY, file TEXT NOT NULL, size_bytes INTEGER NOT NULL, created_s REAL NOT NULL
);
CREATE TABLE message_attachments (
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (message_id, sha256)
) WITHOUT ROWID;
CREATE INDEX message_attachments_by_hash ON message_attachments (sha256);
CREATE TABLE drafts (
    chat_id TEXT PRIMARY KEY, text TEXT NOT NULL, pictures TEXT NOT NULL DEFAULT '[]', saved_s REAL NOT NULL
);
CREATE TABLE remembered (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    text, reasoning, content = 'messages', content_rowid = 'seq',
    tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);
CREATE VIRTUAL TABLE chats_fts USING fts5 (
    title, content = 'chats', content_rowid = 'seq',
    tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages WHEN new.indexed BEGIN
    INSERT INTO messages_fts (rowid, text, reasoning) VALUES (new.seq, new.text, new.reasoning);
END;
CREATE TRIGGER messages_fts_update AFTER UPDATE OF text, reasoning, indexed ON messages BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, reasoning)
    SELECT 'delete', old.seq, old.text, old.reasoning WHERE old.indexed;
    INSERT INTO messages_fts (rowid, text, reasoning) SELECT new.seq, new.text, new.reasoning WHERE new.indexed;
END;
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages WHEN old.indexed BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, reasoning)
    VALUES ('delete', old.seq, old.text, old.reasoning);
END;
CREATE TRIGGER chats_fts_insert AFTER INSERT ON chats BEGIN
    INSERT INTO chats_fts (rowid, title) VALUES (new.seq, new.title);
END;
CREATE TRIGGER chats_fts_update AFTER UPDATE OF title ON chats BEGIN
    INSERT INTO chats_fts (chats_fts, rowid, title) VALUES ('delete', old.seq, old.title);
    INSERT INTO chats_fts (rowid, title) VALUES (new.seq, new.title);
END;
CREATE TRIGGER chats_fts_delete AFTER DELETE ON chats BEGIN
    INSERT INTO chats_fts (chats_fts, rowid, title) VALUES ('delete', old.seq, old.title);
END;
INSERT INTO chats (seq, id, title, created_s, changed_s, settings) VALUES (1, 'c', 'Why is the sky blue?', 1.0, 2.0, '{}');
INSERT INTO options (id, json) VALUES (1, '{"seed":7}');
INSERT INTO messages (seq, id, chat_id, parent_id, role, text, created_s, indexed)
VALUES (1, 'q1', 'c', NULL, 'user', 'Why is the sky blue?', 1.0, 1);
INSERT INTO messages (seq, id, chat_id, parent_id, role, text, reasoning, created_s, stop_reason, stats, thought_s, model, options_id, indexed)
VALUES (2, 'a1', 'c', 'q1', 'assistant', 'Air.', 'Hm.', 2.0, 'eos', '{"prompt_tokens":7}', 0.5, 'Demo', 1, 1);
INSERT INTO shown (chat_id, parent_id, child_id) VALUES ('c', '', 'q1'), ('c', 'q1', 'a1');
PRAGMA user_version = 1;
