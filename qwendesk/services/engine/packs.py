"""Engines that can be fetched: what the app's list offers for this PC, downloaded, checked and unpacked."""

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
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from qwendesk.core import paths
from qwendesk.core.engines import MANIFEST_NAME, EngineFile, EngineFolder, EngineManifest, EnginePack, PackArchive
from qwendesk.core.files import decode_json, replace, write_whole
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.folders import read_engine
from qwendesk.hub.addresses import Addresses
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import Control, SpeedLimit
from qwendesk.hub.download_part import part_of
from qwendesk.hub.network import HubTrouble, Network
from qwendesk.hub.queue_state import Speed
from qwendesk.hub.remote import RemoteFile

PackPhase = Literal["", "checking", "downloading", "waiting", "unpacking"]

_FETCHING = ".fetching"
"""Archives lie there until they are unpacked: on the drive of the engines, and no engine itself."""
_LARGEST_MEMBER_BYTES = 4 * 1024**3
"""cublasLt alone is 0.7 GB; more than this is no library."""


_SCAN_S = 20.0
"""So long may the virus scanner of Windows hold a new engine, whose libraries are gigabytes to look at."""


class PackList(msgspec.Struct, frozen=True):
    """The file resources/engine_packs.json."""

    format: int
    packs: tuple[EnginePack, ...] = ()
    note: str = ""


class PackState(msgspec.Struct, frozen=True):
    """One pack for this PC."""

    pack: EnginePack
    is_here: bool = False
    """Its engine folder is there, whole by its files' sizes, and of this app's release."""
    is_running: bool = False
    done_bytes: int = 0
    """Downloaded so far; more than 0 while nothing runs: it goes on from there."""
    phase: PackPhase = ""
    bytes_per_s: float = 0.0
    problem: str = ""
    """Why the last try failed, in a sentence."""
    is_offline: bool = False
    """The last try failed because the app is set to offline."""


def read_packs(file: Path | None = None) -> tuple[EnginePack, ...]:
    """All packs that this version of the app knows of. Raises msgspec.DecodeError if its own file is broken."""
    text = (file or paths.resources_folder() / "engine_packs.json").read_bytes()
    return decode_json(text, PackList).packs


def this_platform() -> str:
    """As packs name it: "linux-x64", "windows-x64", "macos-arm64"."""
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower())
    return f"{system}-{machine or platform.machine().lower()}"


class PacksService:
    """Owns what is being fetched. Methods are called on the event loop's thread."""

    def __init__(
        self,
        packs: tuple[EnginePack, ...],
        package_version: str,
        network: Callable[[], Network],
        folder: Path | None = None,
        on_platform: str = "",
        limit_bytes_per_s: Callable[[], int] = lambda: 0,
    ) -> None:
        """`network` says how connections are to be made now; its token is never used."""
        self._folder = folder or paths.data_folder() / "engines"
        self._network, self._limit_bytes_per_s = network, limit_bytes_per_s
        here = on_platform or this_platform()
        fitting = [pack for pack in packs if pack.platform == here and pack.package_version == package_version]
        self._states = {pack.name: self._looked_at(PackState(pack)) for pack in fitting}
        self._controls: dict[str, Control] = {}
        self._speeds: dict[str, Speed] = {}
        self._threads: dict[str, asyncio.Task[None]] = {}
        self._subscribers = Subscribers[tuple[PackState, ...]]()

    @property
    def states(self) -> tuple[PackState, ...]:
        return tuple(self._states.values())

    def subscribe(self, callback: Callable[[tuple[PackState, ...]], None]) -> Callable[[], None]:
        """Call `callback` with all states each time one changed. Returns what ends it."""
        return self._subscribers.add(callback)

    def look(self) -> None:
        """See again which packs are there: a folder may have been deleted or put there by hand."""
        self._states = {
            name: state if state.is_running else self._looked_at(state) for name, state in self._states.items()
        }
        self._subscribers.notify(self.states)

    async def fetch(self, name: str) -> PackState:
        """Download what is missing of this pack, check it, and make its engine folder. Goes on where it was cut."""
        state = self._states[name]
        if state.is_running or state.is_here:
            return state
        control = self._controls[name] = Control(SpeedLimit(self._limit_bytes_per_s()))
        self._speeds[name] = Speed()
        loop = asyncio.get_running_loop()

        def report(phase: PackPhase, done_bytes: int) -> None:
            loop.call_soon_threadsafe(self._progress, name, phase, done_bytes)

        self._set(name, is_running=True, problem="", is_offline=False, phase="checking")
        self._threads[name] = thread = asyncio.create_task(asyncio.to_thread(self._fetch, state.pack, control, report))
        problem, is_offline = "", False
        # Not awaited itself: if this is cancelled the thread goes on, and `close` must still find and end it.
        await asyncio.wait([thread])
        try:
            thread.result()
        except HubTrouble as trouble:
            problem, is_offline = _sentence(trouble), trouble.kind == "offline"
        except zipfile.BadZipFile as error:
            problem = f"What came cannot be unpacked: {error}."
        except OSError as error:
            what = error.strerror or str(error)
            problem = f"The engine could not be put into {self._folder}: {what}. Make room there, or try again later."
        finally:
            rested = msgspec.structs.replace(
                self._states[name], is_running=False, phase="", bytes_per_s=0.0, problem=problem, is_offline=is_offline
            )
            self._states[name] = self._looked_at(rested)
            self._subscribers.notify(self.states)
        return self._states[name]

    def cancel(self, name: str) -> None:
        """Stop; what came stays for the next try."""
        if name in self._controls:
            self._controls[name].stop()

    async def discard(self, name: str) -> None:
        """Throw away what was downloaded and not unpacked. Nothing while it runs."""
        if not self._states[name].is_running:
            await asyncio.to_thread(shutil.rmtree, self._cache(self._states[name].pack), ignore_errors=True)
            self._set(name, problem="", is_offline=False)
            self.look()

    async def close(self) -> None:
        """Stop everything; nothing runs afterwards."""
        for control in self._controls.values():
            control.stop()
        await asyncio.gather(*self._threads.values(), return_exceptions=True)

    def _fetch(self, pack: EnginePack, control: Control, report: Callable[[PackPhase, int], None]) -> None:
        """On another thread."""
        cache, done_bytes = self._cache(pack), 0
        for archive in pack.archives:

            def on_progress(progress: FileProgress, before: int = done_bytes) -> None:
                report(progress.phase, before + progress.n_bytes)

            name = _file_name(archive)
            source = Addresses(self._network_for(archive), {name: archive.url}, lambda: self._network().offline)
            file = RemoteFile(pack.title, name, "", archive.n_bytes, archive.sha256, archive.sha256, None)
            download_file(source, file, cache / name, on_progress, control)
            done_bytes += archive.n_bytes
        report("unpacking", done_bytes)
        self._unpack(pack, cache, control)
        shutil.rmtree(cache, ignore_errors=True)

    def _network_for(self, archive: PackArchive) -> Network:
        """Troubles are told of the archive's own server, and nobody's token goes there."""
        address = urlsplit(archive.url)
        return msgspec.structs.replace(self._network(), endpoint=f"{address.scheme}://{address.netloc}", token="")

    def _cache(self, pack: EnginePack) -> Path:
        return self._folder / _FETCHING / f"{pack.name}-{pack.package_version}"

    def _unpack(self, pack: EnginePack, cache: Path, control: Control) -> None:
        """The folder appears whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for left in self._folder.glob(f"{pack.name}.*"):  # of an app that was killed while it unpacked
            shutil.rmtree(left, ignore_errors=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{pack.name}.", dir=self._folder))
        try:
            files = [
                file
                for archive in pack.archives
                for file in _unpack_archive(cache / _file_name(archive), archive.keep, fresh, control)
            ]
            manifest = EngineManifest(
                name=pack.name,
                package_version=pack.package_version,
                llama_cpp_commit=pack.llama_cpp_commit,
                backend=pack.backend,
                cpu_needs=pack.cpu_needs,
                gpu_architectures=pack.gpu_architectures,
                minimum_driver=pack.minimum_driver,
                files=tuple(files),
            )
            write_whole(fresh / MANIFEST_NAME, msgspec.json.encode(manifest))
            shutil.rmtree(self._folder / pack.name, ignore_errors=True)
            replace(fresh, self._folder / pack.name, _SCAN_S)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _looked_at(self, state: PackState) -> PackState:
        pack = state.pack
        engine = read_engine(self._folder / pack.name)
        is_here = isinstance(engine, EngineFolder) and engine.manifest.package_version == pack.package_version
        targets = [self._cache(pack) / _file_name(each) for each in pack.archives]
        done_bytes = 0 if is_here else sum(map(_size_on_disk, targets))
        return msgspec.structs.replace(state, is_here=is_here, done_bytes=done_bytes)

    def _progress(self, name: str, phase: PackPhase, done_bytes: int) -> None:
        if self._states[name].is_running:
            speed = self._speeds[name]
            if phase == "downloading":
                speed.see(done_bytes)
            self._set(name, done_bytes=done_bytes, phase=phase, bytes_per_s=speed.bytes_per_s)

    def _set(self, name: str, **changes: object) -> None:
        self._states[name] = msgspec.structs.replace(self._states[name], **changes)
        self._subscribers.notify(self.states)


def _sentence(trouble: HubTrouble) -> str:
    if trouble.kind == "stopped":
        return ""
    if trouble.kind == "offline":
        return "QwenDesk is set to offline, so no engine is fetched."
    return trouble.sentence


def _file_name(archive: PackArchive) -> str:
    return PurePosixPath(archive.url.split("?")[0]).name


def _size_on_disk(target: Path) -> int:
    """Of a download: what is whole, or what came of it so far."""
    for path in (target, part_of(target)):
        try:
            return path.stat().st_size
        except OSError:
            continue
    return 0


def _unpack_archive(path: Path, keep: tuple[str, ...], folder: Path, control: Control) -> list[EngineFile]:
    """The members that match, without their folders. Raises OSError, or BadZipFile when a member is damaged."""
    files = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = PurePosixPath(member.filename).name
            if member.is_dir() or not any(fnmatch.fnmatch(member.filename, pattern) for pattern in keep):
                continue
            if member.file_size > _LARGEST_MEMBER_BYTES:
                raise zipfile.BadZipFile(f"{name} is too large")
            digest, target = hashlib.sha256(), folder / name
            with archive.open(member) as source, target.open("xb") as file:
                while piece := source.read(1024 * 1024):
                    control.check()
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            files.append(EngineFile(name, member.file_size, digest.hexdigest()))
    if not files:
        raise zipfile.BadZipFile(f"{path.name} holds none of the libraries that were expected")
    return files
