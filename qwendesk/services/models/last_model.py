"""The model that was loaded last, so that the next start can load it again."""

import logging
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.files import decode_json, write_whole
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import EngineState
from qwendesk.services.engine.service import EngineService

_logger = logging.getLogger(__name__)


def last_model_file() -> Path:
    return paths.data_folder() / "last-model.json"


class LastModel:
    """Follows the engine. The built-in demo does not count: it is never what somebody wants loaded again."""

    def __init__(self, engine: EngineService, file: Path | None = None) -> None:
        self._file = file or last_model_file()
        self._kept: LoadOptions | None = None
        self._unsubscribe = engine.subscribe(self._on_state)

    def read(self) -> LoadOptions | None:
        """How it was asked to be loaded; None when there is none, or its file is not there any more."""
        try:
            options = decode_json(self._file.read_bytes(), LoadOptions)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            _logger.warning("%s cannot be used: %s", self._file, error)
            return None
        if not Path(options.model).is_file():
            return None
        if options.mmproj and not Path(options.mmproj).is_file():
            options = msgspec.structs.replace(options, mmproj="")
        if options.chat_template_file and not Path(options.chat_template_file).is_file():
            options = msgspec.structs.replace(options, chat_template_file="")
        return options

    def close(self) -> None:
        self._unsubscribe()

    def _on_state(self, state: EngineState) -> None:
        if state.report is None or state.wanted is None or state.wanted == self._kept:
            return
        if paths.is_demo(state.wanted.model):
            return
        self._kept = state.wanted
        try:
            write_whole(self._file, msgspec.json.format(msgspec.json.encode(state.wanted), indent=2))
        except OSError as error:
            _logger.warning("The last model could not be remembered: %s", error)
