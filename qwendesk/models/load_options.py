"""Load options for a model file: its companions, a repaired template if its own is broken, its saved profile.

Companions are its vision projector and its draft head. Everything that loads a model chosen by the user gets its
options here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePath, PureWindowsPath

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.model_facts import is_broken_template
from qwendesk.core.model_titles import ModelName
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.library import LibraryModel, model_at
from qwendesk.models.library_service import LibraryService
from qwendesk.models.templates import TemplatesService, base_repo_of
from qwendesk.settings.profiles import ProfilesService


def is_named(model: LibraryModel, name: ModelName) -> bool:
    """Return whether `name` means this model, by the name of its file or its repository and quant.

    Repositories name their files after themselves: "a/B-GGUF:Q4_K_M" has B-Q4_K_M.gguf.
    """
    files = {PurePath(file.path).name.lower() for file in model.files}
    if name.file or name.path:
        return PureWindowsPath(name.file or name.path).name.lower() in files
    if not name.repo or not name.quant:
        return False
    title, quant = name.repo.rpartition("/")[2].lower().removesuffix("-gguf"), name.quant.lower()
    own = model.name.lower()
    return own == f"{title}-{quant}" or (model.repo.lower() == name.repo.lower() and own.endswith(f"-{quant}"))


def load_options(model: LibraryModel, templates: TemplatesService, catalog: Catalog) -> LoadOptions:
    """Return load options with every other option "auto". A saved template is used only if the file's own is broken."""
    projector = model.mmproj
    mmproj = projector.path if projector is not None and not projector.problem else ""
    template = None
    if model.facts is not None and is_broken_template(model.facts.chat_template):
        template = templates.path(base_repo_of(model, catalog))
    head = model.draft_head.path if model.draft_head is not None else ""
    return LoadOptions(model=model.path, mmproj=mmproj, draft_model=head, chat_template_file=str(template or ""))


class LoadOptionsService:
    """Makes the load options for a chosen file. Call its methods on the event loop's thread."""

    def __init__(
        self,
        library: LibraryService,
        templates: TemplatesService,
        profiles: ProfilesService,
        catalog: Callable[[], Awaitable[Catalog]],
    ) -> None:
        self._library, self._templates, self._profiles, self._catalog = library, templates, profiles, catalog

    async def options_for(self, path: Path) -> LoadOptions:
        """Return the options for any file; the engine reports what is wrong with one that can't be loaded."""
        catalog = await self._catalog()
        model = self._find(path) or await asyncio.to_thread(model_at, path, self._library.headers)
        if model is None:
            return self._profiles.applied(LoadOptions(model=str(path)))
        options = await asyncio.to_thread(load_options, model, self._templates, catalog)
        return self._profiles.applied(options)

    async def options_again(self, last: LoadOptions) -> LoadOptions:
        """Return the options for the model of the last session.

        Before the first scan its vision projector, draft head and template may be unknown; those of `last` are used.
        """
        if is_served(last.model):
            return last
        options = await self.options_for(Path(last.model))
        return msgspec.structs.replace(
            options,
            mmproj=options.mmproj or last.mmproj,
            draft_model=options.draft_model or last.draft_model,
            chat_template_file=options.chat_template_file or last.chat_template_file,
        )

    async def options_named(self, name: ModelName) -> LoadOptions | None:
        """Return the options of the model on this PC that somebody calls `name`; None if it isn't here."""
        models = self._library.state.value.library.models
        found = next((model for model in models if not model.problem and is_named(model, name)), None)
        return await self.options_for(Path(found.path)) if found is not None else None

    async def base_repo(self, path: str) -> str:
        """Return the repository of the unquantised model; "" if unknown."""
        model = self._find(Path(path))
        return base_repo_of(model, await self._catalog()) if model is not None else ""

    def _find(self, path: Path) -> LibraryModel | None:
        try:
            return self._library.find(str(path))
        except QwenDeskError:
            return None
