"""Importing: all files in place and verified, or nothing changed."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.core.files import locked
from qwendesk.hub import model_import
from qwendesk.hub.model_import import Imported, ImportItem, NotImported, import_files

BIG = 3 * model_import._CHUNK_BYTES + 5


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "from" / "m.gguf"
    path.parent.mkdir()
    path.write_bytes(os.urandom(BIG))
    return path


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "models" / "o" / "r" / "m.gguf"


@pytest.fixture
def two_drives(monkeypatch):
    """As if the models folder lay on another drive than the source."""
    monkeypatch.setattr(model_import, "_same_drive", lambda source, folder: False)


def item(source: Path, target: Path, how="copy") -> ImportItem:
    return ImportItem(str(source), str(target), how)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")
    }


def test_copy_is_verified_and_source_is_kept(source, target):
    seen = []
    outcome = import_files([item(source, target)], progress=lambda done, total: seen.append((done, total)))
    content = source.read_bytes()
    assert outcome == Imported((str(target),), BIG, (hashlib.sha256(content).hexdigest(),))
    assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["m.gguf"]
    assert seen[-1] == (2 * BIG, 2 * BIG)
    assert seen == sorted(seen)


def test_move_on_one_drive_copies_nothing(source, target):
    before = source.stat().st_ino
    outcome = import_files([item(source, target, "move")])
    assert outcome == Imported((str(target),), BIG, ("",))
    assert target.stat().st_ino == before
    assert not source.exists()


@pytest.mark.usefixtures("two_drives")
def test_a_move_between_drives_deletes_the_source_after_verifying(source, target):
    content = source.read_bytes()
    outcome = import_files([item(source, target, "move")])
    assert isinstance(outcome, Imported)
    assert outcome.sha256 == (hashlib.sha256(content).hexdigest(),)
    assert target.read_bytes() == content
    assert not source.exists()


@pytest.mark.parametrize("how", ["copy", "move"])
@pytest.mark.parametrize("asked_before", range(7))
@pytest.mark.usefixtures("two_drives")
def test_import_cancelled_at_any_point_changes_nothing(tmp_path, source, target, how, asked_before):
    before = everything_in(tmp_path)
    asked = iter([False] * asked_before + [True] * 100)
    outcome = import_files([item(source, target, how)], cancelled=lambda: next(asked))
    assert isinstance(outcome, NotImported)
    assert outcome.cancelled
    assert everything_in(tmp_path) == before


def test_split_set_is_imported_completely_or_not_at_all(tmp_path, source, target):
    second = source.with_name("n.gguf")
    second.write_bytes(b"second")
    taken = target.with_name("n.gguf")
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"already here")
    before = everything_in(tmp_path)
    outcome = import_files([item(source, target, "move"), item(second, taken, "move")])
    assert isinstance(outcome, NotImported)
    assert "already exists" in outcome.sentence
    assert everything_in(tmp_path) == before


def test_file_created_meanwhile_is_kept_and_renames_are_undone(tmp_path, source, target):
    second, taken = source.with_name("n.gguf"), target.with_name("n.gguf")
    second.write_bytes(b"second")

    def appear(done: int, total: int) -> None:
        taken.write_bytes(b"new")

    outcome = import_files([item(source, target, "move"), item(second, taken)], progress=appear)
    assert isinstance(outcome, NotImported)
    assert source.stat().st_size == BIG
    assert second.exists()
    assert everything_in(tmp_path / "models") == {"o": b"", "o/r": b"", "o/r/n.gguf": b"new"}


def test_differing_copy_is_deleted(tmp_path, source, target, monkeypatch):
    before = everything_in(tmp_path)

    def bad_drive(descriptor: int) -> None:
        with Path(f"{target}.importing").open("r+b") as part:
            part.write(b"?!?!")

    monkeypatch.setattr(model_import, "_forget_cached", bad_drive)
    outcome = import_files([item(source, target)])
    assert isinstance(outcome, NotImported)
    assert "differs" in outcome.sentence
    assert everything_in(tmp_path) == before


def test_source_changed_during_import_is_noticed(tmp_path, source, target):
    def change(done: int, total: int) -> None:
        os.utime(source, ns=(done, done))

    outcome = import_files([item(source, target)], progress=change)
    assert isinstance(outcome, NotImported)
    assert "changed" in outcome.sentence
    assert not (tmp_path / "models").exists()


def test_full_drive_is_detected_before_copying(tmp_path, source, target, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": BIG}))
    outcome = import_files([item(source, target)])
    assert isinstance(outcome, NotImported)
    assert "256 MB more are needed" in outcome.sentence
    assert not (tmp_path / "models").exists()


def test_drive_filling_up_leaves_no_files(tmp_path, source, target, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    outcome = import_files([item(source, target)])
    assert outcome == NotImported("The drive is full. Free some space and try again.")
    assert not (tmp_path / "models").exists()


def test_missing_source_is_reported(tmp_path, target):
    outcome = import_files([item(tmp_path / "gone.gguf", target)])
    assert isinstance(outcome, NotImported)
    assert "could not be found" in outcome.sentence


def test_file_being_written_by_another_window_is_not_touched(tmp_path, source, target):
    target.parent.mkdir(parents=True)
    with locked(target):
        outcome = import_files([item(source, target)])
    assert isinstance(outcome, NotImported)
    assert "another QwenDesk window" in outcome.sentence
    assert everything_in(target.parent) == {}


KILLED = """
import os, signal, sys
from qwendesk.hub.model_import import ImportItem, import_files
def die(done, total):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
import_files([ImportItem(sys.argv[1], sys.argv[2], "move")], progress=die)
"""


def killed_import(source: Path, target: Path, at: int) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(source), str(target), str(at)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.fixture
def copied_move(tmp_path, source) -> Path:
    """A link is copied, never renamed, so a move of it copies on one drive too."""
    link = tmp_path / "link.gguf"
    link.symlink_to(source)
    return link


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 and links are different there")
@pytest.mark.parametrize("at", [1, BIG // 2, BIG, 2 * BIG])
def test_import_killed_at_any_point_resumes(tmp_path, source, target, copied_move, at):
    killed_import(copied_move, target, at)
    assert not target.exists()
    assert source.stat().st_size == BIG
    written = Path(f"{target}.importing").stat().st_size
    assert written >= min(at, BIG) // model_import._CHUNK_BYTES * model_import._CHUNK_BYTES - model_import._CHUNK_BYTES
    assert isinstance(import_files([item(copied_move, target, "move")]), Imported)
    assert target.read_bytes() == source.read_bytes()
    assert not copied_move.is_symlink()
    assert [path.name for path in target.parent.iterdir() if not path.name.endswith(".lock")] == ["m.gguf"]


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 and links are different there")
def test_file_damaged_by_power_loss_is_copied_again(source, target, copied_move):
    killed_import(copied_move, target, 2 * BIG)
    part = Path(f"{target}.importing")
    part.write_bytes(b"\0" * (BIG - 7))
    assert isinstance(import_files([item(copied_move, target)]), Imported)
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 and links are different there")
def test_partial_copy_of_another_file_is_not_resumed(source, target, copied_move):
    killed_import(copied_move, target, BIG)
    source.write_bytes(os.urandom(BIG))
    assert isinstance(import_files([item(copied_move, target)]), Imported)
    assert target.read_bytes() == source.read_bytes()


def test_import_killed_between_two_renames_is_completed(source, target):
    second = source.with_name("n.gguf")
    second.write_bytes(b"second")
    items = [item(source, target), item(second, target.with_name("n.gguf"))]
    assert isinstance(import_files(items[:1]), Imported)
    target.with_name("m.gguf.importing.json").write_bytes(model_import._note(source))
    outcome = import_files(items)
    assert isinstance(outcome, Imported)
    assert sorted(path.name for path in target.parent.iterdir()) == ["m.gguf", "n.gguf"]
