"""A file on its way: `<name>.part` with what is there, `<name>.part.json` with what it is to become."""

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

from qwendesk.core.files import decode_json, is_in_use, replace
from qwendesk.core.units import show_bytes
from qwendesk.hub.network import HubTrouble
from qwendesk.hub.remote import RemoteFile

_logger = logging.getLogger(__name__)

CHUNK_BYTES = 256 * 1024
_SCAN_S = 5.0
"""A virus scanner may hold a file that just came for so long."""
_SYNC_S = 20.0
"""At most so much of a download is lost with the power."""
_SAME_START_S = 120.0
"""Two readings of when the machine started differ by less, when it is the same start."""
_NO_SPACE = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Sidecar(msgspec.Struct, frozen=True):
    """What the `.part` belongs to. `synced_bytes` survive a loss of power."""

    file: RemoteFile
    synced_bytes: int = 0
    started_at: float = 0.0
    """When the machine was started that wrote it: after another start only `synced_bytes` can be trusted."""
    version: int = 1


class PartFile:
    """The open `.part` of one file, with the hash of all it holds. Not for two threads."""

    def __init__(self, target: Path, file: RemoteFile, checked: Callable[[int], None]) -> None:
        """Takes over what an earlier run left for the same content; `checked(n_bytes)` hears of it, and may raise."""
        self.target = target
        self.file = file
        self._part = part_of(target)
        self._sidecar = self._part.with_name(self._part.name + ".json")
        self._synced_at = time.monotonic()
        kept = self._usable_bytes()
        self._write_sidecar(kept)
        self._stream: BinaryIO = self._part.open("r+b" if kept else "w+b")
        self._stream.truncate(kept)
        self._hash = new_hash(file)
        self.n_bytes = 0
        try:
            while piece := self._stream.read(CHUNK_BYTES):
                self._hash.update(piece)
                self.n_bytes += len(piece)
                checked(self.n_bytes)
        except BaseException:
            self._stream.close()
            raise

    def write(self, piece: bytes) -> None:
        """Appends; what is beyond the file's size is dropped. Raises HubTrouble when the disk refuses."""
        piece = piece[: self.file.n_bytes - self.n_bytes]
        try:
            self._stream.write(piece)
        except OSError as error:
            raise disk_trouble(error, self.target, self.file.n_bytes - self.n_bytes) from error
        self._hash.update(piece)
        self.n_bytes += len(piece)
        if time.monotonic() - self._synced_at > _SYNC_S:
            self.sync()

    def sync(self) -> None:
        """Makes what is there survive a loss of power. Raises HubTrouble when the disk refuses."""
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise disk_trouble(error, self.target, self.file.n_bytes - self.n_bytes) from error
        try:
            self._write_sidecar(self.n_bytes)
        except OSError as error:  # the one before promises less than there is, which costs nothing now
            _logger.warning("%s could not be brought up to date: %s", self._sidecar, error)
        self._synced_at = time.monotonic()

    def start_over(self) -> None:
        self._stream.seek(0)
        self._stream.truncate(0)
        self._hash, self.n_bytes = new_hash(self.file), 0
        self._write_sidecar(0)

    @property
    def is_right(self) -> bool:
        """All bytes are there and have the hash that the Hub names (where it names one)."""
        wanted = expected_hash(self.file)
        return self.n_bytes == self.file.n_bytes and wanted in ("", self._hash.hexdigest())

    def finish(self) -> None:
        """Gives the file its final name. Only for one that `is_right`. Raises HubTrouble; all that came stays then."""
        self.sync()
        if self._part.stat().st_size != self.file.n_bytes:
            sentence = f"{self._part.name} was changed by another program. Try again."
            raise HubTrouble("disk", "File changed on disk", sentence)
        self._stream.close()
        try:
            replace(self._part, self.target, _SCAN_S)
        except OSError as error:
            if is_in_use(error, self.target) and self.target.exists():
                raise _in_use(self.target) from error
            raise disk_trouble(error, self.target, 0) from error
        sync_folder(self.target.parent)
        with suppress(OSError):  # a sidecar without its part says nothing
            discard_part(self.target)

    def close(self) -> None:
        """Leaves the `.part` for later."""
        if self._stream.closed:
            return
        try:
            self._stream.close()
        except OSError as error:  # what was still in the buffer did not fit
            raise disk_trouble(error, self.target, self.file.n_bytes - self.n_bytes) from error

    def _usable_bytes(self) -> int:
        """How much of a `.part` from before can be kept."""
        try:
            before = decode_json(self._sidecar.read_bytes(), Sidecar)
            n_bytes = self._part.stat().st_size
        except (OSError, msgspec.DecodeError):
            return 0
        same = (before.file.etag, before.file.n_bytes) == (self.file.etag, self.file.n_bytes) and self.file.etag
        if not same or before.version != Sidecar(self.file).version or n_bytes > self.file.n_bytes:
            return 0
        if abs(before.started_at - psutil.boot_time()) > _SAME_START_S:
            return min(before.synced_bytes, n_bytes)
        return n_bytes

    def _write_sidecar(self, synced_bytes: int) -> None:
        # One fixed name, so that a killed process leaves nothing that the next one does not overwrite.
        new = _new_sidecar(self._part)
        with new.open("wb") as stream:
            stream.write(msgspec.json.encode(Sidecar(self.file, synced_bytes, psutil.boot_time())))
            stream.flush()
            os.fsync(stream.fileno())
        replace(new, self._sidecar)


def part_of(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def discard_part(target: Path) -> None:
    """Removes what was downloaded of `target` so far. Never the file itself."""
    part = part_of(target)
    part.unlink(missing_ok=True)
    part.with_name(part.name + ".json").unlink(missing_ok=True)
    _new_sidecar(part).unlink(missing_ok=True)


def _new_sidecar(part: Path) -> Path:
    return part.with_name(part.name + ".json.new")


def expected_hash(file: RemoteFile) -> str:
    """The hash the content must have, "" when the Hub names none that we know."""
    return file.sha256 or (file.etag if len(file.etag) in (40, 64) else "")


def new_hash(file: RemoteFile) -> "hashlib._Hash":
    """SHA-256 for large files; for small ones git's, which begins with a header."""
    if file.sha256 or len(file.etag) != 40:
        return hashlib.sha256()
    return hashlib.sha1(f"blob {file.n_bytes}\0".encode(), usedforsecurity=False)


def disk_trouble(error: OSError, target: Path, missing_bytes: int) -> HubTrouble:
    """What a refusal of the disk means for people."""
    if error.errno in _NO_SPACE:
        return no_space(target, missing_bytes)
    reason = error.strerror or str(error)
    return HubTrouble("disk", "Cannot write", f"{target.name} cannot be written to {target.parent}: {reason}.")


def _in_use(target: Path) -> HubTrouble:
    sentence = (
        f"{target.name} is in use, probably by the model that is loaded. Eject the model, then try again: "
        "what was downloaded is kept."
    )
    return HubTrouble("locked", "File in use", sentence)


def check_space(target: Path, needed_bytes: int) -> None:
    """Raises HubTrouble ("no_space") when the disk of `target` has less than `needed_bytes` free."""
    if free_bytes(target.parent) < needed_bytes:
        raise no_space(target, needed_bytes)


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def no_space(target: Path, needed_bytes: int) -> HubTrouble:
    short = max(needed_bytes - free_bytes(target.parent), 0)
    short_words = f"{short / 2**30:.2f} GB more are" if short else "more room is"
    sentence = (
        f"{target.name} still needs {show_bytes(needed_bytes)} in {target.parent}: {short_words} needed. "
        "Make room or choose another folder; what is downloaded stays."
    )
    return HubTrouble("no_space", "Not enough disk space", sentence)


def sync_folder(folder: Path) -> None:
    """Makes a new name survive a loss of power, where the system has that (Windows does it by itself)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
