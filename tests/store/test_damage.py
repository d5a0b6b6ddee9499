"""Single kinds of damage that SQLite does not notice by itself, or that need no recovery."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from qwendesk.store.database import damage_mark
from qwendesk.store.opening import FILE_NAME, UNFINISHED, Store, StoreReport, open_store
from tests.store.chat_nodes import node


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a chat with a question and its answer."""
    store, _report = open_store(tmp_path)
    assert store is not None
    store.chats.save_node("c", node("q1", text="Which bird wades in the reeds?")).result()
    store.chats.save_node("c", node("a1", "q1", text="A heron. " * 400)).result()
    store.close()
    return tmp_path / FILE_NAME


def reopened(path: Path) -> tuple[Store, StoreReport | None]:
    store, report = open_store(path.parent)
    assert store is not None, report
    return store, report


def change(path: Path, before: bytes, after: bytes) -> None:
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))


def execute(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement, values)
        connection.commit()


def test_invalid_utf8_byte_replaces_one_character(path: Path) -> None:
    change(path, b"wades in", b"wad\xe9s in")

    store, _report = reopened(path)

    texts = [each.message.text for each in store.chats.load("c").path()]
    assert texts == ["Which bird wad\ufffds in the reeds?", "A heron. " * 400]
    store.close()


@pytest.mark.parametrize("column", ["more", "stats"])
def test_damaged_figures_do_not_hide_the_text(path: Path, column: str) -> None:
    execute(path, f"UPDATE messages SET {column} = '{{]' WHERE id = 'q1'")

    store, _report = reopened(path)

    assert store.chats.load("c").nodes["q1"].message.text == "Which bird wades in the reeds?"
    store.close()


def flip_encoding(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[59] = 2
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "is_all_readable"),
    [
        (lambda path: change(path, b"CREATE TABLE folders", b"CREATE TABLE f\xfflders"), True),
        (lambda path: change(path, b"reasoning TEXT", b"reasoming TEXT"), True),
        (lambda path: execute(path, "PRAGMA user_version = 0"), True),
        (lambda path: execute(path, "UPDATE messages SET role = x'ff00'"), False),
        (flip_encoding, True),
    ],
    ids=["byte in the schema", "name of a column", "version", "type of a value", "encoding"],
)
def test_damage_that_sqlite_accepts_is_found(path: Path, damage: Callable[[Path], None], is_all_readable: bool) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (2,)
    damage(path)

    store, report = reopened(path)

    assert report is not None
    assert "recovered 1 chat with 2 messages" in report.sentence
    assert ("Nothing was lost." in report.sentence) == is_all_readable
    found = [(each.message.role, each.message.text) for each in store.chats.load("c").path()]
    assert found == [("user", "Which bird wades in the reeds?"), ("assistant", "A heron. " * 400)]
    store.close()


def test_empty_file_counts_as_damaged(path: Path) -> None:
    path.write_bytes(b"")

    store, report = reopened(path)

    assert report is not None
    assert "was empty" in report.sentence
    assert "There is no backup" in report.sentence
    store.close()


@pytest.mark.parametrize("lost", [lambda path: path.write_bytes(b""), lambda path: path.unlink()])
def test_lost_file_is_recovered_from_the_backup(path: Path, lost: Callable[[Path], object]) -> None:
    store, _report = reopened(path)
    assert store.back_up() is not None
    store.close()
    lost(path)

    store, report = reopened(path)

    assert report is not None
    assert "From the backup of" in report.sentence
    assert "1 chat, 2 messages" in report.sentence
    assert [each.id for each in store.chats.load("c").path()] == ["q1", "a1"]
    store.close()


def damage_index(path: Path) -> None:
    """Bits of the index flip, in a place that its checksums and not its pages tell."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT id, block FROM messages_fts_data WHERE id > 10").fetchall()
        for row, block in rows:
            connection.execute("UPDATE messages_fts_data SET block = ? WHERE id = ?", (b"\xff" * len(block), row))
        connection.commit()


def test_damaged_search_index_is_rebuilt_while_searching(path: Path) -> None:
    store, _report = reopened(path)
    damage_index(path)

    store.chats.save_node("c", node("q2", "a1", text="And the kingfisher?")).result()

    assert [hit.node_id for hit in store.search.find("heron") if hit.node_id] == ["a1"]
    assert [hit.node_id for hit in store.search.find("kingfisher") if hit.node_id] == ["q2"]
    store.close()
    store, report = reopened(path)
    assert report is None
    store.close()


def test_a_damaged_search_index_is_rebuilt_at_the_start(path: Path) -> None:
    damage_index(path)
    execute(path, "UPDATE messages_fts_data SET block = ? WHERE id = 10", b"\xff" * 13)

    store, report = reopened(path)

    assert report is None
    assert [hit.node_id for hit in store.search.find("heron") if hit.node_id] == ["a1"]
    store.close()


def test_marked_file_is_recovered_at_the_next_start(path: Path) -> None:
    damage_mark(path).touch()

    store, report = reopened(path)
    store.close()

    assert report is not None
    assert "Nothing was lost." in report.sentence
    store, report = reopened(path)
    assert report is None
    store.close()


def test_unfinished_new_file_is_not_used(path: Path) -> None:
    """The app was killed while it recovered a missing file from its backup."""
    store, _report = reopened(path)
    assert store.back_up() is not None
    store.close()
    path.rename(path.with_name(UNFINISHED))
    execute(path.with_name(UNFINISHED), "DELETE FROM messages")

    store, _report = reopened(path)

    assert [each.id for each in store.chats.load("c").path()] == ["q1", "a1"]
    store.close()
