"""The downloading process is killed at random moments, under every fault: never a wrong file under its final name."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.hub.download_part import part_of
from tests.hub.hub_server import FakeHub, running_hub

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork and no kill -9")

REPO, NAME = "someone/Model-GGUF", "model-Q4_K_M.gguf"
CONTENT = random.Random(3).randbytes(400_001)
FAULTS = {
    "none": [],
    "cut": ["cut:90000", "cut:120000"],
    "range ignored": ["cut:150000", "ignores-range,cut:250000", "ignores-range"],
    "wrong bytes": ["wrong-bytes"],
    "longer": ["longer"],
    "shorter": ["shorter"],
    "expired": ["cut:50000", "403", "cut:100000", "403"],
    "busy": ["429", "cut:100000", "503", "500"],
    "always wrong": ["wrong-bytes"] * 9,
}


class Downloader:
    """The process that forks one that downloads, each time it is asked."""

    def __init__(self, hub: FakeHub, target: Path) -> None:
        command = [sys.executable, "-m", "tests.hub.killable", hub.endpoint, REPO, NAME]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._hub, self._target = hub, target

    def run(self, faults: list[str], kill_after: int | None) -> int:
        """Exit status of one download, killed when the server has sent so many bytes."""
        started, pid = threading.Event(), [0]

        def on_sent(total: int) -> None:
            if kill_after is not None and total >= kill_after:
                started.wait()
                self._hub.on_sent = lambda _: None
                os.kill(pid[0], signal.SIGKILL)

        self._hub.faults, self._hub.on_sent = list(faults), on_sent
        self._process.stdin.write(f"{self._hub.count_anew()} {self._target}\n")
        self._process.stdin.flush()
        pid[0] = int(self._process.stdout.readline())
        started.set()
        status = int(self._process.stdout.readline())
        self._hub.on_sent = lambda _: None
        return status

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    with running_hub() as hub:
        hub.add(REPO, NAME, CONTENT)
        yield hub


@pytest.fixture
def downloader(hub: FakeHub, tmp_path: Path) -> Iterator[Downloader]:
    downloader = Downloader(hub, tmp_path / REPO / NAME)
    yield downloader
    downloader.close()


def kill_and_resume(hub: FakeHub, downloader: Downloader, target: Path, name: str, times: int) -> None:
    chance = random.Random(name)
    killed = 0
    for _ in range(times):
        target.unlink(missing_ok=True)
        status = downloader.run(FAULTS[name], chance.randrange(len(CONTENT)))
        killed += status == -signal.SIGKILL
        assert not target.exists() or target.read_bytes() == CONTENT
        had = part_of(target).stat().st_size if part_of(target).exists() else 0
        assert downloader.run([], None) == 0
        assert target.read_bytes() == CONTENT
        assert [path.name for path in target.parent.iterdir() if path.is_file()] == [NAME]
        if "wrong" not in name and status:
            assert hub.sent_bytes == len(CONTENT) - had  # it went on where it was
    assert killed


@pytest.mark.parametrize("name", FAULTS)
def test_killed_at_random_moments(hub, downloader, tmp_path, name):
    kill_and_resume(hub, downloader, tmp_path / REPO / NAME, name, 5)


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTS)
def test_killed_at_many_random_moments(hub, downloader, tmp_path, name):
    kill_and_resume(hub, downloader, tmp_path / REPO / NAME, name, 50)
