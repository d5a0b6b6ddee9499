"""Reads engine packs that a user has as a file: a zip archive, or a folder, with libraries and their `engine.json`.

Nothing is believed but what was read here. Unpacking writes only the files that `engine.json` names, under plain names,
and refuses one whose size or SHA-256 is not the one it states. So no path in an archive leads out of the folder, a link
becomes no link, and an archive can't grow beyond the sizes that were checked.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

import msgspec

from qwendesk.core.engine_manifest import (
    MANIFEST_FORMAT,
    MANIFEST_NAME,
    EngineFile,
    EngineFolder,
    EngineManifest,
    EnginePack,
)
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import locked, replace, write_whole
from qwendesk.core.input_files import open_regular
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.links import BehindLink, link_to
from qwendesk.core.permissions import create_own, make_folder
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB, MIB, show_bytes
from qwendesk.engines.packs import this_platform

# Returns True once the user no longer wants the result.
Stopped = Callable[[], bool]

# The library that every engine has, by the system in the platform's name.
_LLAMA = {"linux": "libllama.so", "windows": "llama.dll", "macos": "libllama.dylib"}
_SYSTEM_TITLES = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}
_MAX_MANIFEST_BYTES = MIB
_MAX_FILES = 200
# Of all files together. The largest expected engine, CUDA for all cards with cuBLAS, has 2 GB.
_MAX_BYTES = 8 * GIB
# Disk space that is left free: chats are saved on the same drive.
_SPARE_BYTES = 256 * MIB
_CHUNK_BYTES = MIB
_ENGINE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}(?<!\.)")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}(?<!\.)")
# Windows takes these for devices, whatever their ending is.
_DEVICE_NAME = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Starts the name of a folder in which a pack is unpacked and tried. It lies on the drive of the engines.
_STAGING = ".adding-"
_LOCK = ".adding"
# Folder in a staging folder for the engine of the same name, until the new one has its place.
_REPLACED = ".replaced"
# What zipfile raises for archives that are damaged, encrypted or packed in a way that Python doesn't know.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)


class BadPack(QwenDeskError):
    """An engine pack that can't be added."""

    def __init__(self, sentence: str) -> None:
        super().__init__(tr("Engine not added"), sentence)


class PackStopped(Exception):
    """Reading or unpacking was stopped. Nothing is left of it."""


class PackFile(msgspec.Struct, frozen=True, kw_only=True):
    """A pack that was read and may be unpacked."""

    path: str
    """The archive, or the folder."""
    sha256: str
    """Of the archive. For a folder, of its `engine.json`, which has the hash of every other file."""
    manifest: EngineManifest
    is_listed: bool = False
    """True if the app's own list of packs has this very archive."""

    @property
    def n_bytes(self) -> int:
        """Size of the engine once it is unpacked."""
        return sum(file.n_bytes for file in self.manifest.files)


def read_pack_file(path: Path, listed: Sequence[EnginePack], stopped: Stopped = lambda: False) -> PackFile:
    """Return the pack at `path`: a zip archive, a folder, or the file `engine.json` in a folder.

    Reads a whole archive, which takes seconds. Raises BadPack or PackStopped.
    """
    path = path.parent if path.name == MANIFEST_NAME else path
    try:
        if path.is_dir():
            if not os.path.lexists(path / MANIFEST_NAME):
                raise _not_a_pack(path, tr("It has no file {0}.", MANIFEST_NAME))
            with open_regular(path / MANIFEST_NAME, _MAX_MANIFEST_BYTES) as file:
                content = file.read(_MAX_MANIFEST_BYTES)
            sha256 = hashlib.sha256(content).hexdigest()
        else:
            with open_regular(path) as raw:
                sha256 = _sha256(raw, stopped)
                raw.seek(0)
                with zipfile.ZipFile(raw) as archive:
                    content = _manifest_in(path, archive)
    except OSError as error:
        raise BadPack(tr("{0} can't be read: {1}.", path, error.strerror or error)) from error
    except _UNREADABLE as error:
        raise _not_a_pack(path, tr("It is not a complete zip archive.")) from error
    known = {archive.sha256 for pack in listed if pack.platform == this_platform() for archive in pack.archives}
    return PackFile(path=str(path), sha256=sha256, manifest=_checked(path, content), is_listed=sha256 in known)


def unpack(pack: PackFile, folder: Path, stopped: Stopped = lambda: False) -> EngineFolder:
    """Unpack a pack into a new staging folder in `folder`, and return the engine there.

    `finish_interrupted` deletes the staging folder. Raises BadPack or PackStopped; nothing is left then.
    """
    try:
        make_folder(folder)
        missing = pack.n_bytes + _SPARE_BYTES - shutil.disk_usage(folder).free
        if missing > 0:
            raise BadPack(
                tr("There is not enough room in {0}: free {1} there, then try again.", folder, show_bytes(missing))
            )
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
    except OSError as error:
        raise not_saved(folder, error) from error
    try:
        engine = staging / pack.manifest.name
        make_folder(engine)
        _copy_files(pack, engine, stopped)
        # Written last: without it, a folder is no engine.
        write_whole(engine / MANIFEST_NAME, msgspec.json.format(msgspec.json.encode(pack.manifest), indent=1))
    except OSError as error:
        _remove_staging(staging)
        raise not_saved(folder, error) from error
    except BaseException:
        _remove_staging(staging)
        raise
    return EngineFolder(str(engine), pack.manifest)


def put_in_place(engine: EngineFolder, folder: Path, timeout_s: float) -> Path:
    """Move an unpacked engine to its place in `folder`, and return that. An older engine of its name is replaced.

    The older one stays in the staging folder. `timeout_s` is how long to wait for a virus scanner of Windows. Raises
    BadPack; the older engine is at its place then.
    """
    unpacked = Path(engine.path)
    target, older = folder / engine.name, unpacked.parent / _REPLACED / engine.name
    try:
        if os.path.lexists(target):
            link = link_to(target, folder)
            if link is not None and link != target:
                raise BehindLink(target, link)
            if link is None and not (target / MANIFEST_NAME).is_file():
                raise BadPack(tr("{0} exists, but is no engine. Rename or move it, then try again.", target))
            make_folder(older.parent)
            replace(target, older, timeout_s)
        try:
            replace(unpacked, target, timeout_s)
        except OSError:
            _put_back(older, target)
            raise
    except OSError as error:
        raise BadPack(
            tr(
                "{0} could not be replaced: {1}. Close other windows of QwenDesk and try again.",
                target, error.strerror or error,
            )
        ) from error  # fmt: skip
    return target


def finish_interrupted(folder: Path) -> None:
    """Delete all staging folders in `folder`; nobody else may be adding a pack now (`adding_alone`).

    An engine that was about to be replaced when the app was killed, and has no successor, gets its place back.
    """
    for staging in folder.glob(f"{_STAGING}*/"):
        try:
            for older in (staging / _REPLACED).glob("*"):
                _put_back(older, folder / older.name)
        except OSError:
            continue  # the older engine is still in it
        _remove_staging(staging)


def recover(folder: Path) -> None:
    """Call `finish_interrupted` if an app was killed while it added a pack. Does nothing while one is being added."""
    if next(folder.glob(f"{_STAGING}*/"), None) is not None:
        with suppress(OSError), adding_alone(folder) as is_alone:
            if is_alone:
                finish_interrupted(folder)


def adding_alone(folder: Path) -> AbstractContextManager[bool]:
    """Return a lock for adding packs to `folder`, which gives False while another process or window is adding one."""
    return locked(folder / _LOCK)


def _put_back(older: Path, target: Path) -> None:
    if os.path.lexists(older) and not os.path.lexists(target):
        older.replace(target)


def _remove_staging(staging: Path) -> None:
    # This is safe even behind a link, because this module made the folder and put everything in it.
    shutil.rmtree(staging, ignore_errors=True)


def _manifest_in(path: Path, archive: zipfile.ZipFile) -> bytes:
    """Return the content of the `engine.json` in the archive at `path`. Raises BadPack unless there is exactly one."""
    found = [member for member in archive.infolist() if PurePosixPath(member.filename).name == MANIFEST_NAME]
    if len(found) != 1:
        reason = tr("It has no file {0}.", MANIFEST_NAME) if not found else tr("It has {0} twice.", MANIFEST_NAME)
        raise _not_a_pack(path, reason)
    with archive.open(found[0]) as file:
        return file.read(_MAX_MANIFEST_BYTES)


def _checked(path: Path, content: bytes) -> EngineManifest:
    """Return the manifest if it states nothing impossible. Raises BadPack."""
    try:
        manifest = decode_json(content, EngineManifest)
    except msgspec.DecodeError as error:
        raise _not_a_pack(path, tr("Its file {0} is damaged: {1}.", MANIFEST_NAME, error)) from error
    names = [file.name for file in manifest.files]
    if manifest.format > MANIFEST_FORMAT:
        raise BadPack(tr("It was made for a newer QwenDesk. Update QwenDesk, then add it again."))
    if not _ENGINE_NAME.fullmatch(manifest.name) or _DEVICE_NAME.fullmatch(manifest.name):
        raise _not_a_pack(path, tr('Its name "{0}" can\'t be the name of a folder.', manifest.name))
    bad = next((name for name in names if not _is_plain(name)), None)
    if bad is not None:
        raise _not_a_pack(path, tr('Its file list names a file outside the folder: "{0}".', bad))
    if len({name.lower() for name in names}) != len(names):
        raise _not_a_pack(path, tr("Its file list names a file twice."))
    if not all(file.n_bytes >= 0 and _SHA256.fullmatch(file.sha256) for file in manifest.files):
        raise _not_a_pack(path, tr("Its file list has a wrong size or hash."))
    if len(names) > _MAX_FILES or sum(file.n_bytes for file in manifest.files) > _MAX_BYTES:
        raise _not_a_pack(path, tr("It is larger than any engine."))
    _check_system(path, names)
    return manifest


def _is_plain(name: str) -> bool:
    return bool(_FILE_NAME.fullmatch(name)) and not _DEVICE_NAME.fullmatch(name) and name != MANIFEST_NAME


def _check_system(path: Path, names: Collection[str]) -> None:
    """Raise BadPack if the pack has no library llama for this system."""
    here = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    systems = [system for system, library in _LLAMA.items() if library in names]
    if not systems:
        raise _not_a_pack(path, tr("It has no library llama."))
    if here not in systems:
        raise BadPack(
            tr(
                "It is an engine for {0}, but this PC runs {1}. Get the pack for {2}.",
                _SYSTEM_TITLES[systems[0]], _SYSTEM_TITLES[here], this_platform(),
            )
        )  # fmt: skip


def _copy_files(pack: PackFile, target: Path, stopped: Stopped) -> None:
    """Write the pack's files into `target`. Raises BadPack, PackStopped or OSError."""
    source = Path(pack.path)
    with ExitStack() as closing:
        archive = None
        try:
            if not source.is_dir():
                archive = closing.enter_context(zipfile.ZipFile(closing.enter_context(open_regular(source))))
            for file in pack.manifest.files:
                with _open_member(archive, source, file) as content, create_own(target / file.name) as written:
                    _copy_file(content, written, file, stopped)
        except _UNREADABLE as error:
            raise _not_a_pack(source, tr("It is not a complete zip archive.")) from error


def _open_member(archive: zipfile.ZipFile | None, folder: Path, file: EngineFile) -> IO[bytes]:
    """Open a file of the pack for reading. Raises BadPack if it is missing or is there twice."""
    try:
        if archive is None:
            return open_regular(folder / file.name)
    except OSError as error:
        raise BadPack(tr("{0} can't be read: {1}.", folder / file.name, error.strerror or error)) from error
    found = [each for each in archive.infolist() if PurePosixPath(each.filename).name == file.name]
    if len(found) != 1:
        raise _not_a_pack(folder, tr("{0} is missing.", file.name) if not found else tr("It has {0} twice.", file.name))
    return archive.open(found[0])


def _copy_file(content: IO[bytes], written: BinaryIO, file: EngineFile, stopped: Stopped) -> None:
    """Copy a file, whose size and hash must be those of the manifest. Raises BadPack, PackStopped or OSError."""
    digest, left = hashlib.sha256(), file.n_bytes
    while piece := content.read(min(_CHUNK_BYTES, left + 1)):
        if stopped():
            raise PackStopped
        left -= len(piece)
        if left < 0:
            break
        digest.update(piece)
        written.write(piece)
    if left or digest.hexdigest() != file.sha256:
        raise BadPack(tr("Its file {0} is damaged or was changed. Get the pack again.", file.name))
    written.flush()


def _sha256(file: IO[bytes], stopped: Stopped) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_CHUNK_BYTES):
        if stopped():
            raise PackStopped
        digest.update(piece)
    return digest.hexdigest()


def _not_a_pack(path: Path, reason: str) -> BadPack:
    return BadPack(
        tr("{0} is not an engine pack. {1} Choose a pack's zip file, or the file {2} in its folder.",
           path, reason, MANIFEST_NAME)
    )  # fmt: skip


def not_saved(folder: Path, error: OSError) -> BadPack:
    """Return the error for a folder of engines that can't be written to."""
    return BadPack(
        tr("The engine could not be saved in {0}: {1}. Free some space there, or try again later.",
           folder, error.strerror or error)
    )  # fmt: skip


def pack_facts(pack: PackFile, *, digits_per_group: int = 64) -> tuple[str, ...]:
    """Return paragraphs: what the pack is, its SHA-256, and whether the app's list knows it.

    Spaces between groups of digits let a narrow label wrap; without them the SHA-256 can be searched for.
    """
    manifest = pack.manifest
    starts = range(0, len(pack.sha256), digits_per_group)
    groups = [pack.sha256[start : start + digits_per_group] for start in starts]
    trust = (
        tr("This pack is on QwenDesk's list: it is unchanged.")
        if pack.is_listed
        else tr(
            "This pack is not on QwenDesk's list. An engine is native code that runs with your user rights: it can "
            "read, change and delete your files. Add it only if you trust where you got it."
        )
    )
    return (
        tr("Release {0}, {1}, from {2}", manifest.shown_release, show_bytes(pack.n_bytes), pack.path),
        tr("SHA-256: {0}", " ".join(groups)),
        trust,
    )
