"""Hashes of files: right, stopped when asked, and remembered only as long as the file is the same."""

import hashlib
import os
from pathlib import Path

import pytest

from qwendesk.hub.file_hashes import HashCancelled, HashMemory, hash_file


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("size", [0, 1, 1024**2, 1024**2 + 1, 3 * 1024**2])
def test_hash_is_that_of_the_bytes(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    seen: list[tuple[int, int]] = []

    found = hash_file(write(tmp_path / "file", content), progress=lambda done, total: seen.append((done, total)))

    assert found == hashlib.sha256(content).hexdigest()
    assert seen[-1] == (size, size)


def test_progress_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(200 * 1024**2)
    seen: list[int] = []

    hash_file(path, progress=lambda done, _total: seen.append(done))

    assert seen == sorted(seen)
    assert len(seen) >= 3


def test_hashing_can_be_stopped(tmp_path: Path) -> None:
    with pytest.raises(HashCancelled):
        hash_file(write(tmp_path / "file", bytes(10)), cancelled=lambda: True)


def test_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path, notes = write(tmp_path / "file", b"one"), tmp_path / "hashes.json"
    memory = HashMemory(notes)
    found = memory.hash_file(path)
    memory.save()

    again = HashMemory(notes)

    assert again.recall(path) == found
    assert again.hash_file(path, cancelled=lambda: True) == found


def test_a_changed_or_replaced_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "file", b"one")
    memory = HashMemory(tmp_path / "hashes.json")
    memory.hash_file(path)
    status = path.stat()

    # NTFS counts in 100 ns.
    later = (status.st_atime_ns, status.st_mtime_ns + 100)
    os.utime(path, ns=later)
    assert memory.recall(path) is None

    memory.hash_file(path)
    write(tmp_path / "other", b"two").replace(path)
    os.utime(path, ns=later)
    assert memory.recall(path) is None


def test_file_changed_during_hashing_is_not_remembered(tmp_path: Path) -> None:
    path = write(tmp_path / "file", b"one")
    memory = HashMemory(tmp_path / "hashes.json")

    memory.hash_file(path, progress=lambda _done, _total: write(path, b"longer") and None)

    assert memory.recall(path) is None
