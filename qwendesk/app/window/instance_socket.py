"""The socket over which a later start reaches the user's first window, and checks that it belongs to this user.

Another user must not be able to create the socket, because it receives the paths of this user's files.
"""

import hashlib
import os
import socket
import stat
import struct
import sys
from pathlib import Path

import psutil

from qwendesk.core import paths
from qwendesk.core.permissions import make_folder

_LONGEST_NAME_BYTES = 100
"""Operating systems limit a socket's path to 104 (macOS) or 108 bytes (Linux)."""
_MACOS_LOCAL, _MACOS_PEER_CREDENTIALS, _MACOS_CREDENTIALS_BYTES = 0, 1, 76
"""SOL_LOCAL, LOCAL_PEERCRED and the size of struct xucred in <sys/un.h> and <sys/ucred.h>."""


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
