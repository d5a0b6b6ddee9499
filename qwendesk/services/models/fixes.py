"""Carries out what puts a model right: each kind of `hub.findings.Fix` that needs no person's choice."""

from pathlib import Path
from typing import Protocol

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.units import show_bytes
from qwendesk.hub.deleting import Deletion, NotDeleted
from qwendesk.hub.findings import Fix
from qwendesk.hub.library import LibraryModel
from qwendesk.services.models.service import ModelsService
from qwendesk.services.models.templates import TemplatesService


class Fetcher(Protocol):
    """What brings files of the Hub into a models folder of ours; the downloads are one."""

    async def add(self, repo: str, path: str, *, with_mmproj: bool = True, models_folder: Path | None = None) -> str:
        """Begin to fetch `path` of `repo`, with all its parts; an id. Raises QwenDeskError when it cannot be had."""


class FixStarted(msgspec.Struct, frozen=True):
    """A download was queued; the library finds the file once it is whole."""

    sentence: str
    download: str


class FixDone(msgspec.Struct, frozen=True):
    sentence: str


class FixToAgree(msgspec.Struct, frozen=True):
    """Something would be deleted: to be asked about first."""

    deletion: Deletion


class FixToChoose(msgspec.Struct, frozen=True):
    """Only a person can choose: where to look, as words for the search."""

    search: str


FixOutcome = FixStarted | FixDone | FixToAgree | FixToChoose


class FixesService:
    """Puts models right. Other apps' files are never written: a fixed copy comes into a folder of ours."""

    def __init__(self, models: ModelsService, templates: TemplatesService, fetcher: Fetcher) -> None:
        self._models, self._templates, self._fetcher = models, templates, fetcher

    async def apply(self, model: LibraryModel, fix: Fix) -> FixOutcome:
        """Begins, or says what is to be decided first. Raises QwenDeskError with what to do when it cannot be done."""
        match fix.kind:
            case "download_again" | "download_current":
                return await self._download(model, fix)
            case "fetch_mmproj" if fix.path:
                download = await self._fetcher.add(
                    fix.repo, fix.path, with_mmproj=False, models_folder=self._folder_for(model)
                )
                return FixStarted(f"The picture file of {model.name} is on its way.", download)
            case "fetch_template":
                await self._templates.fetch(fix.repo, fix.path)
                return FixDone(f"{model.name} is loaded with the chat template of {fix.repo} from now on.")
            case "delete":
                deletion = self._models.deletion_of(model)
                if isinstance(deletion, NotDeleted):
                    raise QwenDeskError("Not deleted", deletion.sentence)
                return FixToAgree(deletion)
            case _:
                return FixToChoose(fix.repo or _words(model))

    async def _download(self, model: LibraryModel, fix: Fix) -> FixOutcome:
        if not fix.path:
            return FixToChoose(fix.repo or _words(model))
        is_pictures = model.facts is not None and model.facts.kind == "mmproj"
        # A copy in a folder of ours is to be whole there; a file that is only replaced has its picture file already.
        with_mmproj = not is_pictures and (model.origin != "ours" or model.mmproj is None)
        download = await self._fetcher.add(
            fix.repo, fix.path, with_mmproj=with_mmproj, models_folder=self._folder_for(model)
        )
        if model.writable:
            return FixStarted(f"The present {Path(fix.path).name} is on its way.", download)
        return FixStarted(
            f"A copy of {Path(fix.path).name} is on its way to QwenDesk's folder; this one stays.", download
        )

    def _folder_for(self, model: LibraryModel) -> Path:
        """The models folder that the file lies in, if it is one of ours; else the first."""
        folders = self._models.folders.models
        return Path(model.place) if model.place in folders else Path(folders[0])


def question_of(deletion: Deletion) -> tuple[str, str]:
    """What to ask before a deletion: a heading, and a sentence that names the bytes."""
    count = len(deletion.files)
    files = "1 file" if count == 1 else f"{count} files"
    names = ", ".join(Path(file.path).name for file in deletion.files[:4]) + (" and more" if count > 4 else "")
    sentence = f"{files}, {show_bytes(deletion.n_bytes)}, go to the trash: {names}."
    return f"Delete {deletion.name}?", sentence


def _words(model: LibraryModel) -> str:
    """What to search the Hub for, when no repository is known."""
    name = model.facts.basename or model.facts.name if model.facts is not None else ""
    return name or model.name
