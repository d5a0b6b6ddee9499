"""A partial download: `<name>.part` with the bytes, `<name>.part.json` with the file they belong to."""

import errno
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
import psutil

from qwendesk.core.files import is_in_use, reason_of, replace
from qwendesk.core.input_files import read_bounded
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.permissions import create_own, open_own
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.hub.network import HubError
from qwendesk.hub.remote import RemoteFile

_logger = logging.getLogger(__name__)

CHUNK_BYTES = 256 * 1024
# How long a virus scanner may keep a new file open.
_SCAN_S = 5.0
# A power failure loses at most this much of a download.
_SYNC_S = 20.0
# Two readings of the same boot time differ by less.
_SAME_START_S = 120.0
_SIDECAR_LIMIT_BYTES = 64 * 1024
_NO_SPACE = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Sidecar(msgspec.Struct, frozen=True):
    """The file that the `.part` belongs to. The first `synced_bytes` of the `.part` survive a power failure."""

    file: RemoteFile
    synced_bytes: int = 0
    started_at: float = 0.0
    """Boot time of the PC when this was written. After a reboot only `synced_bytes` can be trusted."""
    version: int = 1


class PartFile:
    """The open `.part` of one file, with the hash of its content. Not thread-safe."""

    def __init__(self, target: Path, file: RemoteFile, checked: Callable[[int], None]) -> None:
        """Open the `.part`, and keep and hash the bytes that an earlier run downloaded of the same content.

        `checked` is called with the number of bytes hashed so far. It may raise.
        """
        self.target = target
        self.file = file
        self._part = part_of(target)
        self._sidecar = self._part.with_name(self._part.name + ".json")
        self._synced_at = time.monotonic()
        self._stream, kept = self._open()
        self._hash = new_hash(file)
        self.n_bytes = 0
        try:
            self._write_sidecar(kept)
            self._stream.truncate(kept)
            while piece := self._stream.read(CHUNK_BYTES):
                self._hash.update(piece)
                self.n_bytes += len(piece)
                checked(self.n_bytes)
        except BaseException:
            self._stream.close()
            raise

    def write(self, piece: bytes) -> None:
        """Append `piece`, without what exceeds the file's size. Raises HubError if it can't be written."""
        piece = piece[: self.file.n_bytes - self.n_bytes]
        try:
            self._stream.write(piece)
        except OSError as error:
            raise disk_error(error, self.target, self.file.n_bytes - self.n_bytes) from error
        self._hash.update(piece)
        self.n_bytes += len(piece)
        if time.monotonic() - self._synced_at > _SYNC_S:
            self.sync()

    def sync(self) -> None:
        """Make the bytes survive a power failure. Raises HubError if they can't be written."""
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise disk_error(error, self.target, self.file.n_bytes - self.n_bytes) from error
        try:
            self._write_sidecar(self.n_bytes)
        except OSError as error:  # the older sidecar states fewer synced bytes, which is still true
            _logger.warning("%s could not be brought up to date: %s", self._sidecar, error)
        self._synced_at = time.monotonic()

    def start_over(self) -> None:
        self._stream.seek(0)
        self._stream.truncate(0)
        self._hash, self.n_bytes = new_hash(self.file), 0
        self._write_sidecar(0)

    @property
    def is_right(self) -> bool:
        """Return True if all bytes are there and have the Hub's hash, if it gives one."""
        wanted = expected_hash(self.file)
        return self.n_bytes == self.file.n_bytes and wanted in ("", self._hash.hexdigest())

    def finish(self) -> None:
        """Rename the file to its final name. Call this only if it `is_right`.

        Raises HubError if that fails; the `.part` is kept then.
        """
        self.sync()
        if self._part.stat().st_size != self.file.n_bytes:
            sentence = tr("Another program changed {0}. Try again.", self._part.name)
            raise HubError("disk", tr("File changed on disk"), sentence)
        self._stream.close()
        try:
            replace(self._part, self.target, _SCAN_S)
        except OSError as error:
            if is_in_use(error, self.target) and self.target.exists():
                raise _in_use(self.target) from error
            raise disk_error(error, self.target, 0) from error
        sync_folder(self.target.parent)
        with suppress(OSError):  # a sidecar without its .part does no harm
            discard_part(self.target)

    def close(self) -> None:
        """Close the `.part` and keep it for later."""
        if self._stream.closed:
            return
        try:
            self._stream.close()
        except OSError as error:  # the rest of the buffer did not fit
            raise disk_error(error, self.target, self.file.n_bytes - self.n_bytes) from error

    def _open(self) -> tuple[BinaryIO, int]:
        """Open the existing `.part`, or a new one. Return the stream and how many of its bytes can be kept."""
        try:
            before = decode_json(read_bounded(self._sidecar, _SIDECAR_LIMIT_BYTES), Sidecar)
            stream = open_own(self._part)
        except (OSError, msgspec.DecodeError):
            return create_own(self._part), 0
        if kept := self._usable_bytes(before, os.fstat(stream.fileno()).st_size):
            return stream, kept
        stream.close()
        return create_own(self._part), 0

    def _usable_bytes(self, before: Sidecar, n_bytes: int) -> int:
        """Return how much of an earlier `.part` of `n_bytes` can be kept."""
        same = (before.file.etag, before.file.n_bytes) == (self.file.etag, self.file.n_bytes) and self.file.etag
        if not same or before.version != Sidecar(self.file).version or n_bytes > self.file.n_bytes:
            return 0
        if abs(before.started_at - psutil.boot_time()) > _SAME_START_S:
            return max(min(before.synced_bytes, n_bytes), 0)
        return n_bytes

    def _write_sidecar(self, synced_bytes: int) -> None:
        # A fixed name, so that the next process overwrites the file that a killed one left.
        new = _new_sidecar(self._part)
        with create_own(new) as stream:
            stream.write(msgspec.json.encode(Sidecar(self.file, synced_bytes, psutil.boot_time())))
            stream.flush()
            os.fsync(stream.fileno())
        replace(new, self._sidecar)


def part_of(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def discard_part(target: Path) -> None:
    """Delete the partial download of `target`, never the file itself."""
    part = part_of(target)
    part.unlink(missing_ok=True)
    part.with_name(part.name + ".json").unlink(missing_ok=True)
    _new_sidecar(part).unlink(missing_ok=True)


def _new_sidecar(part: Path) -> Path:
    return part.with_name(part.name + ".json.new")


def expected_hash(file: RemoteFile) -> str:
    """Return the hash that the content must have; "" if the Hub gives none of a known kind."""
    return file.sha256 or (file.etag if len(file.etag) in (40, 64) else "")


def new_hash(file: RemoteFile) -> "hashlib._Hash":
    """Return SHA-256 for large files, and for small ones git's SHA-1, which begins with a header."""
    if file.sha256 or len(file.etag) != 40:
        return hashlib.sha256()
    return hashlib.sha1(f"blob {file.n_bytes}\0".encode(), usedforsecurity=False)


def disk_error(error: OSError, target: Path, missing_bytes: int) -> HubError:
    """Return the error for a failed write."""
    if error.errno in _NO_SPACE:
        return no_space(target, missing_bytes)
    sentence = tr("{0} can't be saved in {1}: {2}.", target.name, target.parent, reason_of(error, target))
    return HubError("disk", tr("Can't save"), sentence)


def _in_use(target: Path) -> HubError:
    sentence = tr(
        "{0} is in use, probably by the loaded model. Eject the model, then try again. The download is kept.",
        target.name,
    )
    return HubError("locked", tr("File in use"), sentence)


def check_space(target: Path, needed_bytes: int) -> None:
    """Raise HubError ("no_space") if the disk of `target` has less than `needed_bytes` free."""
    if free_bytes(target.parent) < needed_bytes:
        raise no_space(target, needed_bytes)


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def no_space(target: Path, needed_bytes: int) -> HubError:
    missing = max(needed_bytes - free_bytes(target.parent), 0)
    sentence = tr(
        "{0} still needs {1} in {2}, but {3} are missing. Free some space or choose another folder. The download "
        "is kept.",
        target.name,
        show_bytes(needed_bytes),
        target.parent,
        show_bytes(missing),
    )
    return HubError("no_space", tr("Not enough disk space"), sentence)


def sync_folder(folder: Path) -> None:
    """Make a new file name in `folder` survive a power failure. Does nothing on Windows, which needs no such call."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
