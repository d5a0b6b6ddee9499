"""A second start hands over and ends."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEventLoop
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication

from qwendesk.ui.frame.single_instance import Handover, SingleInstance

SECOND = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from qwendesk.ui.frame.single_instance import SingleInstance
app = QCoreApplication([])
sys.exit(10 if SingleInstance(sys.argv[1]).begin([Path(each) for each in sys.argv[2:]]) else 20)
"""
FIRST, HANDED_OVER = 10, 20


@pytest.fixture
def name() -> str:
    return f"qwendesk-test-{uuid.uuid4().hex}"


@pytest.fixture
def first(app: QApplication, name: str) -> Iterator[SingleInstance]:
    instance = SingleInstance(name)
    assert instance.begin()
    yield instance
    instance.end()
    instance.deleteLater()


def start(name: str, *files: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SECOND, name, *files])


def test_a_second_start_brings_its_files(app: QApplication, first: SingleInstance, name: str, tmp_path: Path) -> None:
    told: list[Handover] = []
    loop = QEventLoop()
    first.asked.connect(told.append)
    first.asked.connect(loop.quit)
    second = start(name, str(tmp_path / "picture.png"))
    loop.exec()
    assert second.wait() == HANDED_OVER
    assert told == [Handover((str(tmp_path / "picture.png"),))]


def test_after_the_end_the_next_start_is_the_first(app: QApplication, first: SingleInstance, name: str) -> None:
    first.end()
    assert start(name).wait() == FIRST


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\n", b"[1, 2]\n"])
def test_a_caller_that_is_no_window_is_sent_away(
    app: QApplication, first: SingleInstance, name: str, words: bytes
) -> None:
    told: list[Handover] = []
    first.asked.connect(told.append)
    stranger = QLocalSocket()
    loop = QEventLoop()
    stranger.disconnected.connect(loop.quit)
    stranger.connectToServer(name)
    stranger.write(words)
    loop.exec()
    assert told == []
