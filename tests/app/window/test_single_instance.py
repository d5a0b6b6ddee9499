"""A second start hands over and ends."""

import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication, QEventLoop, QProcess, QTimer
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication

from qwendesk.app.window.single_instance import RUNNING_MUTEX, Handover, SingleInstance, mark_as_running
from qwendesk.core import paths

SECOND = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from qwendesk.core import paths
from qwendesk.app.window.single_instance import SingleInstance
app = QCoreApplication([])
sys.exit(10 if SingleInstance([sys.argv[1]]).begin([Path(each) for each in sys.argv[2:]]) else 20)
"""
STRANGER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
os.seteuid(65534)
listening.listen()
os.seteuid(0)
print("listening", flush=True)
connection, _ = listening.accept()
print("heard", len(connection.recv(1000)), flush=True)
"""
FIRST, HANDED_OVER = 10, 20


@pytest.fixture
def name() -> Iterator[str]:
    if sys.platform == "win32":
        yield f"qwendesk-test-{uuid.uuid4().hex}"
        return
    with tempfile.TemporaryDirectory(prefix="q-") as folder:
        yield str(Path(folder) / "window")


@pytest.fixture
def first(app: QApplication, name: str) -> Iterator[SingleInstance]:
    instance = SingleInstance([name])
    assert instance.begin()
    instance.accept()
    yield instance
    instance.end()
    instance.deleteLater()


def start(name: str, *files: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SECOND, name, *files])


def test_second_start_hands_over_its_files(app: QApplication, first: SingleInstance, name: str, tmp_path: Path) -> None:
    told: list[Handover] = []
    first.asked.connect(told.append)
    second = QProcess()
    loop = QEventLoop()
    # Until the second start has ended, because the answer to it may not have been written when `asked` is emitted.
    second.finished.connect(loop.quit)
    second.start(sys.executable, ["-c", SECOND, name, str(tmp_path / "picture.png")])
    loop.exec()
    assert second.exitCode() == HANDED_OVER
    assert [handover.paths for handover in told] == [(tmp_path / "picture.png",)]


def test_files_of_a_start_that_comes_before_the_window_wait_for_it(
    app: QApplication, name: str, tmp_path: Path
) -> None:
    told: list[Handover] = []
    instance, loop = SingleInstance([name]), QEventLoop()
    assert instance.begin()
    second = QLocalSocket()
    try:
        second.connectToServer(name)
        assert second.waitForConnected()
        second.write(msgspec.json.encode(Handover.of([tmp_path / "picture.png"])) + b"\n")
        second.waitForBytesWritten(100)  # on Windows it is written when it is read
        assert instance._server.waitForNewConnection(30_000)
        QCoreApplication.processEvents()
        assert told == []
        instance.asked.connect(told.append)
        instance.asked.connect(loop.quit)
        QTimer.singleShot(0, instance.accept)
        loop.exec()
        assert [handover.paths for handover in told] == [(tmp_path / "picture.png",)]
    finally:
        second.abort()
        instance.end()
        instance.deleteLater()


@pytest.mark.skipif(sys.platform == "win32", reason="names there are Unicode")
def test_second_start_hands_over_a_name_that_is_not_utf_8(
    app: QApplication, first: SingleInstance, name: str, tmp_path: Path
) -> None:
    told: list[Handover] = []
    loop = QEventLoop()
    first.asked.connect(told.append)
    first.asked.connect(loop.quit)
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png")
    second = start(name, path)
    loop.exec()
    assert second.wait() == HANDED_OVER
    assert told[0].paths == (Path(path),)


def test_start_after_the_end_is_the_first_instance(app: QApplication, first: SingleInstance, name: str) -> None:
    first.end()
    assert start(name).wait() == FIRST


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\n", b"[1, 2]\n"])
def test_unrelated_client_is_disconnected(app: QApplication, first: SingleInstance, name: str, words: bytes) -> None:
    told: list[Handover] = []
    first.asked.connect(told.append)
    stranger = QLocalSocket()
    loop = QEventLoop()
    stranger.disconnected.connect(loop.quit)
    stranger.connectToServer(name)
    stranger.write(words)
    loop.exec()
    assert told == []


on_posix = pytest.mark.skipif(sys.platform == "win32", reason="a pipe of Windows lies in no folder")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """XDG_RUNTIME_DIR, and a home without files; with short paths, as the system takes no long ones for sockets."""
    with tempfile.TemporaryDirectory(prefix="q-") as home:
        for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            monkeypatch.setenv(variable, str(Path(home) / variable[-11:]))
        folder = Path(home) / "runtime"
        folder.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


def sockets(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_socket()]


@on_posix
def test_socket_in_the_runtime_folder_is_private(app: QApplication, runtime: Path) -> None:
    instance = SingleInstance()
    assert instance.begin()
    try:
        (socket,) = sockets(runtime)
        assert socket.lstat().st_mode & 0o077 == 0
    finally:
        instance.end()
        instance.deleteLater()
    assert sockets(runtime) == []


@on_posix
@pytest.mark.parametrize("wrong", ["missing", "unset", "relative", "open to others"])
def test_without_a_private_runtime_folder_the_socket_is_in_the_apps_folder(
    app: QApplication, runtime: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    match wrong:
        case "missing":
            runtime.rmdir()
        case "unset":
            monkeypatch.delenv("XDG_RUNTIME_DIR")
        case "relative":
            monkeypatch.chdir(runtime.parent)
            monkeypatch.setenv("XDG_RUNTIME_DIR", runtime.name)
        case _:
            runtime.chmod(0o750)
    instance = SingleInstance()
    assert instance.begin()
    try:
        assert [path.parent for path in sockets(runtime.parent)] == [paths.data_folder()]
        assert paths.data_folder().stat().st_mode & 0o077 == 0
    finally:
        instance.end()
        instance.deleteLater()


@on_posix
def test_start_without_a_runtime_folder_finds_the_first_window(
    app: QApplication, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it is started by another session of the same user."""
    runtime.chmod(0o755)
    first = SingleInstance()
    assert first.begin()
    runtime.chmod(0o700)
    told: list[Handover] = []
    loop = QEventLoop()
    first.asked.connect(told.append)
    first.asked.connect(loop.quit)
    first.accept()
    second = subprocess.Popen(
        [sys.executable, "-c", SECOND.replace("SingleInstance([sys.argv[1]])", "SingleInstance()")]
    )
    try:
        loop.exec()
        assert second.wait() == HANDED_OVER
        assert len(told) == 1
    finally:
        first.end()
        first.deleteLater()


@on_posix
def test_nothing_is_sent_to_a_socket_that_others_could_have_created(
    app: QApplication, first: SingleInstance, name: str, tmp_path: Path
) -> None:
    told: list[Handover] = []
    first.asked.connect(told.append)
    Path(name).parent.chmod(0o777)
    assert start(name, str(tmp_path / "secret.pdf")).wait() == FIRST
    Path(name).parent.chmod(0o700)
    link = Path(name).with_name("link")
    link.symlink_to(name)
    assert start(str(link), str(tmp_path / "secret.pdf")).wait() == FIRST
    QCoreApplication.processEvents()
    assert told == []


@on_posix
@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can be two users")
def test_nothing_is_sent_to_a_process_of_another_user(app: QApplication, name: str, tmp_path: Path) -> None:
    """Its socket was given to this user, so that only the process behind it tells."""
    stranger = subprocess.Popen([sys.executable, "-c", STRANGER, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert stranger.stdin is not None
    assert stranger.stdout is not None
    try:
        assert stranger.stdout.readline() == b"listening\n"
        second = start(name, str(tmp_path / "secret.pdf"))
        assert stranger.stdout.readline() == b"heard 0\n"
        assert second.wait() == FIRST
    finally:
        stranger.stdin.close()
        stranger.stdout.close()
        stranger.wait()


def test_windows_installer_checks_for_the_mutex_of_the_app() -> None:
    installer = Path(__file__).parents[3] / "packaging" / "windows" / "qwendesk.iss"
    checked = re.findall(r"CheckForMutexes\('(\w+)'\)", installer.read_text(encoding="utf-8"))
    assert set(checked) == {RUNNING_MUTEX}
    mark_as_running()
