"""A damaged file is set aside, said, and read as far as it can be."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from qwendesk.core.chats import ChatSettings, ChatSummary, SavedDraft
from qwendesk.core.errors import StoreFailure
from qwendesk.store import opening, recovery
from qwendesk.store.opening import FILE_NAME, open_store
from qwendesk.store.recovery import set_aside
from tests.store.chat_nodes import node

CHATS, MESSAGES = 40, 30


def fill(folder: Path) -> Path:
    store, _report = open_store(folder)
    for chat in range(CHATS):
        name = f"c{chat}"
        settings = ChatSettings(system_prompt="Be brief.")
        store.chats.save_summary(ChatSummary(id=name, title=f"Title {chat}", settings=settings))
        parent = ""
        for number in range(MESSAGES):
            made = node(f"{'a' if number % 2 else 'q'}{chat}-{number}", parent, text=f"message {number} " * 40)
            store.chats.save_node(name, made)
            parent = made.id
    store.chats.save_draft("c0", SavedDraft("half a question"), 1.0)
    store.close()
    return folder / FILE_NAME


def spoil(path: Path, table: str, share: float) -> None:
    """Overwrites a page in the middle of this table, as a bad sector does."""
    with closing(sqlite3.connect(path)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        pages = [
            row[0]
            for row in connection.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno", (table,)
            )
        ]
    page = pages[int(len(pages) * share)]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def has_dbstat() -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT 1 FROM dbstat LIMIT 1")
        except sqlite3.OperationalError:
            return False
    return True


@pytest.mark.skipif(not has_dbstat(), reason="this SQLite cannot say where a table's pages are")
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_damaged_page_loses_only_its_own_rows(tmp_path: Path, share: float) -> None:
    path = fill(tmp_path)
    spoil(path, "messages", share)

    store, report = open_store(tmp_path)

    assert report is not None
    assert "damaged" in report.sentence
    chats = store.chats.list()
    assert {chat.title for chat in chats} == {f"Title {number}" for number in range(CHATS)}
    trees = [store.chats.load(chat.id) for chat in chats]
    assert CHATS * MESSAGES - 40 < sum(len(tree.nodes) for tree in trees) < CHATS * MESSAGES
    assert sum(len(tree.path()) for tree in trees) > CHATS * MESSAGES - 40
    assert store.search.find("message 29")
    assert store.chats.draft("c0") == SavedDraft("half a question")
    assert chats[0].settings.system_prompt == "Be brief."
    store.close()
    assert [each.name for each in tmp_path.glob("damaged-*/chats.db")] == ["chats.db"]
    assert open_and_report(tmp_path) is None


@pytest.mark.skipif(not has_dbstat(), reason="this SQLite cannot say where a table's pages are")
def test_chats_with_lost_rows_are_titled_by_their_first_question(tmp_path: Path) -> None:
    path = fill(tmp_path)
    spoil(path, "chats", 0.0)

    store, report = open_store(tmp_path)

    assert report is not None
    chats = store.chats.list()
    assert len(chats) == CHATS
    assert sum(len(store.chats.load(chat.id).nodes) for chat in chats) == CHATS * MESSAGES
    assert any(chat.title.startswith("message 0") for chat in chats)
    store.close()


@pytest.mark.parametrize("content", [b"\xff" * 100_000, b"SQLite format 3\0" + b"\xff" * 50_000])
def test_unreadable_file_is_set_aside_for_a_new_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)

    store, report = open_store(tmp_path)

    assert report is not None
    assert "0 chats" in report.sentence
    store.chats.save_node("c", node("q1")).result()
    store.close()
    (kept,) = tmp_path.glob("damaged-*/chats.db")
    assert kept.read_bytes() == content


def test_interrupted_recovery_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fill(tmp_path)
    path.write_bytes(path.read_bytes()[:-40_000])
    damaged = path.read_bytes()

    def full_disk(*_args: object) -> None:
        raise StoreFailure("Chats not saved", "The disk is full. Free some space.")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(recovery, "recover", full_disk)
        store, report = open_store(tmp_path)
    assert store is None
    assert report is not None
    assert "disk is full" in report.sentence
    assert path.read_bytes() == damaged, "it must lie where the next start looks for it"

    def power_cut(_path: Path) -> None:
        if not path.exists() and list(tmp_path.glob("damaged-*")):
            raise KeyboardInterrupt

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(opening, "finish_recovery", power_cut)
        with pytest.raises(KeyboardInterrupt):
            open_store(tmp_path)
    assert not path.exists()

    store, report = open_store(tmp_path)
    assert report is None
    assert len(store.chats.list()) >= CHATS // 2
    store.close()


def test_truncated_file_yields_its_readable_half(tmp_path: Path) -> None:
    path = fill(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])

    store, report = open_store(tmp_path)

    assert report is not None
    assert sum(len(store.chats.load(chat.id).nodes) for chat in store.chats.list()) > MESSAGES
    store.close()


def test_file_of_a_newer_version_is_not_changed(tmp_path: Path) -> None:
    path = fill(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")

    store, report = open_store(tmp_path)

    assert store is None
    assert report is not None
    assert "newer version of QwenDesk" in report.sentence
    assert not list(tmp_path.glob("damaged-*"))


def test_two_recoveries_in_one_second_use_two_folders(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    folders = []
    for _ in range(2):
        (tmp_path / FILE_NAME).touch()
        folders.append(set_aside(tmp_path / FILE_NAME, now).name)

    assert folders == ["damaged-20260102-030405", "damaged-20260102-030405-2"]


def open_and_report(folder: Path) -> object:
    store, report = open_store(folder)
    store.close()
    return report
