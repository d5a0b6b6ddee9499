"""Keeps the library and the model that was used last in agreement: a file that was opened from anywhere is listed."""

import asyncio
import logging

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.core.owner import Owner
from qwendesk.core.served_model import is_served
from qwendesk.hub.library import Library
from qwendesk.models.last_model import LastModel
from qwendesk.models.library_service import LibraryService

_logger = logging.getLogger(__name__)


class OpenedFiles(Owner):
    """Adds the last model to the library if it isn't in a searched folder, and forgets it when its file is gone."""

    def __init__(self, library: LibraryService, last_model: LastModel) -> None:
        super().__init__()
        self._library, self._last_model = library, last_model
        self._listed = ""
        """Path of the last model, once the library had it."""
        self._adding: asyncio.Task[None] | None = None
        self.at_close(library.state.subscribe_field(lambda state: state.library, self._compare))
        self.at_close(last_model.last.subscribe(self._compare))

    async def close(self) -> None:
        await super().close()
        if self._adding is not None:
            await self._adding

    def _compare(self, _changed: Library | LoadOptions | None) -> None:
        last, state = self._last_model.last.value, self._library.state.value
        if last is None or is_served(last.model) or not state.is_scanned:
            return
        if any(last.model == file.path for model in state.library.everything for file in model.files):
            self._listed = last.model
        elif last.model == self._listed:
            self._last_model.forget()
        elif self._adding is None or self._adding.done():
            self._adding = asyncio.create_task(self._add(last.model))

    async def _add(self, file: str) -> None:
        try:
            await self._library.add_opened(file)
        except QwenDeskError as error:
            _logger.info("%s isn't kept in the list of models: %s", file, error.sentence)
