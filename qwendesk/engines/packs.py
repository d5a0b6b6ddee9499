"""Downloads, verifies and unpacks engine packs: those in the app's list that are for this PC."""

import asyncio
import fnmatch
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.engine_manifest import (
    MANIFEST_NAME,
    EngineFile,
    EngineFolder,
    EnginePack,
    PackArchive,
)
from qwendesk.core.files import replace, write_whole
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.links import BehindLink, remove_tree
from qwendesk.core.observed import Observed
from qwendesk.core.permissions import file_mode, make_folder
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB, show_bytes
from qwendesk.engine.engine_folders import read_engine
from qwendesk.engines.archive_sums import ArchiveSums
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import DownloadControl, SpeedLimit
from qwendesk.hub.download_part import part_of
from qwendesk.hub.download_queue import TransferRate
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import FixedAddresses

PackPhase = Literal["", "checking", "downloading", "waiting", "unpacking"]

# Folder of archives until they are unpacked, on the same drive as the engines. It is not taken for an engine.
DOWNLOADS = ".fetching"
# Stands between the pack's name and random letters in the name of a folder that is being unpacked.
_UNPACKING = ".unpacking-"
# How much larger than its archives an engine is, about: NVIDIA's libraries have 1.4 times their size.
_UNPACKED_RATIO = 2
# Disk space that is left free: chats are saved on the same drive.
_SPARE_BYTES = 256 * MIB
# Larger files are refused: the largest expected library, cublasLt, has 0.7 GB.
_MAX_MEMBER_BYTES = 4 * 1024**3
# How long to wait for the virus scanner of Windows, which keeps a new engine's gigabytes of libraries open.
SCANNER_TIMEOUT_S = 20.0


class PackList(msgspec.Struct, frozen=True):
    """The content of resources/engine_packs.json."""

    format: int
    packs: tuple[EnginePack, ...] = ()
    note: str = ""


class PackState(msgspec.Struct, frozen=True):
    """An engine pack for this PC and the state of its download."""

    pack: EnginePack
    is_installed: bool = False
    """Its engine is installed, its files have the right sizes, and it belongs to this app's engine release."""
    is_running: bool = False
    done_bytes: int = 0
    """Bytes downloaded so far. More than 0 while nothing runs means that the download can be resumed."""
    phase: PackPhase = ""
    bytes_per_s: float = 0.0
    problem: str = ""
    """A sentence that says why the last try failed; "" if it did not."""
    is_offline: bool = False
    """The last try failed because the app is set to offline."""
    is_wrong: bool = False
    """The last try brought something else than the engine, so that another one would waste its download too."""


def read_packs(file: Path | None = None) -> tuple[EnginePack, ...]:
    """Return all packs that this version of the app knows. Raises msgspec.DecodeError if the list is damaged."""
    text = (file or paths.resources_folder() / "engine_packs.json").read_bytes()
    return decode_json(text, PackList).packs


def this_platform() -> str:
    """Return the platform as packs name it: "linux-x64", "windows-x64", "macos-arm64"."""
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower())
    return f"{system}-{machine or platform.machine().lower()}"


class PacksService:
    """Owns the downloads of engine packs. Call its methods on the event loop's thread."""

    def __init__(
        self,
        packs: tuple[EnginePack, ...],
        package_version: str,
        network: Callable[[], Network],
        folder: Path,
        on_platform: str = "",
        app: Observed[AppOptions] | None = None,
    ) -> None:
        """`network` returns the current connection settings. Their token is never sent."""
        self._folder = folder
        self._network, self._app = network, app or Observed(AppOptions())
        here = on_platform or this_platform()
        fitting = [
            pack
            for pack in packs
            if pack.platform == here and pack.package_version == package_version and _has_glibc(pack.minimum_glibc)
        ]
        self._states = {pack.name: self._with_disk_state(PackState(pack)) for pack in fitting}
        self._controls: dict[str, DownloadControl] = {}
        self._speeds: dict[str, TransferRate] = {}
        self._threads: dict[str, asyncio.Task[str]] = {}
        self.observed = Observed(tuple(self._states.values()))

    @property
    def states(self) -> tuple[PackState, ...]:
        return tuple(self._states.values())

    def refresh(self) -> None:
        """Check again which packs are installed: the user may have deleted or added a folder."""
        self._states = {
            name: state if state.is_running else self._with_disk_state(state) for name, state in self._states.items()
        }
        self.observed.set(self.states)

    async def install(self, name: str) -> PackState:
        """Download, verify and unpack this pack. An interrupted download is resumed.

        Return at once if the pack is installed or its download is running. Failures are in the returned state.
        """
        state = self._states[name]
        if state.is_running or state.is_installed:
            return state
        control = self._controls[name] = DownloadControl(SpeedLimit(self._app.value.download_limit_bytes_per_s))
        self._speeds[name] = TransferRate()
        loop = asyncio.get_running_loop()

        def report(phase: PackPhase, done_bytes: int) -> None:
            loop.call_soon_threadsafe(self._show_progress, name, phase, done_bytes)

        self._change(name, is_running=True, problem="", is_offline=False, is_wrong=False, phase="checking")
        self._threads[name] = thread = asyncio.create_task(
            asyncio.to_thread(self._install, state.pack, control, report)
        )
        problem, is_offline, is_wrong = "", False, False
        # `wait` does not cancel the task: if this method is cancelled, the thread continues, and `close` must stop it.
        await asyncio.wait([thread])
        try:
            problem = thread.result()
        except HubError as error:
            problem = problem_of(error)
            is_offline, is_wrong = error.kind == "offline", error.kind == "hash_mismatch"
        except zipfile.BadZipFile as error:
            problem, is_wrong = tr("The download can't be unpacked: {0}.", error), True
        except BehindLink as error:
            problem = tr(
                "{0} could not be replaced: {1}. Delete it yourself, then try again.", error.filename, error.strerror
            )
        except OSError as error:
            problem = tr(
                "The engine could not be saved in {0}: {1}. Free some space there, or try again later.",
                self._folder, error.strerror or error,
            )  # fmt: skip
        finally:
            stopped = msgspec.structs.replace(
                self._states[name],
                is_running=False,
                phase="",
                bytes_per_s=0.0,
                problem=problem,
                is_offline=is_offline,
                is_wrong=is_wrong,
            )
            self._states[name] = self._with_disk_state(stopped)
            self.observed.set(self.states)
        return self._states[name]

    def cancel(self, name: str) -> None:
        """Stop a download. The downloaded part is kept, so that it can be resumed."""
        if name in self._controls:
            self._controls[name].stop()

    async def discard(self, name: str) -> None:
        """Delete what was downloaded of a pack but not unpacked. Does nothing while the download runs."""
        if not self._states[name].is_running:
            problem = await asyncio.to_thread(self._delete_download, self._states[name].pack)
            self._change(name, problem=problem, is_offline=False)
            self.refresh()

    async def close(self) -> None:
        """Stop all downloads and wait for their end."""
        for control in self._controls.values():
            control.stop()
        await asyncio.gather(*self._threads.values(), return_exceptions=True)

    def _install(self, pack: EnginePack, control: DownloadControl, report: Callable[[PackPhase, int], None]) -> str:
        """Download and unpack a pack. Return a sentence if the user has to do something, else "".

        Runs on another thread.
        """

        def is_cut() -> bool:
            return self._network().offline

        folder, done_bytes, sums = self._download_folder(pack), 0, ArchiveSums(self._folder)
        check_room(self._folder, max(pack.n_bytes - self._bytes_on_disk(pack), 0) + _UNPACKED_RATIO * pack.n_bytes)
        found, unlisted = [], []
        for archive in pack.archives:

            def on_progress(progress: FileProgress, before: int = done_bytes) -> None:
                report(progress.phase, before + progress.n_bytes)

            network = network_for(self._network(), archive.url)
            with FixedAddresses(network, {}, is_cut).client() as client:
                real, file, is_listed = sums.look_up(archive, network, client)
            source = FixedAddresses(network, {file.path: real.url}, is_cut)
            download_file(source, file, folder / file.path, on_progress, control)
            found.append(real)
            if not archive.sha256 and not is_listed:
                unlisted.append(file.path)
            done_bytes += real.n_bytes
        report("unpacking", done_bytes)
        self._unpack(msgspec.structs.replace(pack, archives=tuple(found)), folder, control, tuple(unlisted))
        # Not before it was unpacked: a page for signing in to a network must not become what is expected.
        for name in unlisted:
            sums.keep(name, folder / name)
        return self._delete_download(pack)

    def _delete_download(self, pack: EnginePack) -> str:
        """Delete what was downloaded of `pack`. Return a sentence if it could not be deleted, else ""."""
        folder = self._download_folder(pack)
        try:
            remove_tree(folder, self._folder)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return tr(
                "The download is still in {0}: {1}. Delete that folder to free its space.",
                folder, error.strerror or error,
            )  # fmt: skip
        return ""

    def _download_folder(self, pack: EnginePack) -> Path:
        return self._folder / DOWNLOADS / f"{pack.name}-{pack.package_version}"

    def _unpack(self, pack: EnginePack, downloads: Path, control: DownloadControl, unlisted: tuple[str, ...]) -> None:
        """Unpack a pack into its engine folder. If that fails, there is no incomplete folder.

        `unlisted` names the archives whose SHA-256 is that of the first download.
        """
        make_folder(self._folder)
        for leftover in self._folder.glob(f"{pack.name}{_UNPACKING}*"):  # of an app that was killed while it unpacked
            with suppress(OSError):
                remove_tree(leftover, self._folder)
        fresh = Path(tempfile.mkdtemp(prefix=f"{pack.name}{_UNPACKING}", dir=self._folder))
        try:
            check_room(
                self._folder, sum(_unpacked_bytes(downloads / _file_name(each), each.keep) for each in pack.archives)
            )
            files = [
                file
                for archive in pack.archives
                for file in _unpack_archive(downloads / _file_name(archive), archive.keep, fresh, control)
            ]
            manifest = msgspec.structs.replace(pack.manifest(tuple(files)), unlisted=unlisted)
            write_whole(fresh / MANIFEST_NAME, msgspec.json.encode(manifest))
            with suppress(FileNotFoundError):
                remove_tree(self._folder / pack.name, self._folder)
            replace(fresh, self._folder / pack.name, SCANNER_TIMEOUT_S)
        finally:
            # This is safe even behind a link, because this call made the folder and put everything in it.
            shutil.rmtree(fresh, ignore_errors=True)

    def _with_disk_state(self, state: PackState) -> PackState:
        """Return `state` with what is on disk: whether the engine is installed, and how much was downloaded."""
        pack = state.pack
        engine = read_engine(self._folder / pack.name)
        is_installed = isinstance(engine, EngineFolder) and engine.manifest.package_version == pack.package_version
        done_bytes = 0 if is_installed else self._bytes_on_disk(pack)
        return msgspec.structs.replace(state, is_installed=is_installed, done_bytes=done_bytes)

    def _bytes_on_disk(self, pack: EnginePack) -> int:
        """Return how much of a pack was downloaded."""
        folder = self._download_folder(pack)
        endings = [part_of(Path(_file_name(each))).name for each in pack.archives]
        names = [*map(_file_name, pack.archives), *endings]
        try:
            found = [each for each in folder.iterdir() if any(fnmatch.fnmatch(each.name, name) for name in names)]
            return sum(each.stat().st_size for each in found)
        except OSError:
            return 0

    def _show_progress(self, name: str, phase: PackPhase, done_bytes: int) -> None:
        if self._states[name].is_running:
            speed = self._speeds[name]
            if phase == "downloading":
                speed.add_total(done_bytes)
            self._change(name, done_bytes=done_bytes, phase=phase, bytes_per_s=speed.bytes_per_s)

    def _change(self, name: str, **changes: object) -> None:
        self._states[name] = msgspec.structs.replace(self._states[name], **changes)
        self.observed.set(self.states)


def check_room(folder: Path, needed_bytes: int) -> None:
    """Raise HubError if the drive of `folder`, which may not exist yet, has too little room for an engine."""
    existing = next(each for each in (folder, *folder.parents) if each.is_dir())
    missing = needed_bytes + _SPARE_BYTES - shutil.disk_usage(existing).free
    if missing > 0:
        sentence = tr(
            "The engine needs {0} in {1}, and {2} are missing. Free some space there, then try again.",
            show_bytes(needed_bytes), folder, show_bytes(missing),
        )  # fmt: skip
        raise HubError("no_space", tr("Not enough space"), sentence)


def network_for(network: Network, url: str) -> Network:
    """Return the network without a token, and with the server of `url`, which error messages will name."""
    address = urlsplit(url)
    return msgspec.structs.replace(network, endpoint=f"{address.scheme}://{address.netloc}", token="")


def problem_of(error: HubError) -> str:
    """Return what to tell the user; "" if the user stopped the download."""
    if error.kind == "stopped":
        return ""
    if error.kind == "offline":
        return tr("QwenDesk is set to offline, so no engine is downloaded.")
    return error.sentence


def _has_glibc(least: str) -> bool:
    """Return whether the C library of this Linux is at least of this version; True where that is unknown."""
    found = platform.libc_ver()[1]
    numbers = [tuple(int(part) for part in text.split(".") if part.isdecimal()) for text in (found, least)]
    return not all(numbers) or numbers[0] >= numbers[1]


def _file_name(archive: PackArchive) -> str:
    return PurePosixPath(archive.url.split("?")[0]).name


def _members(archive: zipfile.ZipFile, keep: tuple[str, ...]) -> list[zipfile.ZipInfo]:
    """Return the members that match a pattern in `keep`. Raises BadZipFile unless each pattern has one.

    An engine without one of its libraries would start, and find no card.
    """
    found = [each for each in archive.infolist() if not each.is_dir()]
    for pattern in keep:
        if not any(fnmatch.fnmatch(each.filename, pattern) for each in found):
            name = PurePosixPath(archive.filename or "").name
            raise zipfile.BadZipFile(tr("{0} has none of the expected libraries", name))
    return [each for each in found if any(fnmatch.fnmatch(each.filename, pattern) for pattern in keep)]


def _unpacked_bytes(path: Path, keep: tuple[str, ...]) -> int:
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in _members(archive, keep))


def _unpack_archive(path: Path, keep: tuple[str, ...], folder: Path, control: DownloadControl) -> list[EngineFile]:
    """Unpack the members that match a pattern in `keep` into `folder`, without their own folders.

    Raises OSError, or BadZipFile if a member is damaged, missing or too large.
    """
    files = []
    with zipfile.ZipFile(path) as archive:
        for member in _members(archive, keep):
            name = PurePosixPath(member.filename).name
            if member.file_size > _MAX_MEMBER_BYTES:
                raise zipfile.BadZipFile(tr("{0} is too large", name))
            digest, target = hashlib.sha256(), folder / name
            target.touch(file_mode(target), exist_ok=False)
            with archive.open(member) as source, target.open("wb") as file:
                while piece := source.read(1024 * 1024):
                    control.check()
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            files.append(EngineFile(name, member.file_size, digest.hexdigest()))
    return files
