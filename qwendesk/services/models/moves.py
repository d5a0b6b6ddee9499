"""Models on their way to another folder of ours: one after the other, verified, with progress, to be cancelled."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.importing import How, Imported, NotImported
from qwendesk.hub.library import LibraryModel
from qwendesk.services.models.checks import ChecksService
from qwendesk.services.models.service import ModelsService


class Move(msgspec.Struct, frozen=True):
    """A move or copy that runs or waits for another one."""

    n_done: int
    n_bytes: int
    """0 until it begins."""


class _Run:
    def __init__(self) -> None:
        self.progress = Move(0, 0)
        self.stop = threading.Event()


class MovesService:
    """Owns the moves. Methods are called on the event loop's thread."""

    def __init__(self, models: ModelsService, checks: ChecksService) -> None:
        self._models, self._checks = models, checks
        self._runs: dict[str, _Run] = {}
        self._one_move = asyncio.Lock()
        self._is_closing = False
        self._subscribers = Subscribers[str]()

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with the path of a model whose move went on. Returns what ends it."""
        return self._subscribers.add(callback)

    def running(self, path: str) -> Move | None:
        """How far the move of the model at `path` is; None when there is none."""
        run = self._runs.get(path)
        return None if run is None else run.progress

    async def bring(self, model: LibraryModel, folder: Path, how: How) -> Imported | NotImported:
        """Moves or copies `model` into the models folder `folder`. What was verified there counts as verified."""
        path = model.path
        if path in self._runs or self._is_closing:
            return NotImported(f"{model.name} is on its way already.", cancelled=True)
        run, loop = _Run(), asyncio.get_running_loop()
        self._runs[path] = run
        self._subscribers.notify(path)

        def progress(done: int, total: int) -> None:
            loop.call_soon_threadsafe(self._on_progress, path, run, done, total)

        try:
            async with self._one_move:
                known = await self._checks.known(model)
                outcome = await self._models.import_model(Path(path), how, folder, run.stop.is_set, progress)
        finally:
            run.stop.set()
            del self._runs[path]
            self._subscribers.notify(path)
        if isinstance(outcome, Imported):
            pairs = zip(outcome.files, outcome.sha256, strict=True)
            await self._checks.remember(
                [(Path(file), sha256 or known.get(Path(file).name, "")) for file, sha256 in pairs]
            )
        return outcome

    def cancel(self, path: str) -> None:
        """Stop it; everything is as it was then."""
        run = self._runs.get(path)
        if run is not None:
            run.stop.set()

    async def close(self) -> None:
        """Stops what runs; nothing is written afterwards."""
        self._is_closing = True
        for run in self._runs.values():
            run.stop.set()
        async with self._one_move:
            return

    def _on_progress(self, path: str, run: _Run, done: int, total: int) -> None:
        if not run.stop.is_set():
            run.progress = Move(done, total)
            self._subscribers.notify(path)
