"""The database, what SQLite keeps beside it, and attachments are for this user alone, also under a generous umask."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.store.database import Database
from qwendesk.store.migrations import MIGRATIONS
from qwendesk.store.opening import open_store
from tests.store.attachment_files import picture, question

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists, which are inherited")


@pytest.fixture(autouse=True, params=[0o022, 0o002], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "data_folder", lambda: tmp_path / "QwenDesk")
    return tmp_path / "QwenDesk"


def open_to_others(folder: Path) -> list[str]:
    found = ((path, stat.S_IMODE(path.lstat().st_mode)) for path in (folder, *folder.rglob("*")))
    return [f"{path} {mode:o}" for path, mode in found if mode & 0o077]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_chats_and_pictures_are_private(data: Path, tmp_path: Path) -> None:
    store, report = open_store(data)
    assert store is not None, report
    image = picture(tmp_path / "photo.png")
    try:
        store.chats.save_node("c1", question(image)).result()
        store.attachments.save_copy(image).result()
        assert {"chats.db", "chats.db-wal", "chats.db-shm"} < names(data)
        assert open_to_others(data) == []
    finally:
        store.close()
    assert open_to_others(data) == []


def test_recovered_and_damaged_files_are_private(data: Path) -> None:
    store, _ = open_store(data)
    assert store is not None
    store.close()
    content = bytearray((data / "chats.db").read_bytes())
    content[100:2000] = b"\xaa" * 1900
    (data / "chats.db").write_bytes(content)
    store, report = open_store(data)
    assert store is not None, report
    try:
        assert any(path.name.startswith("damaged-") for path in data.iterdir())
        assert open_to_others(data) == []
    finally:
        store.close()


def test_backup_before_a_migration_is_private(data: Path) -> None:
    Database(data / "chats.db", MIGRATIONS[:1]).close()
    Database(data / "chats.db").close()
    assert any("backup" in name for name in names(data))
    assert open_to_others(data) == []


def test_a_planted_link_is_not_written_through(data: Path, tmp_path: Path) -> None:
    """Copies go to a known name, at which somebody may have put a link."""
    victim = tmp_path / "thesis.txt"
    victim.write_text("thesis", encoding="utf-8")
    image = picture(tmp_path / "photo.png")
    store, _ = open_store(data)
    assert store is not None
    try:
        planted = store.attachments.folder / image.sha256[:2] / f"{image.sha256}.png.new"
        planted.parent.mkdir(parents=True)
        planted.symlink_to(victim)
        kept = store.attachments.save_copy(image).result()
        assert kept is not None
        assert not kept.is_symlink()
        assert victim.read_text(encoding="utf-8") == "thesis"
    finally:
        store.close()
