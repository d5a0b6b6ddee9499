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

import msgspec

from qwendesk.core import paths
from qwendesk.core.engines import MANIFEST_NAME, EngineFile, EngineManifest, EnginePack, PackArchive
from qwendesk.core.files import write_whole
from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.addresses import Addresses
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import Control
from qwendesk.hub.network import HubTrouble, Network
from qwendesk.hub.remote import RemoteFile

_LARGEST_MEMBER_BYTES = 4 * 1024**3
"""cublasLt alone is 0.7 GB; more than this is no library."""


class PackList(msgspec.Struct, frozen=True):
    """The file resources/engine_packs.json."""

    format: int
    packs: tuple[EnginePack, ...] = ()
    note: str = ""


class PackState(msgspec.Struct, frozen=True):
    """One pack for this PC."""

    pack: EnginePack
    is_here: bool = False
    is_running: bool = False
    done_bytes: int = 0
    problem: str = ""
    """Why the last try failed, in a sentence."""


def read_packs() -> tuple[EnginePack, ...]:
    """All packs that this version of the app knows of. Raises msgspec.DecodeError if its own file is broken."""
    text = (paths.resources_folder() / "engine_packs.json").read_bytes()
    return msgspec.json.decode(text, type=PackList).packs


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
    ) -> None:
        self._folder = folder or paths.data_folder() / "engines"
        self._network = network
        here = on_platform or this_platform()
        fitting = [pack for pack in packs if pack.platform == here and pack.package_version == package_version]
        self._states = {pack.name: PackState(pack, self._is_here(pack)) for pack in fitting}
        self._controls: dict[str, Control] = {}
        self._threads: dict[str, asyncio.Task[None]] = {}
        self._subscribers = Subscribers[tuple[PackState, ...]]()

    @property
    def states(self) -> tuple[PackState, ...]:
        return tuple(self._states.values())

    def subscribe(self, callback: Callable[[tuple[PackState, ...]], None]) -> Callable[[], None]:
        """Call `callback` with all states each time one changed. Returns what ends it."""
        return self._subscribers.add(callback)

    async def fetch(self, name: str) -> PackState:
        """Download what is missing of this pack, check it, and make its engine folder. Goes on where it was cut."""
        state = self._states[name]
        if state.is_running or state.is_here:
            return state
        control = self._controls[name] = Control()
        loop = asyncio.get_running_loop()

        def report(done_bytes: int) -> None:
            loop.call_soon_threadsafe(self._progress, name, done_bytes)

        self._set(name, is_running=True, problem="", done_bytes=0)
        self._threads[name] = thread = asyncio.create_task(asyncio.to_thread(self._fetch, state.pack, control, report))
        try:
            await thread
        except HubTrouble as trouble:
            self._set(name, is_running=False, problem="" if trouble.kind == "stopped" else trouble.sentence)
        except (OSError, zipfile.BadZipFile) as error:
            self._set(name, is_running=False, problem=f"The engine could not be unpacked: {error}.")
        else:
            self._set(name, is_running=False, is_here=True)
        return self._states[name]

    def cancel(self, name: str) -> None:
        """Stop; what came stays for the next try."""
        if name in self._controls:
            self._controls[name].stop()

    async def delete(self, name: str) -> None:
        """Take the engine's folder away. Raises OSError when a file of it is in use."""
        await asyncio.to_thread(shutil.rmtree, self._folder / name)
        self._set(name, is_here=False)

    async def close(self) -> None:
        """Stop everything; nothing runs afterwards."""
        for control in self._controls.values():
            control.stop()
        await asyncio.gather(*self._threads.values(), return_exceptions=True)

    def _fetch(self, pack: EnginePack, control: Control, report: Callable[[int], None]) -> None:
        """On another thread."""
        cache = paths.cache_folder() / "engines" / pack.name
        addresses = {_file_name(each): each.url for each in pack.archives}
        source = Addresses(self._network(), addresses, lambda: self._network().offline)
        done_bytes = 0
        for archive in pack.archives:

            def on_progress(progress: FileProgress, before: int = done_bytes) -> None:
                report(before + progress.n_bytes)

            file = RemoteFile(pack.title, _file_name(archive), "", archive.n_bytes, archive.sha256, "", None)
            download_file(source, file, cache / _file_name(archive), on_progress, control)
            done_bytes += archive.n_bytes
        self._unpack(pack, cache)
        shutil.rmtree(cache, ignore_errors=True)

    def _unpack(self, pack: EnginePack, cache: Path) -> None:
        """The folder appears whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{pack.name}.", dir=self._folder))
        try:
            files = [
                file
                for archive in pack.archives
                for file in _unpack_archive(cache / _file_name(archive), archive.keep, fresh)
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
            fresh.rename(self._folder / pack.name)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _is_here(self, pack: EnginePack) -> bool:
        return (self._folder / pack.name / MANIFEST_NAME).is_file()

    def _progress(self, name: str, done_bytes: int) -> None:
        if self._states[name].is_running:
            self._set(name, done_bytes=done_bytes)

    def _set(self, name: str, **changes: object) -> None:
        self._states[name] = msgspec.structs.replace(self._states[name], **changes)
        self._subscribers.notify(self.states)


def _file_name(archive: PackArchive) -> str:
    return PurePosixPath(archive.url.split("?")[0]).name


def _unpack_archive(path: Path, keep: tuple[str, ...], folder: Path) -> list[EngineFile]:
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
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            files.append(EngineFile(name, member.file_size, digest.hexdigest()))
    return files
