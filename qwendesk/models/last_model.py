"""Remembers the model that was loaded last, so that it can be loaded again after eject and at the next start."""

from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import BackgroundWriter, JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_service import EngineService


def last_model_file() -> Path:
    return paths.data_folder() / "last-model.json"


class LastModel:
    """Follows the engine. The built-in demo is not remembered: nobody wants it loaded again."""

    def __init__(self, engine: EngineService, file: Path | None = None) -> None:
        self._file = JsonFile[LoadOptions | None](
            file or last_model_file(), LoadOptions, lambda: None, keep_unusable=False
        )
        self._writer = BackgroundWriter(self._file)
        self.last = Observed[LoadOptions | None](None)
        """How the last model was asked to be loaded; None before `read` if none was loaded since the app started."""
        self._unsubscribe = engine.observed.subscribe(self._on_state)

    def read(self) -> LoadOptions | None:
        """Return how the last model was asked to be loaded; None if there is none, or its file is gone."""
        self.last.set(_without_missing_files(self._file.read()))
        return self.last.value

    def to_serve(self) -> LoadOptions:
        """Return how to load the last model, or the built-in demo if there is none."""
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
        return self.last.value or self.read() or demo

    async def close(self) -> None:
        """Return when the last model has been saved, or saving failed."""
        self._unsubscribe()
        await self._writer.close()

    def _on_state(self, state: EngineState) -> None:
        if state.report is None or state.requested is None or state.requested == self.last.value:
            return
        if state.idle_unloaded is not None:  # this one was loaded for another program
            return
        if paths.is_demo(state.requested.model):
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
