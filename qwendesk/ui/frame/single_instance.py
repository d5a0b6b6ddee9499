"""One window for each user: a second start hands its files to the first, which comes to the front."""

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from qwendesk.core import paths
from qwendesk.core.files import decode_json

_logger = logging.getLogger(__name__)

_CONNECT_MS = 500
_ANSWER_MS = 2_000
"""The first window may be busy drawing; one that does not answer for so long is taken as dead."""
_LARGEST_BYTES = 1024 * 1024
_TAKEN = b"taken\n"


class Handover(msgspec.Struct, frozen=True):
    """What a second start asks of the first."""

    files: tuple[str, ...] = ()
    """Absolute paths."""


class SingleInstance(QObject):
    """Either the first window of this user, which `asked` tells of others, or one that may end at once."""

    asked = Signal(object)
    """A Handover."""

    def __init__(self, name: str = "", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = name or server_name()
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def begin(self, files: Sequence[Path] = ()) -> bool:
        """True when this is the first window. False when another took the files over: this process may end."""
        if self._hand_over(Handover(tuple(str(path.absolute()) for path in files))):
            return False
        if not self._server.listen(self._name):
            # A window that crashed leaves its name behind.
            QLocalServer.removeServer(self._name)
            if not self._server.listen(self._name):
                _logger.warning("Other windows cannot be noticed: %s", self._server.errorString())
        return True

    def end(self) -> None:
        """Another start may be the first from now on."""
        self._server.close()

    def _hand_over(self, handover: Handover) -> bool:
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(_CONNECT_MS):
            return False
        socket.write(msgspec.json.encode(handover) + b"\n")
        socket.waitForBytesWritten(_ANSWER_MS)
        answer = b""
        while not answer.endswith(b"\n") and socket.waitForReadyRead(_ANSWER_MS):
            answer += socket.readAll().data()
        socket.disconnectFromServer()
        return answer == _TAKEN

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            _Caller(socket, self)


class _Caller(QObject):
    """One start that talks to us; lives as long as its connection."""

    def __init__(self, socket: QLocalSocket, owner: SingleInstance) -> None:
        super().__init__(socket)
        self._socket = socket
        self._owner = owner
        self._heard = b""
        socket.disconnected.connect(socket.deleteLater)
        socket.readyRead.connect(self._read)
        self._read()

    def _read(self) -> None:
        self._heard += self._socket.readAll().data()
        if len(self._heard) > _LARGEST_BYTES:
            self._socket.abort()
            return
        if not self._heard.endswith(b"\n"):
            return
        try:
            handover = decode_json(self._heard, Handover)
        except msgspec.DecodeError as error:
            _logger.warning("Something else than QwenDesk called: %s", error)
            self._socket.abort()
            return
        self._heard = b""
        self._socket.write(_TAKEN)
        self._socket.flush()
        self._owner.asked.emit(handover)


def server_name() -> str:
    """One name for each user and each folder of data, so that an app with other data is another app."""
    return f"qwendesk-{hashlib.sha256(str(paths.data_folder()).encode()).hexdigest()[:16]}"
