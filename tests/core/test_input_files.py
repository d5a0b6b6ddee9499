"""Files that users hand over: only regular files of a bounded size are read, and nothing waits."""

import os
import socket
import sys
from pathlib import Path

import pytest

from qwendesk.core.input_files import FileTooLarge, NotRegularFile, is_online_only, open_regular, read_bounded

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="named pipes and devices of POSIX")


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 3_000_000)

    assert read_bounded(path, 3_000_000) == b"x" * 3_000_000
    with open_regular(path) as file:
        assert file.read(2) == b"xx"


def test_a_file_above_the_limit_is_refused_with_both_sizes(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(6 << 30)

    with pytest.raises(FileTooLarge, match=r"it has 6\.0 GB, and the limit is 1\.0 MB"):
        read_bounded(path, 1 << 20)


@pytest.mark.skipif(not Path("/proc/kallsyms").exists(), reason="a file of Linux that says it is empty")
def test_file_longer_than_its_reported_size_is_refused() -> None:
    with pytest.raises(FileTooLarge):
        read_bounded(Path("/proc/kallsyms"), 1_000)


@POSIX
def test_a_pipe_a_device_a_socket_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
        for name, words in [("pipe", "a pipe"), ("device", "a device"), ("socket", "a socket"), ("", "a folder")]:
            with pytest.raises(NotRegularFile, match=words):
                read_bounded(tmp_path / name, 1 << 20)


@POSIX
def test_path_replaced_by_a_pipe_after_the_check_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    regular = tmp_path / "regular"
    regular.touch()
    os.mkfifo(tmp_path / "pipe")
    status = regular.stat()
    monkeypatch.setattr(Path, "stat", lambda _path: status)

    with pytest.raises(NotRegularFile, match="a pipe"):
        open_regular(tmp_path / "pipe")


def test_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "missing", 10)


class Status:
    """What the system says of a file; only Windows and macOS say this much."""

    def __init__(self, **fields: int) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("status", "is_in_the_cloud"),
    [
        (Status(st_file_attributes=0x0040_0020), True),
        (Status(st_file_attributes=0x0004_0020), True),
        (Status(st_file_attributes=0x0008_0420), False),
        (Status(st_flags=0x4000_0000), True),
        (Status(st_flags=0), False),
        (Status(), False),
    ],
    ids=["OneDrive, online-only", "recalled when opened", "OneDrive, kept here", "iCloud", "Mac", "Linux"],
)
def test_placeholders_of_cloud_drives_are_told_from_files(status: os.stat_result, *, is_in_the_cloud: bool) -> None:
    assert is_online_only(status) == is_in_the_cloud
