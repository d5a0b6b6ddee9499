"""How the models on this PC would run here, for the model picker."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from qwendesk.core.errors import BadModelFile
from qwendesk.core.observed import Observed
from qwendesk.hub.library import LibraryModel
from qwendesk.models.fit import FitLabel, Pc, plan_fit
from qwendesk.models.library_service import LibraryService
from qwendesk.models.offers import Offers

# What a fit depends on: the model's path and size, the path of its vision projector, and the hardware.
_Planned = tuple[str, int, str, Pc]


class LibraryFits:
    """Owns the fits of the library's models. Call `update` on the event loop's thread; it plans on another."""

    def __init__(self, library: LibraryService, offers: Observed[Offers]) -> None:
        self._library, self._offers = library, offers
        self._planned: dict[_Planned, FitLabel] = {}
        self._one_update = asyncio.Lock()
        self.state: Observed[Mapping[str, FitLabel]] = Observed(MappingProxyType({}))
        """By the model's path. A model that isn't here is still to be planned, or its header can't be read."""

    async def update(self) -> None:
        """Plan the models of the library that aren't planned yet for this PC. Do nothing before the PC is known."""
        async with self._one_update:
            pc = self._offers.value.pc
            if pc.ram_bytes:
                fits = await asyncio.to_thread(self._plan, self._library.current.models, pc)
                self.state.set(MappingProxyType(fits))

    def _plan(self, models: Sequence[LibraryModel], pc: Pc) -> dict[str, FitLabel]:
        fits = {}
        for model in models:
            key = model.path, model.n_bytes, model.mmproj.path if model.mmproj is not None else "", pc
            try:
                fits[model.path] = self._planned[key] = self._planned.get(key) or self._fit(model, pc)
            except BadModelFile:
                continue  # My models says what is wrong with it.
        return fits

    def _fit(self, model: LibraryModel, pc: Pc) -> FitLabel:
        headers = self._library.headers
        mmproj = headers.read_facts(Path(model.mmproj.path)) if model.mmproj is not None else None
        return plan_fit(headers.read_facts(Path(model.path)), mmproj, pc)[0]
