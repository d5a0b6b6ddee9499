"""How a model file is loaded: with its picture file, with a repaired template where its own is broken, by its profile.

The one place where that is put together, for everything that loads a model the person chose.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.library import LibraryModel, model_at
from qwendesk.hub.library_headers import Headers
from qwendesk.hub.verify_use import is_broken_template
from qwendesk.services.models.service import ModelsService
from qwendesk.services.models.templates import TemplatesService, base_repo_of
from qwendesk.services.profiles import ProfilesService


def load_options(model: LibraryModel, templates: TemplatesService, catalog: Catalog) -> LoadOptions:
    """Everything else is left to "auto". The repaired template is used only if it was fetched, and only if needed."""
    pictures = model.mmproj
    mmproj = pictures.path if pictures is not None and not pictures.problem else ""
    template = None
    if model.facts is not None and is_broken_template(model.facts.chat_template):
        template = templates.path(base_repo_of(model, catalog))
    return LoadOptions(model=model.path, mmproj=mmproj, chat_template_file=str(template or ""))


class Loading:
    """Makes the options that a chosen file is loaded with. Called on the event loop's thread."""

    def __init__(
        self,
        models: ModelsService,
        templates: TemplatesService,
        profiles: ProfilesService,
        catalog: Callable[[], Awaitable[Catalog]],
    ) -> None:
        self._models, self._templates, self._profiles, self._catalog = models, templates, profiles, catalog

    async def options_for(self, path: Path) -> LoadOptions:
        """For a file of the library, or any other: the engine says what is wrong with one that cannot be loaded."""
        catalog = await self._catalog()
        model = self._known(path) or await asyncio.to_thread(model_at, path, Headers())
        if model is None:
            return self._profiles.applied(LoadOptions(model=str(path)))
        options = await asyncio.to_thread(load_options, model, self._templates, catalog)
        return self._profiles.applied(options)

    async def again(self, last: LoadOptions) -> LoadOptions:
        """For the model of the last time: before the first scan its files may not be known, so what was used then
        stays."""
        options = await self.options_for(Path(last.model))
        return msgspec.structs.replace(
            options,
            mmproj=options.mmproj or last.mmproj,
            chat_template_file=options.chat_template_file or last.chat_template_file,
        )

    def base_repo(self, catalog: Catalog, path: str) -> str:
        """The repository of the unquantised model; "" where nobody knows."""
        model = self._known(Path(path))
        return base_repo_of(model, catalog) if model is not None else ""

    def _known(self, path: Path) -> LibraryModel | None:
        try:
            return self._models.find(str(path))
        except QwenDeskError:
            return None
