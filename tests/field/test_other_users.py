"""Sockets and ports that another user of this PC has taken."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from qwendesk.app.window.single_instance import SingleInstance, is_own_socket, server_names
from qwendesk.cli import main as cli
from qwendesk.core.processes import serves_port
from qwendesk.server.access import KEY_VARIABLE
from tests.field.grid import SERVER, Kind, Way, case

STRANGERS = Kind(
    "What another user of this PC has opened gets this user's files or key",
    {
        **dict.fromkeys(SERVER, "there it is we who listen: a client needs the key"),
        Way.MCP: "the user names an MCP server by its address or its program, and QwenDesk looks for none",
        Way.IMPORT: "an import connects to nothing",
    },
)
FOUND = "found by taking the port and the sockets as another user, November 2026"
NOBODY = 65534
as_root = pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can be two users")
_STRANGER = """
import os, socket, sys
place = sys.argv[1]
listening = socket.socket(socket.AF_INET if place.isdigit() else socket.AF_UNIX)
listening.bind(("127.0.0.1", int(place)) if place.isdigit() else place)
if not place.isdigit():
    os.chmod(place, 0o777)
if len(sys.argv) > 2:
    os.setuid(int(sys.argv[2]))
listening.listen()
print("listening", flush=True)
while True:
    connection, _ = listening.accept()
    connection.settimeout(60)
    print("heard", connection.recv(1000), flush=True)
    connection.close()
"""


@contextmanager
def stranger(place: str, user: int = NOBODY) -> Iterator[subprocess.Popen[bytes]]:
    """Run another user's process that listens at a port or socket and prints what it hears."""
    command = [sys.executable, "-c", _STRANGER, place, str(user)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"listening\n"
        yield process
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def heard(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="q-") as folder:
        yield Path(folder)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@as_root
@case(STRANGERS, Way.CLI, report=FOUND, before="failed")
def test_the_key_isnt_sent_to_another_users_port(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "a-secret-key-of-mine")
    port = free_port()
    with stranger(str(port)) as other:
        assert cli.main(["start", "--port", str(port), "claude"]) != 0
        assert heard(other) == b"heard b''\n"
    assert "belongs to another user of this PC" in capsys.readouterr().err


@case(STRANGERS, Way.CLI, report=FOUND, before="held")
def test_an_own_port_is_told_from_one_where_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert serves_port(port)
    assert not serves_port(port)


@as_root
@case(STRANGERS, Way.WINDOW, report=FOUND, before="held")
def test_a_shared_runtime_folder_isnt_used(app: QApplication, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where XDG_RUNTIME_DIR is /tmp: another user may have put a socket of our name there."""
    place.chmod(0o1777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    name = Path(server_names()[0]).name
    with stranger(str(place / name)):
        assert all(Path(each).parent != place for each in server_names())
        first = SingleInstance()
        assert first.begin([place / "secret.pdf"]), "it is the first window, and nobody else was told"
        first.end()


@as_root
@case(STRANGERS, Way.WINDOW, report=FOUND, before="held")
def test_a_socket_that_belongs_to_another_user_is_replaced(app: QApplication, place: Path) -> None:
    """It is in this user's own folder, as after a start with sudo."""
    name = str(place / "window")
    with stranger(name):
        os.chown(name, NOBODY, NOBODY)
        assert not is_own_socket(name)
        first = SingleInstance([name])
        assert first.begin([place / "secret.pdf"])
        first.end()


@pytest.mark.skipif(sys.platform == "win32", reason="names of pipes are no files")
@case(STRANGERS, Way.WINDOW, report=FOUND, before="held")
@pytest.mark.parametrize("what", ["file", "folder", "link to nothing"])
def test_what_is_no_socket_ends_no_start(app: QApplication, place: Path, what: str) -> None:
    name = place / "window"
    if what == "file":
        name.write_text("Keep me.")
    elif what == "folder":
        name.mkdir()
    else:
        name.symlink_to(place / "nothing")
    first = SingleInstance([str(name)])
    assert first.begin([place / "secret.pdf"])
    first.end()
    assert what != "folder" or name.is_dir()
