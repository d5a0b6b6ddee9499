"""One window per user: a second start hands its files to the first window, which comes to the front."""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from qwendesk.app.window.instance_socket import is_own_peer, is_own_socket, server_names
from qwendesk.core.json_decoding import decode_json

_logger = logging.getLogger(__name__)

_CONNECT_MS = 500
_ANSWER_MS = 2_000
"""Longer than for connecting, because the first window may be busy. A window that needs more time counts as dead."""
_LARGEST_BYTES = 1024 * 1024
_TAKEN = b"taken\n"
RUNNING_MUTEX = "QwenDeskRunning"
"""Name of the mutex that packaging/windows/qwendesk.iss checks for, so as not to replace or remove files in use."""


class Handover(msgspec.Struct, frozen=True):
    """What a second start hands to the first window."""

    files: tuple[bytes, ...] = ()
    """Absolute paths as bytes, because a Linux file name may not be valid UTF-8, which JSON requires."""

    @classmethod
    def of(cls, files: Sequence[Path]) -> "Handover":
        return cls(tuple(os.fsencode(path.absolute()) for path in files))

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(Path(os.fsdecode(each)) for each in self.files)


class SingleInstance(QObject):
    """Finds out whether this is the user's first window; if so, it emits `asked` for every later start."""

    asked = Signal(object)
    """Carries a Handover."""

    def __init__(self, names: Sequence[str] | None = None, parent: QObject | None = None) -> None:
        """`names` are the socket names to use, by default those of `server_names`."""
        super().__init__(parent)
        self._names = tuple(server_names() if names is None else names)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def begin(self, files: Sequence[Path] = ()) -> bool:
        """Return True for the first window. Return False if another window took the files; this process should exit."""
        handover = Handover.of(files)
        if any(is_own_socket(name) and _hand_over(name, handover) for name in self._names):
            return False
        if not self._names:
            _logger.warning("Later starts can't be noticed: no folder is private to this user")
        elif not self._server.listen(self._names[0]):
            # Remove the socket of a window that crashed.
            QLocalServer.removeServer(self._names[0])
            if not self._server.listen(self._names[0]):
                _logger.warning("Later starts can't be noticed: %s", self._server.errorString())
        return True

    def end(self) -> None:
        """Stop listening, so that the next start becomes the first window."""
        self._server.close()

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            _Connection(socket, self)


class _Connection(QObject):
    """The connection of one later start."""

    def __init__(self, socket: QLocalSocket, owner: SingleInstance) -> None:
        super().__init__(socket)
        self._socket = socket
        self._owner = owner
        self._received = b""
        socket.disconnected.connect(socket.deleteLater)
        socket.readyRead.connect(self._read)
        self._read()

    def _read(self) -> None:
        self._received += self._socket.readAll().data()
        if len(self._received) > _LARGEST_BYTES:
            self._socket.abort()
            return
        if not self._received.endswith(b"\n"):
            return
        try:
            handover = decode_json(self._received, Handover)
        except msgspec.DecodeError as error:
            _logger.warning("Something other than QwenDesk connected: %s", error)
            self._socket.abort()
            return
        self._received = b""
        self._socket.write(_TAKEN)
        self._socket.flush()
        self._owner.asked.emit(handover)


def mark_as_running() -> None:
    """Create the mutex, on Windows only. The system removes it when this process exits for any reason."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415 - needed on Windows only

        ctypes.windll.kernel32.CreateMutexW(None, False, RUNNING_MUTEX)


def _hand_over(name: str, handover: Handover) -> bool:
    """Return True if a window of this user listens at `name` and took the files. Other users' windows get nothing."""
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(_CONNECT_MS):
        return False
    if not is_own_peer(int(socket.socketDescriptor())):
        _logger.warning("Ignored %s: it belongs to another user", name)
        return False
    socket.write(msgspec.json.encode(handover) + b"\n")
    socket.waitForBytesWritten(_ANSWER_MS)
    answer = b""
    while not answer.endswith(b"\n") and socket.waitForReadyRead(_ANSWER_MS):
        answer += socket.readAll().data()
    socket.disconnectFromServer()
    return answer == _TAKEN
