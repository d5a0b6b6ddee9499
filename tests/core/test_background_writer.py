"""Small files are written off the event loop's thread: in order, the latest content in the end, failures told."""

import asyncio
import threading
from pathlib import Path

import pytest

from qwendesk.core import json_file
from qwendesk.core.files import write_whole
from qwendesk.core.json_file import BackgroundWriter, JsonFile


class SlowDisk:
    """Writes only when the test lets it, and remembers what was written and on which thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[bytes] = []
        self.threads: set[threading.Thread] = set()
        self.begun, self.allowed = threading.Semaphore(0), threading.Semaphore(0)
        self.refuses = False
        monkeypatch.setattr(json_file, "write_whole", self.write)

    def write(self, path: Path, content: bytes) -> None:
        self.threads.add(threading.current_thread())
        self.begun.release()
        self.allowed.acquire()
        if self.refuses:
            raise PermissionError(13, "refused")
        self.written.append(content)
        write_whole(path, content)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch)


def file(folder: Path) -> JsonFile[int]:
    return JsonFile(folder / "settings.json", int, int)


async def test_slow_disk_does_not_block_the_loop_and_the_last_content_is_written(
    disk: SlowDisk, tmp_path: Path
) -> None:
    writer = BackgroundWriter(file(tmp_path))
    writer.write(1)
    await asyncio.to_thread(disk.begun.acquire)
    for value in (2, 3, 4):
        writer.write(value)
    disk.allowed.release(2)
    await writer.close()
    assert (tmp_path / "settings.json").read_bytes() == b"4"
    assert disk.written == [b"1", b"4"], "what is replaced while it waits is not written"
    assert threading.current_thread() not in disk.threads


async def test_pending_content_is_written_before_the_process_is_terminated(disk: SlowDisk, tmp_path: Path) -> None:
    writer = BackgroundWriter(file(tmp_path))
    writer.write(1)
    await asyncio.to_thread(disk.begun.acquire)
    writer.write(2)
    disk.allowed.release(2)
    writer.flush()
    assert (tmp_path / "settings.json").read_bytes() == b"2", "and the write that was under way does not come later"
    await writer.close()
    assert (tmp_path / "settings.json").read_bytes() == b"2"


async def test_failed_write_is_reported_and_the_next_content_is_written(disk: SlowDisk, tmp_path: Path) -> None:
    told: list[OSError] = []
    writer = BackgroundWriter(file(tmp_path), told.append)
    disk.refuses = True
    disk.allowed.release()
    writer.write(1)
    await writer.close()
    assert [error.strerror for error in told] == ["refused"]
    disk.refuses = False
    disk.allowed.release()
    writer.write(2)
    await writer.close()
    assert (tmp_path / "settings.json").read_bytes() == b"2"
