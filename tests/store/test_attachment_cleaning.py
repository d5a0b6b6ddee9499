"""Cleaning moves files without a row to a dated folder, and it stays inside the attachments folder."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from qwendesk.store.attachments import KEEP_REMOVED, REMOVED, AttachmentStore, Cleaning, clean_attachments
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import Database
from qwendesk.store.opening import ATTACHMENTS, open_store
from tests.links import skip_without_links
from tests.store.attachment_files import make_old, own_name, picture, question

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ATTACHMENTS


def orphan(folder: Path, letter: str = "a") -> Path:
    path = folder / own_name(letter)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(letter.encode())
    make_old(path)
    return path


def clean(database: Database, folder: Path, now: datetime = NOW) -> Cleaning:
    return database.write(lambda connection: clean_attachments(connection, folder, now)).result()


def test_a_file_without_a_row_is_kept_for_30_days(database: Database, folder: Path) -> None:
    path = orphan(folder)
    moved = folder.with_name(REMOVED) / "2026-11-22" / path.name

    assert clean(database, folder) == Cleaning(moved=1)
    assert (path.exists(), moved.read_bytes()) == (False, b"a")

    clean(database, folder, NOW + KEEP_REMOVED)
    assert moved.exists()
    clean(database, folder, NOW + KEEP_REMOVED + timedelta(days=1))
    assert not moved.parent.exists()


def test_file_being_saved_is_kept(database: Database, folder: Path) -> None:
    path = orphan(folder)
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))

    assert clean(database, folder) == Cleaning()
    assert path.exists()


def test_moved_file_returns_when_referenced_again(database: Database, folder: Path, tmp_path: Path) -> None:
    attachments, chats = AttachmentStore(database, folder), ChatStore(database)
    image = picture(tmp_path / "cat.png")
    kept = attachments.save_copy(image).result()
    chats.save_node("c", question(image)).result()
    rows = database.read(lambda connection: connection.execute("SELECT * FROM attachments").fetchall())
    database.write(lambda connection: connection.execute("DELETE FROM attachments")).result()
    make_old(kept)
    assert clean(database, folder) == Cleaning(moved=1)

    database.write(lambda connection: connection.executemany("INSERT INTO attachments VALUES (?, ?, ?, ?)", rows))

    assert clean(database, folder) == Cleaning(restored=1)
    (shown,) = attachments.with_copies(chats.load("c")).nodes["q1"].message.images
    assert Path(shown.path).read_bytes() == b"original bytes"


@pytest.mark.parametrize(
    "name", ["photo.png", "aa/photo.png", "aa/deep/photo.png", f"zz/{'a' * 64}.png", f"bb/{'a' * 64}", f"aa/{'A' * 64}"]
)
def test_files_with_other_names_are_left_alone(database: Database, folder: Path, name: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not ours")
    make_old(path)

    assert clean(database, folder) == Cleaning()
    assert path.read_bytes() == b"not ours"


@pytest.mark.parametrize("linked", ["", "aa", own_name("a"), "../attachments-removed"])
def test_nothing_is_deleted_through_a_link(database: Database, folder: Path, tmp_path: Path, linked: str) -> None:
    skip_without_links(tmp_path)
    elsewhere = tmp_path / "larger drive"
    foreign = elsewhere / (own_name("a") if not linked else f"2020-01-01/{'a' * 64}" if ".." in linked else "a" * 64)
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"thesis")
    make_old(foreign)
    place = folder / linked if linked else folder
    (folder / "../x").resolve().parent.mkdir(exist_ok=True)
    if linked:
        folder.mkdir()
        place.parent.mkdir(exist_ok=True)
    Path(os.path.normpath(place)).symlink_to(foreign if linked == own_name("a") else elsewhere)

    clean(database, folder)

    assert foreign.read_bytes() == b"thesis"


def test_linked_attachments_folder_is_reported_once(tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    (tmp_path / "drive").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ATTACHMENTS).symlink_to(tmp_path / "drive")
    told = []
    for _ in range(2):
        store, report = open_store(tmp_path / "data")
        store.close()
        told.append(report)

    assert told[0] is not None
    assert str(tmp_path / "drive") in told[0].sentence
    assert told[1] is None


def test_link_at_the_folder_of_removed_files_is_not_written_through(database: Database, folder: Path) -> None:
    skip_without_links(folder.parent)
    path = orphan(folder)
    drive = folder.with_name("drive")
    drive.mkdir()
    folder.with_name(REMOVED).symlink_to(drive, target_is_directory=True)
    assert clean(database, folder) == Cleaning()
    assert path.exists()
    assert list(drive.iterdir()) == []
