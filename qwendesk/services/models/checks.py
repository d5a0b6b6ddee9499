"""The state of every model file: a quick look when one appears or changes, a full check when asked, kept up to date.

A quick look reads headers, sizes and records. A full check computes the SHA-256 of every file and, unless the app is
offline, asks the Hub. The Hub is asked on request alone: nothing here connects by itself.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.hashing import HashCancelled, hash_file
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.services.models.judging import Judge, ModelCheck
from qwendesk.services.models.service import ModelsService
from qwendesk.services.settings import SettingsService

if TYPE_CHECKING:
    from qwendesk.hub.asking import AsksHub

_AT_ONCE = 16
"""Models judged before the window hears of them."""
_Stamp = tuple[tuple[str, int, int], ...]

OFFLINE = "QwenDesk is set to offline, so Hugging Face was not asked."


class FullCheck(msgspec.Struct, frozen=True):
    """A full check that runs or waits for another one."""

    n_done: int
    """Bytes hashed."""
    n_bytes: int


class CheckNews(msgspec.Struct, frozen=True):
    """These models have another check, or their full check went on."""

    paths: tuple[str, ...]


class _Run:
    """A full check while it is on."""

    def __init__(self, n_bytes: int) -> None:
        self.progress = FullCheck(0, n_bytes)
        self.stop = threading.Event()


class ChecksService:
    """Owns the checks. Methods are called on the event loop's thread; files are read on others."""

    def __init__(
        self, models: ModelsService, settings: SettingsService, connect: "Callable[[], AsksHub] | None" = None
    ) -> None:
        """`connect` makes the Hub to ask, on another thread; without it the Hub is never asked."""
        self._models, self._settings, self._connect = models, settings, connect
        self._judge = Judge()
        self._checks: dict[str, ModelCheck] = {}
        self._stamps: dict[str, _Stamp] = {}
        self._runs: dict[str, _Run] = {}
        self._one_full = asyncio.Lock()
        self._quick: asyncio.Task[None] | None = None
        self._is_closing = False
        self._subscribers = Subscribers[CheckNews]()
        self._unsubscribe = models.subscribe_library(self._on_library)
        if models.library.everything:
            self._on_library(models.library)

    @property
    def is_looking(self) -> bool:
        """Whether quick looks are under way."""
        return self._quick is not None

    def subscribe(self, callback: Callable[[CheckNews], None]) -> Callable[[], None]:
        """Call `callback` with each change. Returns what ends it."""
        return self._subscribers.add(callback)

    @property
    def checks(self) -> Mapping[str, ModelCheck]:
        """By the path of the model; what has not been looked at yet is not there."""
        return MappingProxyType(self._checks)

    def check(self, path: str) -> ModelCheck | None:
        """What is known of the model at `path`; None before the first look."""
        return self._checks.get(path)

    def running(self, path: str) -> FullCheck | None:
        """How far its full check is; None when there is none."""
        run = self._runs.get(path)
        return None if run is None else run.progress

    async def catalog(self) -> Catalog:
        """The catalog with what the Hub said since."""
        return await asyncio.to_thread(lambda: self._judge.catalog)

    async def settled(self) -> None:
        """Wait until every model of the library has had its quick look."""
        while self._quick is not None:
            await asyncio.wait([self._quick])

    async def verify(self, path: str) -> tuple[str, ...]:
        """The full check of the model at `path`, one after the other; at once where every hash is remembered.

        Returns sentences about what could not be compared. A cancelled check leaves everything as it was.
        """
        model = self._model(path)
        if model is None or path in self._runs or self._is_closing:
            return ()
        run = self._runs[path] = _Run(model.n_bytes)
        self._tell(path)
        try:
            async with self._one_full:
                hashes = await asyncio.to_thread(self._hashed, model, run, asyncio.get_running_loop())
                if hashes is None:
                    return ()
                await asyncio.to_thread(self._judge.remember, hashes)
                troubles = await self._asked([model])
        except OSError as error:
            return (f"{Path(path).name} cannot be read: {error.strerror or error}.",)
        finally:
            run.stop.set()
            del self._runs[path]
            self._tell(path)
        await self._look_again([model])
        return troubles

    def cancel(self, path: str) -> None:
        """Stop its full check, if one runs or waits."""
        run = self._runs.get(path)
        if run is not None:
            run.stop.set()

    async def ask_hub(self) -> tuple[str, ...]:
        """Compare all models with what the Hub has now. Returns sentences about what it did not answer."""
        models = list(self._models.library.everything)
        troubles = await self._asked(models)
        await self._look_again(models)
        return troubles

    async def known(self, model: LibraryModel) -> dict[str, str]:
        """The SHA-256 of each file of `model` that was hashed as it is now, by the file's name."""

        def recalled() -> dict[str, str]:
            paths = [Path(file.path) for file in model.files if Path(file.path).is_file()]
            return {path.name: sha256 for path in paths if (sha256 := self._judge.recall(path))}

        return await asyncio.to_thread(recalled)

    async def remember(self, hashes: Iterable[tuple[Path, str]]) -> None:
        """Files whose SHA-256 was computed elsewhere just now: a download, an import."""
        known = [(path, sha256) for path, sha256 in hashes if sha256]
        await asyncio.to_thread(self._judge.remember, known)
        paths = {str(path) for path, _ in known}
        models = self._models.library.everything
        await self._look_again([each for each in models if not paths.isdisjoint(file.path for file in each.files)])

    async def close(self) -> None:
        """Ends every check; nothing runs afterwards."""
        self._is_closing = True
        self._unsubscribe()
        for run in self._runs.values():
            run.stop.set()
        async with self._one_full:
            await self.settled()

    def _hashed(self, model: LibraryModel, run: _Run, loop: asyncio.AbstractEventLoop) -> list[tuple[Path, str]] | None:
        """On another thread: the hash of every file; None when it was cancelled. Raises OSError."""
        hashes, before = [], 0

        def progress(done: int, _total: int) -> None:
            loop.call_soon_threadsafe(self._on_progress, model.path, run, before + done)

        for file in model.files:
            path = Path(file.path)
            if run.stop.is_set():
                return None
            try:
                known = self._judge.recall(path) or hash_file(path, run.stop.is_set, progress)
            except HashCancelled:
                return None
            hashes.append((path, known))
            before += file.n_bytes
        return hashes

    def _on_progress(self, path: str, run: _Run, n_done: int) -> None:
        if not run.stop.is_set():
            run.progress = FullCheck(n_done, run.progress.n_bytes)
            self._tell(path)

    async def _asked(self, models: list[LibraryModel]) -> tuple[str, ...]:
        if self._connect is None:
            return ()
        if self._settings.options.offline:
            return (OFFLINE,)
        return await asyncio.to_thread(self._judge.ask, models, self._connect)

    async def _look_again(self, models: list[LibraryModel]) -> None:
        """Judges `models` anew, and those that turned out to have the same bytes."""
        for start in range(0, len(models), _AT_ONCE):
            if self._is_closing:
                return
            batch = models[start : start + _AT_ONCE]
            found = await asyncio.to_thread(self._judged, batch)
            present = {each.path for each in self._models.library.everything}
            fresh = [check for check in found if check.path in present and check != self._checks.get(check.path)]
            self._checks.update((check.path, check) for check in fresh)
            if fresh:
                self._subscribers.notify(CheckNews(tuple(check.path for check in fresh)))

    def _judged(self, batch: list[LibraryModel]) -> list[ModelCheck]:
        """On another thread."""
        before = {path for model in batch for path in self._judge.same_bytes(model.path)}
        checks = self._judge.judge(batch)
        after = {path for model in batch for path in self._judge.same_bytes(model.path)}
        own = {model.path for model in batch}
        others = [each for each in self._models.library.everything if each.path in (before | after) - own]
        # A pair within one batch: the first was judged before the second was known.
        again = [model for model in batch if after & own and self._judge.same_bytes(model.path)]
        return [*checks, *self._judge.judge([*again, *others])]

    def _on_library(self, library: Library) -> None:
        present = {model.path for model in library.everything}
        gone = [path for path in self._checks if path not in present]
        for path in gone:
            del self._checks[path]
            self._stamps.pop(path, None)
        self._judge.forget(gone)
        if self._quick is None and not self._is_closing:
            self._quick = asyncio.get_running_loop().create_task(self._look_at_all())
            self._quick.add_done_callback(self._on_quick_done)

    async def _look_at_all(self) -> None:
        """Quick looks until no model has changed since its last one."""
        while not self._is_closing:
            library = self._models.library
            stamps = _stamps(library)
            changed = [each for each in library.everything if self._stamps.get(each.path) != stamps[each.path]]
            if not changed:
                return
            for start in range(0, len(changed), _AT_ONCE):
                batch = changed[start : start + _AT_ONCE]
                await self._look_again(batch)
                self._stamps.update((model.path, stamps[model.path]) for model in batch)

    def _on_quick_done(self, task: asyncio.Task[None]) -> None:
        self._quick = None
        if not task.cancelled() and task.exception() is not None:
            # Something nobody expected: said by whoever handles what nobody caught.
            asyncio.get_running_loop().call_exception_handler(
                {"message": "Model files could not be judged", "exception": task.exception()}
            )
        self._subscribers.notify(CheckNews(()))

    def _model(self, path: str) -> LibraryModel | None:
        return next((model for model in self._models.library.everything if model.path == path), None)

    def _tell(self, path: str) -> None:
        self._subscribers.notify(CheckNews((path,)))


def _stamps(library: Library) -> dict[str, _Stamp]:
    """What a model's check depends on: its files, and the files that it is, or could be, paired with."""
    by_folder: dict[tuple[str, bool], list[tuple[str, int, int]]] = {}
    pictures = {model.path for model in library.mmprojs}
    for model in library.everything:
        key = (str(Path(model.path).parent), model.path in pictures)
        by_folder.setdefault(key, []).extend(_state(model))
    found = {}
    for model in library.everything:
        folder = Path(model.path).parent
        wanted = model.path not in pictures
        near = by_folder.get((str(folder), wanted), []) + by_folder.get((str(folder.parent), wanted), [])
        paired = _state(model.mmproj) if model.mmproj is not None else []
        missing = [(name, 0, 0) for name in model.missing]
        found[model.path] = tuple(_state(model) + missing + sorted(near) + paired)
    return found


def _state(model: LibraryModel) -> list[tuple[str, int, int]]:
    return [(file.path, file.n_bytes, file.mtime_ns) for file in model.files]
