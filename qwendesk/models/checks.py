"""Checks of all model files: a quick check when a file appears or changes, a full check on request.

A quick check reads headers, sizes and records. A full check computes the SHA-256 of every file and, unless the app is
offline, asks the Hub. Nothing here connects without a request of the user.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.file_hashes import HashCancelled, hash_file
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.models.catalog_service import CatalogService
from qwendesk.models.file_checker import FileChecker, ModelCheck, file_set, unreadable
from qwendesk.models.library_service import LibraryService
from qwendesk.settings.service import SettingsService

if TYPE_CHECKING:
    from qwendesk.hub.remote import Hub

# Models checked before the results are announced.
_BATCH = 16
_Stamp = tuple[tuple[str, int, int], ...]


class CheckProgress(msgspec.Struct, frozen=True):
    """Progress of a full check that is running or waiting for another one."""

    n_done: int
    """Bytes hashed."""
    n_bytes: int


class ChecksState(msgspec.Struct, frozen=True):
    """The results of the last checks, and the full checks under way, by the path of the model."""

    checks: Mapping[str, ModelCheck] = {}
    """Models that were not checked yet are missing."""
    running: Mapping[str, CheckProgress] = {}


class _FullCheck:
    """A full check under way."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.stop = threading.Event()


class ChecksService:
    """Owns the checks. Call its methods on the event loop's thread; it reads files on others."""

    def __init__(
        self,
        library: LibraryService,
        settings: SettingsService,
        catalog: CatalogService,
        connect: "Callable[[], Hub] | None",
    ) -> None:
        """`connect` makes the Hub to ask, on another thread; without it the Hub is never asked."""
        self._library, self._settings, self._catalog, self._connect = library, settings, catalog, connect
        self._checker = FileChecker(library.headers, catalog.store)
        self.state = Observed(ChecksState())
        self._stamps: dict[str, _Stamp] = {}
        """The files of each model at its last quick check, which used `_checked_with`."""
        self._checked_with: Catalog | None = None
        self._gone: set[str] = set()
        """Models that the next check forgets. The loop doesn't wait for the checker, which may be reading files."""
        self._full_checks: dict[str, _FullCheck] = {}
        self._one_full_check = asyncio.Lock()
        self._one_batch = asyncio.Lock()
        """Held while files are checked, so that no result replaces one that was read later."""
        self._quick_checks: asyncio.Task[None] | None = None
        self._is_closing = False
        self._unsubscribes = (
            library.state.subscribe_field(lambda state: state.library, self._on_library),
            catalog.state.subscribe_field(lambda state: state.catalog, self._on_catalog),
        )
        if library.current.everything:
            self._on_library(library.current)

    async def wait_until_settled(self) -> None:
        """Return when every model of the library has had its quick check."""
        while self._quick_checks is not None:
            await asyncio.wait([self._quick_checks])

    async def verify(self, path: str) -> tuple[str, ...]:
        """Run the full check of the model at `path`, after full checks that were requested earlier.

        Files whose hash is remembered are not read again. Return sentences about what could not be compared. A check
        that is cancelled changes nothing.
        """
        model = self._model(path)
        if model is None or path in self._full_checks or self._is_closing:
            return ()
        check = self._full_checks[path] = _FullCheck(model.n_bytes)
        self._show_progress(path, CheckProgress(0, model.n_bytes))
        try:
            async with self._one_full_check:
                hashes = await asyncio.to_thread(self._hash_files, model, check, asyncio.get_running_loop())
                if hashes is None:
                    return ()
                await asyncio.to_thread(self._checker.remember, hashes)
                troubles = await self._ask([model])
        except OSError as error:
            return (unreadable(path, error).sentence,)
        finally:
            check.stop.set()
            del self._full_checks[path]
            self._show_progress(path, None)
        await self._check([model])
        return troubles

    def cancel(self, path: str) -> None:
        """Stop the full check of the model at `path`, if one is running or waiting."""
        check = self._full_checks.get(path)
        if check is not None:
            check.stop.set()

    async def compare_with_hub(self) -> tuple[str, ...]:
        """Compare all models with what the Hub has now. Return sentences about what it did not answer."""
        models = list(self._library.current.everything)
        troubles = await self._ask(models)
        await self._check(models)
        return troubles

    async def recall(self, model: LibraryModel) -> dict[str, str]:
        """Return the SHA-256 of each file of `model` that has not changed since it was hashed, by file name."""

        def recall_all() -> dict[str, str]:
            paths = [Path(file.path) for file in model.files if Path(file.path).is_file()]
            return {path.name: sha256 for path in paths if (sha256 := self._checker.recall(path))}

        return await asyncio.to_thread(recall_all)

    def sha256_of(self, path: Path) -> str:
        """Return the SHA-256 of a file, as its full check does. Blocks, for seconds per GB. Raises OSError."""
        return self._checker.sha256_of(path)

    async def remember(self, hashes: Iterable[tuple[Path, str]]) -> None:
        """Remember hashes that were computed elsewhere just now, by a download or an import, and check those files."""
        known = [(path, sha256) for path, sha256 in hashes if sha256]
        await asyncio.to_thread(self._checker.remember, known)
        paths = {str(path) for path, _ in known}
        models = self._library.current.everything
        await self._check([each for each in models if not paths.isdisjoint(file.path for file in each.files)])

    async def close(self) -> None:
        """Stop all checks."""
        self._is_closing = True
        for unsubscribe in self._unsubscribes:
            unsubscribe()
        for check in self._full_checks.values():
            check.stop.set()
        async with self._one_full_check:
            await self.wait_until_settled()

    def _hash_files(
        self, model: LibraryModel, check: _FullCheck, loop: asyncio.AbstractEventLoop
    ) -> list[tuple[Path, str]] | None:
        """Return the hash of every file; None if the check was cancelled. Runs on another thread. Raises OSError."""
        hashes, before = [], 0

        def progress(done: int, _total: int) -> None:
            loop.call_soon_threadsafe(self._on_progress, model.path, check, before + done)

        for file in model.files:
            path = Path(file.path)
            if check.stop.is_set():
                return None
            try:
                known = self._checker.recall(path) or hash_file(path, check.stop.is_set, progress)
            except HashCancelled:
                return None
            hashes.append((path, known))
            before += file.n_bytes
        return hashes

    def _on_progress(self, path: str, check: _FullCheck, n_done: int) -> None:
        if not check.stop.is_set():
            self._show_progress(path, CheckProgress(n_done, check.n_bytes))

    def _show_progress(self, path: str, progress: CheckProgress | None) -> None:
        running = {**self.state.value.running, path: progress}
        self.state.update(running={path: each for path, each in running.items() if each is not None})

    async def _ask(self, models: list[LibraryModel]) -> tuple[str, ...]:
        if self._connect is None:
            return ()
        if self._settings.options.offline:
            return (tr("QwenDesk is offline, so Hugging Face wasn't asked."),)
        troubles = await asyncio.to_thread(self._checker.ask, [file_set(each) for each in models], self._connect)
        await self._catalog.load()
        return troubles

    async def _check(self, models: list[LibraryModel]) -> None:
        """Check `models`, and other models that turn out to have the same bytes."""
        for start in range(0, len(models), _BATCH):
            if self._is_closing:
                return
            batch = models[start : start + _BATCH]
            async with self._one_batch:
                gone, self._gone = self._gone, set()
                found = await asyncio.to_thread(self._checker.check, [file_set(each) for each in batch], gone)
                present = {each.path for each in self._library.current.everything}
                fresh = {check.path: check for check in found if check.path in present}
                self.state.update(checks={**self.state.value.checks, **fresh})

    def _on_library(self, library: Library) -> None:
        present = {model.path for model in library.everything}
        checks = self.state.value.checks
        gone = [path for path in checks if path not in present]
        for path in gone:
            self._stamps.pop(path, None)
        self.state.update(checks={path: check for path, check in checks.items() if path in present})
        self._gone.update(gone)
        self._start_quick_checks()

    def _on_catalog(self, catalog: Catalog | None) -> None:
        """Run the quick check of every model again, unless it was with this catalog."""
        if catalog is not self._checked_with:
            self._stamps, self._checked_with = {}, catalog
            self._start_quick_checks()

    def _start_quick_checks(self) -> None:
        if self._quick_checks is None and not self._is_closing:
            self._quick_checks = asyncio.get_running_loop().create_task(self._check_what_changed())
            self._quick_checks.add_done_callback(self._report_error)

    async def _check_what_changed(self) -> None:
        """Run quick checks until no model has changed since its last one."""
        try:
            while not self._is_closing:
                library = self._library.current
                stamps = _stamps(library)
                changed = [each for each in library.everything if self._stamps.get(each.path) != stamps[each.path]]
                if not changed:
                    return
                catalog = await asyncio.to_thread(lambda: self._catalog.store.catalog)
                if catalog is not self._checked_with:
                    self._stamps, self._checked_with = {}, catalog
                for start in range(0, len(changed), _BATCH):
                    batch, known = changed[start : start + _BATCH], self._stamps
                    await self._check(batch)
                    known.update((model.path, stamps[model.path]) for model in batch)
        finally:
            # At once: what changes before the loop has told of the task's end needs another task.
            self._quick_checks = None

    def _report_error(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            # An unexpected error: the loop's handler reports it.
            asyncio.get_running_loop().call_exception_handler(
                {"message": "Model files could not be checked", "exception": task.exception()}
            )

    def _model(self, path: str) -> LibraryModel | None:
        return next((model for model in self._library.current.everything if model.path == path), None)


def _stamps(library: Library) -> dict[str, _Stamp]:
    """Return, for each model's path, all files that its check depends on.

    They are its own files, and those that it is or could be paired with: vision projectors for a model, models for a
    vision projector.
    """
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
