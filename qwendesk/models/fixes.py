"""Applies the fixes of findings, unless the user must decide something first."""

from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.hub.findings import FindingFix
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.model_deletion import DeletionFailure, ModelDeletion
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.library_service import LibraryService
from qwendesk.models.templates import TemplatesService


class FixStarted(msgspec.Struct, frozen=True):
    """A download was queued. The library finds the file when it is complete."""

    sentence: str
    download: str


class FixDone(msgspec.Struct, frozen=True):
    sentence: str


class FixToAgree(msgspec.Struct, frozen=True):
    """The user must confirm a deletion first."""

    deletion: ModelDeletion


class FixToChoose(msgspec.Struct, frozen=True):
    """The user must choose a file: the words to search for, or a repository."""

    search: str


FixOutcome = FixStarted | FixDone | FixToAgree | FixToChoose


class FixesService:
    """Applies fixes. Files of other apps are never changed; a fixed copy is downloaded into a models folder."""

    def __init__(self, library: LibraryService, templates: TemplatesService, downloader: DownloadsService) -> None:
        self._library, self._templates, self._downloader = library, templates, downloader

    async def apply(self, model: LibraryModel, fix: FindingFix) -> FixOutcome:
        """Apply `fix`, or return what the user must decide first. Raises QwenDeskError if it isn't possible."""
        match fix.kind:
            case "download_again" | "download_current":
                return await self._download(model, fix)
            case "fetch_mmproj" if fix.path:
                download = await self._downloader.add(
                    fix.repo, fix.path, with_mmproj=False, models_folder=self._folder_for(model)
                )
                return FixStarted(tr("Downloading the vision file of {0}.", model.name), download)
            case "fetch_template":
                await self._templates.install(fix.repo, fix.path)
                return FixDone(tr("{0} will be loaded with the chat template of {1}.", model.name, fix.repo))
            case "delete":
                deletion = self._library.deletion_of(model)
                if isinstance(deletion, DeletionFailure):
                    raise QwenDeskError(tr("Can't delete the model"), deletion.sentence)
                return FixToAgree(deletion)
            case _:
                return FixToChoose(fix.repo or _search_words(model))

    async def _download(self, model: LibraryModel, fix: FindingFix) -> FixOutcome:
        if not fix.path:
            return FixToChoose(fix.repo or _search_words(model))
        is_projector = model.facts is not None and model.facts.kind == "mmproj"
        # A copy needs its own vision projector; a file that is replaced has one already.
        with_mmproj = not is_projector and (model.origin != "ours" or model.mmproj is None)
        download = await self._downloader.add(
            fix.repo, fix.path, with_mmproj=with_mmproj, models_folder=self._folder_for(model)
        )
        if model.writable:
            return FixStarted(tr("Downloading the current version of {0}.", Path(fix.path).name), download)
        return FixStarted(
            tr("Downloading a copy of {0} to QwenDesk's folder. The original is kept.", Path(fix.path).name), download
        )

    def _folder_for(self, model: LibraryModel) -> Path:
        """Return the models folder of the file, or the first one if it is in another folder."""
        folders = self._library.folders.models
        return Path(model.place) if model.place in folders else Path(folders[0])


def _search_words(model: LibraryModel) -> str:
    """Return what to search the Hub for if the repository isn't known."""
    name = model.facts.basename or model.facts.name if model.facts is not None else ""
    return name or model.name
