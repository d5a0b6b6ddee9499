"""Other releases of llama.cpp as engines: found when the user asks or once a week, checked, tried, and kept beside.

Nothing of the engine in use changes before a new one has passed every check. A killed app leaves a folder of downloads,
which the next try resumes, and nothing else.
"""

import asyncio
import datetime
import re
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.engine_abi import build_number, own_release
from qwendesk.core.engine_knowledge import UPDATES_NAME
from qwendesk.core.engine_manifest import BEST_FIRST, Backend, EngineFolder
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_file import JsonFile, run_in_thread
from qwendesk.core.links import remove_tree
from qwendesk.core.observed import Observed
from qwendesk.core.permissions import make_folder
from qwendesk.core.translation import join_list, tr
from qwendesk.core.weekly import is_due, repeat_hourly
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_comparison import EngineComparison, compare
from qwendesk.engines.llama_releases import (
    EngineRelease,
    ReleaseServer,
    archive_address,
    archive_names,
    backends_on,
    fetch_newest,
    not_found,
    source_address,
)
from qwendesk.engines.pack_file import BadPack, PackFile, Stopped, not_saved
from qwendesk.engines.pack_installer import Examine, PackInstaller
from qwendesk.engines.packs import DOWNLOADS, check_room, network_for, problem_of, this_platform
from qwendesk.engines.release_pack import ReleaseFiles, check_headers, files_in, make_pack, sources_in
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import DownloadControl, SpeedLimit
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import FixedAddresses, RemoteFile

UpdatePhase = Literal["", "looking", "checking", "downloading", "waiting", "unpacking", "trying", "comparing"]

# Archive, made pack and tried copy exist at the same time; libraries have up to three times their archive's size.
_ROOM_RATIO = 7
_TAG = re.compile(r"\b(b[1-9]\d{3,6})\b")
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]


class EngineUpdateState(msgspec.Struct, frozen=True):
    """The newest known release, and what is done with it. Only the first three fields are saved."""

    found: EngineRelease | None = None
    """The newest release for this PC at the last look."""
    done: _Time | None = None
    """The last time that a look succeeded."""
    tried: _Time | None = None
    """The last time, whether it succeeded or not."""
    phase: UpdatePhase = ""
    done_bytes: int = 0
    problem: str = ""
    """Why the last look or try failed, in sentences; "" if it didn't."""
    added: str = ""
    """Name of the engine that was added in this session."""
    comparison: EngineComparison | None = None
    """The engine in use beside the one that was added."""
    is_offline: bool = False


class EngineUpdates:
    """Owns the search for other releases and their downloads. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engines: EngineChoiceService,
        installer: PackInstaller,
        add: Callable[[PackFile, Examine], Awaitable[None]],
        options: Observed[AppOptions],
        network: Callable[[], Network],
        *,
        is_metered: Callable[[], bool] = lambda: False,
        server: ReleaseServer | None = None,
        platform: str = "",
        compare_with: Callable[[EngineFolder | None, EngineFolder], Awaitable[EngineComparison]] = compare,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`add` unpacks a pack, tries its engine, passes it on for a closer look, and keeps it if nothing raises.

        Nothing is asked automatically while `is_metered` says that the connection is.
        """
        self.engines, self._installer, self._add = engines, installer, add
        self._options, self._network, self._server = options, network, server or ReleaseServer()
        self._platform, self._compare, self._now, self._wait = platform or this_platform(), compare_with, now, wait
        self._file = JsonFile(
            engines.user_folder / UPDATES_NAME, EngineUpdateState, EngineUpdateState, keep_unusable=False
        )
        saved = self._file.read()
        self.state = Observed(EngineUpdateState(saved.found, saved.done, saved.tried, is_offline=options.value.offline))
        self._control = DownloadControl()
        self._task: asyncio.Task[None] | None = None
        self._schedule: asyncio.Task[None] | None = None
        self._weekly: asyncio.Task[None] | None = None
        self._is_metered = is_metered
        self._unsubscribe = options.subscribe(lambda now: self.state.update(is_offline=now.offline))

    @property
    def newer(self) -> EngineRelease | None:
        """The release that was found, if it is newer than every engine here."""
        found = self.state.value.found
        if found is None or build_number(found.tag) <= build_number(self.release_in_use):
            return None
        return None if self.engines.engines.find(found.name) is not None else found

    @property
    def release_in_use(self) -> str:
        """Return llama.cpp's release of the engine in use, such as "b11312"."""
        current = self.engines.engines.current
        return current.release if current is not None else own_release()

    @property
    def previous(self) -> str:
        """Return the name of the engine that the one in use replaced, if it is still here; else ""."""
        current = self.engines.engines.current
        name = current.engine.manifest.replaces if current is not None and current.engine is not None else ""
        return name if self.engines.engines.find(name) is not None else ""

    def start(self) -> None:
        """From now on look once a week, if the user has allowed look-ups."""
        if self._schedule is None:
            self._schedule = asyncio.get_running_loop().create_task(repeat_hourly(self._look_if_due, self._wait))

    async def look(self) -> EngineRelease | None:
        """Ask GitHub for the newest release for this PC. Return it if it is newer than the engine in use."""
        await self._run(self._look())
        return self.newer

    async def get(self) -> None:
        """Download the release that was found, check and try it, compare it, and keep it beside the engine in use."""
        found = self.state.value.found
        if found is not None:
            await self._run(self._get(found))

    async def add_from(self, path: Path) -> None:
        """Do the same with archives that lie in the folder `path`, or beside the file `path`, without a network."""
        await self._run(self._add_from(path))

    def stop(self) -> None:
        """Stop what runs. What was downloaded stays, and the next try resumes it."""
        self._control.stop()
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop, and wait for the end."""
        self._unsubscribe()
        self.stop()
        for task in (self._schedule, self._weekly, self._task):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _run(self, work: Awaitable[None]) -> None:
        """Do one thing at a time, and show what goes wrong. Another call while something runs does nothing."""
        task = asyncio.ensure_future(work)
        if self._task is not None:
            task.cancel()
            return
        self._task = task
        self._control = DownloadControl(SpeedLimit(self._options.value.download_limit_bytes_per_s))
        problem = ""
        try:
            await task
        except HubError as error:
            problem = problem_of(error)
        except QwenDeskError as error:
            problem = error.sentence
        except OSError as error:
            problem = not_saved(self.engines.user_folder, error).sentence
        except asyncio.CancelledError:
            if not self._control.is_stopped:
                raise
        finally:
            self._task = None
            self.state.update(phase="", done_bytes=0, problem=problem)

    async def _look(self) -> None:
        self.state.update(phase="looking", problem="")
        backend, cuda = self._backend()
        try:
            found = await asyncio.to_thread(
                fetch_newest, self._network(), self._server, self._platform, backend, cuda, self._is_cut
            )
        except HubError:
            self._save(tried=self._now())
            raise
        if found is None:
            raise not_found(self._platform)
        self._save(found=found, done=self._now(), tried=self._now())

    async def _get(self, release: EngineRelease) -> None:
        self.state.update(phase="checking", problem="", added="", comparison=None)
        loop = asyncio.get_running_loop()

        def report(phase: UpdatePhase, n_bytes: int) -> None:
            loop.call_soon_threadsafe(partial(self.state.update, phase=phase, done_bytes=n_bytes))

        folder = await run_in_thread(partial(self._download, release, report))
        await self._add_pack(folder)

    async def _add_from(self, path: Path) -> None:
        self.state.update(phase="unpacking", problem="", added="", comparison=None)
        await self._add_pack(await run_in_thread(partial(self._pack_from, path)))

    async def _add_pack(self, folder: Path) -> None:
        self.state.update(phase="trying", done_bytes=0)
        pack = await self._installer.read(folder)
        await self._add(pack, self._examine)
        self.state.update(added=pack.manifest.name)
        await asyncio.to_thread(self._delete_downloads, folder.parent)

    async def _examine(self, engine: EngineFolder) -> None:
        """Compare an engine that runs with the one in use. Raises BadPack if it can do less."""
        self.state.update(phase="comparing")
        current = self.engines.engines.current
        compared = await self._compare(current.engine if current is not None else None, engine)
        if compared.problem:
            raise BadPack(tr("{0} was not added. {1} The engine in use stays.", engine.name, compared.problem))
        self.state.update(comparison=compared)

    def _download(self, release: EngineRelease, report: Callable[[UpdatePhase, int], None], stopped: Stopped) -> Path:
        """Return a folder with the pack. The headers come first, so that a release that doesn't fit costs little."""
        folder = self.engines.user_folder / DOWNLOADS / release.name
        self._delete_older(folder)
        check_room(self.engines.user_folder, _ROOM_RATIO * release.download_bytes)
        texts: dict[str, str] = {}
        done_bytes = 0

        def fetch(file: RemoteFile, address: str) -> Path:
            nonlocal done_bytes
            before = done_bytes
            source = FixedAddresses(network_for(self._network(), address), {file.path: address}, self._is_cut)
            on_progress: Callable[[FileProgress], None] = lambda now: report(now.phase, before + now.n_bytes)  # noqa: E731
            download_file(source, file, folder / file.path, on_progress, self._control)
            done_bytes += file.n_bytes
            return folder / file.path

        for file in release.sources:
            path = fetch(file, source_address(self._server, release, file.path))
            texts[file.path] = path.read_text(encoding="utf-8", errors="replace")
        files = ReleaseFiles(tag=release.tag, backend=release.backend, archives=(), sources=texts)
        _, fit = check_headers(files)
        if not fit.fits:
            raise BadPack(fit.why_refused)
        archives = []
        for each in release.archives:
            file = RemoteFile("", each.name, release.tag, each.n_bytes, each.sha256, each.sha256, None)
            archives.append(fetch(file, archive_address(self._server, release, each.name)))
        report("unpacking", done_bytes)
        return self._pack(msgspec.structs.replace(files, archives=tuple(archives)), folder, stopped)

    def _pack_from(self, path: Path, stopped: Stopped) -> Path:
        files = self._files_in(path if path.is_dir() else path.parent)
        check_room(self.engines.user_folder, _ROOM_RATIO * sum(each.stat().st_size for each in files.archives))
        return self._pack(files, self.engines.user_folder / DOWNLOADS / f"{files.tag}-{files.backend}", stopped)

    def _pack(self, files: ReleaseFiles, folder: Path, stopped: Stopped) -> Path:
        made = folder / "pack"
        shutil.rmtree(made, ignore_errors=True)  # of an app that was killed; this class makes all that is in it
        make_folder(made)
        current = self.engines.engines.chosen
        make_pack(files, made, current, stopped)
        return made

    def _files_in(self, folder: Path) -> ReleaseFiles:
        """Return the archives and headers of a release in the user's folder. Raises BadPack if some are missing."""
        wanted, _ = self._backend()
        on_offer = backends_on(self._platform)
        for backend in sorted(on_offer, key=lambda each: (each != wanted, BEST_FIRST.index(each))):
            patterns = archive_names("b*", self._platform, backend)
            archives = tuple(files_in(folder, patterns))
            tag = _TAG.search(archives[0].name) if archives else None
            if tag is None or len(archives) < len(patterns):
                continue
            sources = [*files_in(folder, [f"llama.cpp-{tag[1]}.zip", f"llama.cpp-{tag[1]}.tar.gz"])]
            if not sources:
                raise BadPack(
                    tr(
                        "{0} has no source of {1}, from whose headers it is checked whether the engine fits. Get "
                        "“Source code (zip)” from the same page, llama.cpp-{1}.zip.",
                        folder, tag[1],
                    )
                )  # fmt: skip
            return ReleaseFiles(tag=tag[1], backend=backend, archives=archives, sources=sources_in(sources[0]))
        names = [join_list(archive_names("bNNNNN", self._platform, each)) for each in on_offer]
        raise BadPack(tr("{0} has none of llama.cpp's archives for this PC: {1}.", folder, join_list(names)))

    def _backend(self) -> tuple[Backend, int]:
        """Return the backend whose archives suit this PC, and the major version of CUDA. Raises HubError if none."""
        current, offered = self.engines.engines.current, backends_on(self._platform)
        wanted: tuple[Backend, ...] = (current.backend,) if current is not None else ()
        if current is not None and current.has_gpu:
            wanted += ("vulkan",)
        backend = next((each for each in (*wanted, "cpu") if each in offered), None)
        if backend is None:
            raise not_found(self._platform)
        return backend, 13 if current is not None and "13" in current.name else 12

    def _look_if_due(self) -> None:
        options, state = self._options.value, self.state.value
        is_allowed = options.look_up_weekly and not options.offline and not self._is_metered()
        if is_allowed and self._task is None and is_due(self._now(), state.done, state.tried):
            self._weekly = asyncio.get_running_loop().create_task(self._run(self._look()))

    def _is_cut(self) -> bool:
        return self._network().offline or self._control.is_stopped

    def _delete_older(self, folder: Path) -> None:
        """Delete what was downloaded of other releases: nobody resumes it."""
        for other in folder.parent.glob("b*"):
            if other != folder and build_number(other.name.partition("-")[0]):
                self._delete_downloads(other)

    def _delete_downloads(self, folder: Path) -> None:
        try:
            remove_tree(folder, self.engines.user_folder)
        except OSError:
            return  # the next try of that release deletes it

    def _save(self, **changes: object) -> None:
        self.state.update(**changes)
        state = self.state.value
        self._file.try_write(EngineUpdateState(state.found, state.done, state.tried))


def what_it_costs() -> str:
    """Return what a user should know before a change to another release."""
    return tr(
        "Saved chat states are of no use to another release: each chat is processed once again when you continue it. "
        "Measured speeds start anew. Your chats and models don't change, and the engine in use stays on this PC."
    )


def what_is_trusted() -> str:
    """Return what is checked of a release, and what can't be."""
    return tr(
        "An engine is native code that runs with your user rights. QwenDesk checks that it is the file that GitHub "
        "lists for llama.cpp, that it fits, and that it answers. It can't check what else it does."
    )
