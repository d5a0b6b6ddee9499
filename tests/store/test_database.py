"""The file: its versions, its checks, and what is said when it cannot be used."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from qwendesk.core.errors import StoreFailure
from qwendesk.store import database as database_module
from qwendesk.store.backups import backups
from qwendesk.store.database import DamagedStore, Database, NewerStore, connect
from qwendesk.store.migrations import MIGRATIONS


def add_colour(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE folders ADD COLUMN colour TEXT NOT NULL DEFAULT ''")


def break_off(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE half (x)")
    connection.execute("this is no SQL")


def value(path: Path, statement: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchone()[0]


def made(path: Path) -> Path:
    database = Database(path)
    database.write(
        lambda connection: connection.execute("INSERT INTO folders (id, name) VALUES ('f', 'Work')")
    ).result()
    database.close()
    return path


def test_database_uses_the_safest_sqlite_settings(database: Database) -> None:
    def settings(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    # Inside a transaction, as every write is; 2 is FULL.
    assert database.write(settings).result() == ["wal", 2, 1]


def test_older_file_is_backed_up_and_migrated(tmp_path: Path) -> None:
    path = made(tmp_path / "chats.db")

    Database(path, (*MIGRATIONS, add_colour)).close()

    assert value(path, "SELECT name || colour FROM folders") == "Work"
    (copy,) = (backup.path for backup in backups(path))
    assert value(copy, "PRAGMA user_version") == len(MIGRATIONS)
    assert value(copy, "SELECT name FROM folders") == "Work"


def test_new_file_is_not_backed_up(tmp_path: Path) -> None:
    Database(tmp_path / "chats.db").close()

    assert [path.name for path in tmp_path.iterdir()] == ["chats.db"]


def test_failed_migration_keeps_the_previous_version(tmp_path: Path) -> None:
    path = made(tmp_path / "chats.db")

    with pytest.raises(StoreFailure):
        Database(path, (*MIGRATIONS, add_colour, break_off))

    assert value(path, "PRAGMA user_version") == len(MIGRATIONS) + 1
    assert value(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == 0


def test_newer_file_is_refused_unchanged(tmp_path: Path) -> None:
    path = made(tmp_path / "chats.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()

    with pytest.raises(NewerStore, match="Update QwenDesk"):
        Database(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough" * 200])
def test_file_that_is_not_a_database_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "chats.db"
    path.write_bytes(content)

    if content:
        with pytest.raises(DamagedStore):
            Database(path)
    else:
        Database(path).close()
        assert value(path, "PRAGMA user_version") == len(MIGRATIONS)


def test_failed_write_is_rolled_back(database: Database) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO folders (id, name) VALUES ('f', 'Work')")
        connection.execute("INSERT INTO folders (id, name) VALUES ('f', 'Again')")

    with pytest.raises(StoreFailure):
        database.write(half).result()

    assert database.read(lambda connection: connection.execute("SELECT count(*) FROM folders").fetchone()[0]) == 0


def test_readers_cannot_write_and_see_no_partial_write(database: Database) -> None:
    with pytest.raises(StoreFailure):
        database.read(lambda connection: connection.execute("INSERT INTO folders (id, name) VALUES ('f', 'x')"))

    def look_meanwhile(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO folders (id, name) VALUES ('f', 'x')")
        return database.read(lambda reader: reader.execute("SELECT count(*) FROM folders").fetchone()[0])

    assert database.write(look_meanwhile).result() == 0


def test_unusable_folder_raises_store_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreFailure, match="can't be used"):
        Database(tmp_path / "file" / "chats.db")


def test_closed_database_refuses_writes(tmp_path: Path) -> None:
    database = Database(tmp_path / "chats.db")
    database.close()

    with pytest.raises(StoreFailure, match="is closing"):
        database.write(lambda connection: None)


OLDEST = Path(__file__).with_name("schema_1.sql")
"""A database of version 1 as it was released, with a chat in it. Never edited."""


def test_oldest_schema_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLDEST.read_text(encoding="utf-8"))
        more = '{"parts":[{"type":"document","name":"lease.pdf","text":"The tenant keeps a heron."}]}'
        connection.execute(
            """INSERT INTO messages (id, chat_id, parent_id, role, text, more, created_s, indexed)
            VALUES ('q2', 'c', 'a1', 'user', 'lease.pdf', ?, 3.0, 1)""",
            (more,),
        )
        connection.commit()

    database = Database(path)

    from qwendesk.store.chats import ChatStore
    from qwendesk.store.search import ChatSearch

    (chat,) = ChatStore(database).list()
    assert chat.title == "Why is the sky blue?"
    assert [node.message.text for node in ChatStore(database).load(chat.id).path()][:2] == [
        "Why is the sky blue?",
        "Air.",
    ]
    assert [hit.node_id for hit in ChatSearch(database).find("air")] == ["a1"]
    (hit,) = ChatSearch(database).find("heron")
    assert (hit.node_id, hit.in_document) == ("q2", True)
    assert value(path, "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'lease'") == 1
    database.close()


def test_second_start_waits_while_the_file_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chats.db"
    second_waits = threading.Event()
    opened: list[Database] = []
    second = threading.Thread(target=lambda: opened.append(Database(path)))

    def traced(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        if threading.current_thread() is not first:
            connection.set_trace_callback(lambda text: second_waits.set() if text.startswith("BEGIN") else None)
        return connection

    first: threading.Thread | None = None

    def slow(connection: sqlite3.Connection) -> None:
        nonlocal first
        first = threading.current_thread()
        monkeypatch.setattr(database_module, "connect", traced)
        second.start()
        assert second_waits.wait(120)
        MIGRATIONS[0](connection)

    opened.append(Database(path, (slow, *MIGRATIONS[1:])))
    second.join()

    assert len(opened) == 2
    for each in opened:
        each.close()
    assert value(path, "PRAGMA user_version") == len(MIGRATIONS)
