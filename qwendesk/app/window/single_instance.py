"""One window per user: a second start hands its files to the first window over a socket, and it comes to the front.

Another user must not be able to create the socket, because it receives the paths of this user's files.
"""

import hashlib
import logging
import os
import socket
import stat
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil
from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from qwendesk.core import paths
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.permissions import make_folder

_logger = logging.getLogger(__name__)

_CONNECT_MS = 500
# Longer than for connecting, because the first window may be busy. A window that needs more time counts as dead.
_ANSWER_MS = 2_000
_LARGEST_BYTES = 1024 * 1024
_TAKEN = b"taken\n"
# Name of the mutex that packaging/windows/qwendesk.iss checks for, so as not to replace or remove files in use.
RUNNING_MUTEX = "QwenDeskRunning"


class Handover(msgspec.Struct, frozen=True):
    """The files of a second start, for the first window."""

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
    """Carries a Handover. Emitted from `accept` on."""

    def __init__(self, names: Sequence[str] | None = None) -> None:
        """`names` are the socket names to use, by default those of `server_names`."""
        super().__init__()
        self._names = tuple(server_names() if names is None else names)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)

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

    def accept(self) -> None:
        """Take files from now on, first those of later starts that wait already. Connect `asked` before."""
        self._server.newConnection.connect(self._on_connection)
        self._on_connection()

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


# Operating systems limit a socket's path to 104 (macOS) or 108 bytes (Linux).
_LONGEST_NAME_BYTES = 100
# SOL_LOCAL, LOCAL_PEERCRED and the size of struct xucred in <sys/un.h> and <sys/ucred.h>.
_MACOS_LOCAL, _MACOS_PEER_CREDENTIALS, _MACOS_CREDENTIALS_BYTES = 0, 1, 76


def server_names() -> tuple[str, ...]:
    """Return the names at which another window may listen; a new window listens at the first. May be empty.

    They contain a hash of the data folder, because installations with different data are separate apps. On Windows
    there is one name, of a pipe that only this user can open. Elsewhere they are socket paths in folders that are
    private to this user: XDG_RUNTIME_DIR if it is private, then the app's own folders, which are created if missing.
    """
    name = f"qwendesk-{hashlib.sha256(os.fsencode(paths.data_folder())).hexdigest()[:16]}"
    if sys.platform == "win32":
        return (name,)
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folders = [Path(runtime)] if runtime else []
    for folder in paths.own_folders():
        try:
            make_folder(folder)
        except OSError:
            continue
        folders.append(folder)
    # The paths are resolved so that nobody can replace a link in them between the check and the use.
    names = (str(folder.resolve() / name) for folder in folders if folder.is_absolute() and _is_private(folder))
    return tuple(dict.fromkeys(each for each in names if len(os.fsencode(each)) <= _LONGEST_NAME_BYTES))


def is_own_socket(name: str) -> bool:
    """Return True if only this user can have created the socket at `name`; False if there is no socket.

    Call this before connecting. It is always True on Windows, where `is_own_peer` checks after connecting.
    """
    if sys.platform == "win32":
        return True
    path = Path(name)
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid() and _is_private(path.parent)


def is_own_peer(descriptor: int) -> bool:
    """Return True if the process at the other end of a connection belongs to this user.

    `descriptor` is the file descriptor of the socket, or on Windows the handle of the pipe.
    """
    if sys.platform == "win32":
        return _is_own_pipe(descriptor)
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        if sys.platform == "darwin":
            found = connection.getsockopt(_MACOS_LOCAL, _MACOS_PEER_CREDENTIALS, _MACOS_CREDENTIALS_BYTES)
            _version, user = struct.unpack_from("II", found)
        else:
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
            _process, user, _group = struct.unpack("iII", found)
    return bool(user == os.geteuid())


if sys.platform == "win32":

    def _is_own_pipe(handle: int) -> bool:
        import ctypes  # noqa: PLC0415 - needed on Windows only

        process = ctypes.c_ulong()
        server_of = ctypes.windll.kernel32.GetNamedPipeServerProcessId
        if not server_of(ctypes.c_void_p(handle), ctypes.byref(process)):
            return False
        try:
            return psutil.Process(process.value).username() == psutil.Process().username()
        except psutil.Error:
            return False  # another user's process, or one that has exited

else:

    def _is_private(folder: Path) -> bool:
        """Return True if `folder` belongs to this user and nobody else can use it."""
        try:
            found = folder.resolve().lstat()
        except (OSError, RuntimeError):
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
