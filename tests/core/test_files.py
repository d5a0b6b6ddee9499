"""Small files are replaced whole, and what is wrong with their content is one kind of error."""

import os
import threading
from pathlib import Path

import pytest

from qwendesk.core import files
from qwendesk.core.files import is_in_use, reason_of, replace, write_whole
from tests.links import skip_without_links


def test_a_file_and_its_folder_are_made_and_replaced(tmp_path):
    path = tmp_path / "new" / "file"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_failed_write_leaves_no_temporary_file(tmp_path):
    folder = tmp_path / "file"
    folder.mkdir()
    (folder / "x").touch()
    with pytest.raises(OSError, match="file"):
        write_whole(folder, b"one")
    assert list(tmp_path.iterdir()) == [folder]


class Scanner:
    """A virus scanner of Windows that holds a new file open for some tries."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tries: int) -> None:
        self.tries, self.waited_s = tries, 0.0
        replace_now = Path.replace

        def refuse(source: Path, target: Path) -> Path:
            self.tries -= 1
            if self.tries >= 0:
                raise PermissionError(13, "Access is denied", str(target))
            return replace_now(source, target)

        monkeypatch.setattr(files, "_LOCKS_OPEN_FILES", True)
        monkeypatch.setattr(files, "sleep", self._wait)
        monkeypatch.setattr(Path, "replace", refuse)

    def _wait(self, seconds: float) -> None:
        self.waited_s += seconds


def test_a_file_that_a_scanner_holds_for_a_moment_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    Scanner(monkeypatch, tries=4)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("timeout_s", [2.0, 20.0])
def test_replacing_a_file_that_stays_open_fails_after_the_timeout(tmp_path, monkeypatch, timeout_s):
    (tmp_path / "fresh").touch()
    scanner = Scanner(monkeypatch, tries=1000)
    with pytest.raises(PermissionError):
        replace(tmp_path / "fresh", tmp_path / "file", timeout_s)
    assert scanner.waited_s == pytest.approx(timeout_s)


def test_read_only_folder_fails_at_once(tmp_path, monkeypatch):
    scanner = Scanner(monkeypatch, tries=1)
    monkeypatch.setattr(files, "_LOCKS_OPEN_FILES", False)
    with pytest.raises(PermissionError):
        replace(tmp_path / "fresh", tmp_path / "file")
    assert scanner.waited_s == 0


def test_read_only_file_fails_at_once(tmp_path, monkeypatch):
    (tmp_path / "fresh").touch()
    (tmp_path / "file").touch()
    scanner = Scanner(monkeypatch, tries=1)
    monkeypatch.setattr(files.os, "access", lambda path, _mode: path != tmp_path / "file")
    with pytest.raises(PermissionError):
        replace(tmp_path / "fresh", tmp_path / "file")
    assert scanner.waited_s == 0


def test_a_file_mapped_into_memory_is_in_use_on_windows(monkeypatch):
    mapped = OSError(22, "The requested operation cannot be performed on a file with a user-mapped section open")
    mapped.winerror = 1224
    monkeypatch.setattr(files, "_LOCKS_OPEN_FILES", False)
    assert not is_in_use(mapped, Path())
    monkeypatch.setattr(files, "_LOCKS_OPEN_FILES", True)
    assert is_in_use(mapped, Path())
    assert not is_in_use(OSError(28, "No space left on device"), Path())


def test_a_link_planted_at_the_new_file_is_not_followed(tmp_path: Path) -> None:
    diary, path = tmp_path / "diary.txt", tmp_path / "settings.json"
    diary.write_bytes(b"what the user wrote")
    planted = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    skip_without_links(tmp_path)
    planted.symlink_to(diary)

    write_whole(path, b"{}")

    assert path.read_bytes() == b"{}"
    assert not path.is_symlink()
    assert diary.read_bytes() == b"what the user wrote"


@pytest.mark.parametrize("on_windows", [False, True])
def test_a_path_too_long_for_windows_is_named_as_such(on_windows: bool) -> None:
    error = FileNotFoundError(2, "No such file or directory")
    assert reason_of(error, Path("short"), on_windows=on_windows) == "No such file or directory"
    reason = reason_of(error, Path("x" * 300), on_windows=on_windows)
    assert ("300 characters" in reason) == on_windows


def test_another_reason_counts_for_a_long_path_too() -> None:
    assert reason_of(PermissionError(13, "Access denied"), Path("x" * 300), on_windows=True) == "Access denied"
