"""Remembers the model that was loaded last, so that it can be loaded again after eject and at the next start."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import BackgroundWriter, JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.models.load_options import LoadOptionsService


def last_model_file() -> Path:
    return paths.data_folder() / "last-model.json"


class LastModel:
    """Follows the engine. The built-in demo is not remembered: nobody wants it loaded again."""

    def __init__(
        self,
        engine: EngineService,
        load_options: LoadOptionsService,
        file: Path | None = None,
    ) -> None:
        self._engine, self._load_options = engine, load_options
        self._file = JsonFile[LoadOptions | None](
            file or last_model_file(), LoadOptions, lambda: None, keep_unusable=False
        )
        self._writer = BackgroundWriter(self._file)
        self.last = Observed[LoadOptions | None](None)
        """How the last model was asked to be loaded; None before `read` if none was loaded since the app started."""
        self.demo_came_later = False
        """True if the built-in demo was used after it."""
        self._unsubscribe = engine.observed.subscribe(self._on_state)

    def read(self) -> LoadOptions | None:
        """Return how the last model was asked to be loaded; None if there is none, or its file is gone."""
        self.last.set(_without_missing_files(self._file.read()))
        return self.last.value

    async def to_serve(self) -> LoadOptions:
        """Return how to load the last model, or the built-in demo if there is none."""
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
        return self.last.value or self.read() or demo

    async def load(self) -> None:
        """Load the last model with its current profile, if there is one."""
        if self.last.value is not None:
            await self._engine.load(await self._load_options.options_again(self.last.value))

    async def load_at_start(self, last: LoadOptions, must_wait: Callable[[], Awaitable[bool]]) -> None:
        """Load the last model with its current profile, unless the user has chosen another one meanwhile.

        A model on this PC is not loaded now if `must_wait` says that another program needs the memory.
        """
        options = await self._load_options.options_again(last)
        if self._engine.was_load_requested:
            return
        if is_served(options.model) or not await must_wait():
            await self._engine.load(options)

    async def show_options(self, last: LoadOptions, pending: PendingLoadService) -> None:
        """Show the options of the last model for its next load, unless the user has chosen a model meanwhile."""
        options = await self._load_options.options_again(last)
        if pending.pending.requested is None:
            await pending.prepare(options)

    def forget(self) -> None:
        """Offer the last model no more, because its file is gone; a loaded one is kept."""
        report = self._engine.state.report
        if self.last.value is not None and (report is None or report.options.model != self.last.value.model):
            self.last.set(None)

    async def close(self) -> None:
        """Return when the last model has been saved, or saving failed."""
        self._unsubscribe()
        await self._writer.close()

    def _on_state(self, state: EngineState) -> None:
        if state.report is None or state.requested is None:
            return
        if state.idle_unloaded is not None:  # this one was loaded for another program
            return
        self.demo_came_later = paths.is_demo(state.requested.model)
        if self.demo_came_later:
            return
        if state.requested == self.last.value:
            return
        self.last.set(state.requested)
        self._writer.write(state.requested)


def _without_missing_files(options: LoadOptions | None) -> LoadOptions | None:
    """Return the options without a vision file or template that is gone; None if the model is gone.

    A model on a server is kept: whether it is still there shows when it is loaded.
    """
    if options is not None and is_served(options.model):
        return options
    if options is None or not Path(options.model).is_file():
        return None
    if options.mmproj and not Path(options.mmproj).is_file():
        options = msgspec.structs.replace(options, mmproj="")
    if options.chat_template_file and not Path(options.chat_template_file).is_file():
        options = msgspec.structs.replace(options, chat_template_file="")
    return options
