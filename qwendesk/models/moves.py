"""Moves and copies of models into another models folder: one after the other, verified, with progress."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.model_import import How, Imported, NotImported
from qwendesk.models.checks import ChecksService
from qwendesk.models.library_service import LibraryService


class MoveProgress(msgspec.Struct, frozen=True):
    """Progress of a move or copy that is running or waiting for another one."""

    n_done: int
    n_bytes: int
    """0 until it begins."""


class MovesService:
    """Owns the moves. Call its methods on the event loop's thread."""

    def __init__(self, library: LibraryService, checks: ChecksService) -> None:
        self._library, self._checks = library, checks
        self.running: Observed[Mapping[str, MoveProgress]] = Observed({})
        """By the path of the model."""
        self._stops: dict[str, threading.Event] = {}
        self._one_move = asyncio.Lock()
        self._is_closing = False

    async def move(self, model: LibraryModel, folder: Path, how: How) -> Imported | NotImported:
        """Move or copy `model` into `folder`, which becomes a models folder. A verified file stays verified."""
        path = model.path
        if path in self._stops or self._is_closing:
            return NotImported(tr("{0} is already being moved or copied.", model.name), cancelled=True)
        stop, loop = threading.Event(), asyncio.get_running_loop()
        self._stops[path] = stop
        self._show_progress(path, MoveProgress(0, 0))

        def progress(done: int, total: int) -> None:
            loop.call_soon_threadsafe(self._on_progress, path, stop, MoveProgress(done, total))

        try:
            await self._library.add_models_folder(str(folder))
            async with self._one_move:
                known = await self._checks.recall(model)
                outcome = await self._library.import_model(Path(path), how, folder, stop.is_set, progress)
        except QwenDeskError as error:  # the folder can't be a models folder
            return NotImported(error.sentence)
        finally:
            stop.set()
            del self._stops[path]
            self._show_progress(path, None)
        if isinstance(outcome, Imported):
            pairs = zip(outcome.files, outcome.sha256, strict=True)
            await self._checks.remember(
                [(Path(file), sha256 or known.get(Path(file).name, "")) for file, sha256 in pairs]
            )
        return outcome

    def cancel(self, path: str) -> None:
        """Stop the move of the model at `path`; its files stay where they are."""
        if path in self._stops:
            self._stops[path].set()

    async def close(self) -> None:
        """Stop all moves."""
        self._is_closing = True
        for stop in self._stops.values():
            stop.set()
        async with self._one_move:
            return

    def _on_progress(self, path: str, stop: threading.Event, progress: MoveProgress) -> None:
        if not stop.is_set():
            self._show_progress(path, progress)

    def _show_progress(self, path: str, progress: MoveProgress | None) -> None:
        running = {**self.running.value, path: progress}
        self.running.set({path: each for path, each in running.items() if each is not None})
