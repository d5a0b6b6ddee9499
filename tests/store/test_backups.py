"""A backup a day, checked before it replaces an older one, and never in anyone's way."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from qwendesk.core.errors import StoreFailure
from qwendesk.store.backups import Backup, BackupStopped, backups, is_due, make_backup
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import DamagedStore, Database
from qwendesk.store.opening import FILE_NAME, choose_backup, open_store
from tests.store.chat_nodes import node

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def unchecked(_copy: sqlite3.Connection) -> None:
    pass


def messages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM messages").fetchone()[0])


def test_the_newest_two_are_kept(database: Database) -> None:
    made = [make_backup(database.path, unchecked, NOW + timedelta(days=day)) for day in range(4)]

    assert backups(database.path) == (made[3], made[2])
    assert sorted(path.name for path in database.path.parent.glob("*backup*")) == [
        "chats-backup-20261124-120000.db",
        "chats-backup-20261125-120000.db",
    ]


def test_backup_is_due_after_a_day_or_if_the_clock_was_wrong(database: Database) -> None:
    assert is_due(database.path, NOW)
    make_backup(database.path, unchecked, NOW)
    assert not is_due(database.path, NOW + timedelta(hours=23))
    assert is_due(database.path, NOW + timedelta(days=1))

    for years in (1, 2):
        make_backup(database.path, unchecked, NOW + timedelta(days=365 * years))
    assert is_due(database.path, NOW + timedelta(days=1))
    made = make_backup(database.path, unchecked, NOW + timedelta(days=1))
    assert made in backups(database.path)


def test_messages_are_saved_while_a_backup_is_made(database: Database, store: ChatStore) -> None:
    store.save_node("c", node("q1")).result()

    def write_meanwhile() -> bool:
        store.save_node("c", node("q2")).result()
        return False

    backup = make_backup(database.path, unchecked, NOW, write_meanwhile)

    assert messages(backup.path) == 1
    assert len(store.load("c").nodes) == 2


def test_damaged_file_does_not_replace_a_good_backup(database: Database, store: ChatStore) -> None:
    store.save_node("c", node("q1")).result()
    good = database.back_up()
    assert good is not None

    def refuse(_copy: sqlite3.Connection) -> None:
        raise DamagedStore("Chats are damaged", "")

    with pytest.raises(DamagedStore):
        make_backup(database.path, refuse, NOW)
    with pytest.raises(BackupStopped):
        make_backup(database.path, unchecked, NOW, lambda: True)

    assert backups(database.path) == (good,)
    assert [path.name for path in database.path.parent.glob("*.new*")] == []


def test_closing_interrupts_the_check_of_a_backup(database: Database) -> None:
    is_ending = False

    def endless(copy: sqlite3.Connection) -> None:
        nonlocal is_ending
        is_ending = True
        copy.execute("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")

    with pytest.raises(BackupStopped):
        make_backup(database.path, endless, NOW, lambda: is_ending)
    assert backups(database.path) == ()


def test_folder_that_is_gone_is_a_failure_with_a_sentence(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_path: Path) -> list[Backup]:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("qwendesk.store.backups.backups", gone)
    with pytest.raises(StoreFailure, match="chats folder can't be used"):
        database.back_up()


def test_backup_is_made_once_a_day_if_there_are_chats(database: Database, store: ChatStore) -> None:
    assert database.back_up() is None
    store.save_node("c", node("q1")).result()
    assert database.back_up() is not None
    assert database.back_up() is None


def test_a_chosen_backup_is_used_at_the_next_start(tmp_path: Path) -> None:
    store, _report = open_store(tmp_path)
    assert store is not None
    store.chats.save_node("c", node("q1")).result()
    backup = store.back_up()
    assert backup is not None
    store.chats.save_node("c", node("a1", "q1")).result()
    store.close()
    choose_backup(tmp_path, backup.path.name)

    store, report = open_store(tmp_path)

    assert store is not None
    assert report is not None
    assert report.title == "Backup restored"
    assert list(store.chats.load("c").nodes) == ["q1"]
    store.close()
    (replaced,) = tmp_path.glob(f"replaced-*/{FILE_NAME}")
    assert messages(replaced) == 2
    store, report = open_store(tmp_path)
    assert report is None
    store.close()
