"""Chat templates of the base models, downloaded to replace a broken one, pinned by commit."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_file import JsonFile
from qwendesk.core.model_facts import is_broken_template
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.model_folders import repo_file

if TYPE_CHECKING:
    from qwendesk.hub.remote import Hub, RemoteFile

_INDEX = "templates.json"
_MOST_BYTES = 1024**2


class SavedTemplate(msgspec.Struct, frozen=True):
    """One template in the templates folder."""

    commit: str
    file: str
    """Relative to the templates folder."""


class TemplatesService:
    """Owns the saved templates, by base repository. Call its methods on the event loop's thread."""

    def __init__(self, connect: "Callable[[], Hub] | None" = None, folder: Path | None = None) -> None:
        self._connect = connect
        self._folder = folder or paths.data_folder() / "templates"
        self._index = JsonFile(self._folder / _INDEX, dict[str, SavedTemplate], dict, keep_unusable=False)
        self._saved = self._index.read()
        self.repos = Observed(frozenset(self._saved))
        """The base repositories whose template is saved."""

    def path(self, repo: str) -> Path | None:
        """Return the saved template of a base repository; None if there is none, or its file is gone."""
        saved = self._saved.get(repo)
        path = self._folder / saved.file if saved is not None else None
        return path if path is not None and path.is_file() else None

    async def install(self, repo: str, path: str) -> Path:
        """Download the template at `path` of `repo` and use it for the models of that repository.

        Raises HubError, and QwenDeskError if the template is broken too or can't be saved.
        """
        if self._connect is None:
            raise QwenDeskError(tr("No connection"), tr("There is no connection to Hugging Face."))
        template = await asyncio.to_thread(self._download, repo, path, self._connect)
        self._saved[repo] = template
        try:
            await asyncio.to_thread(self._index.write, dict(self._saved))
        except OSError as error:
            raise _not_saved(error) from error
        self.repos.set(frozenset(self._saved))
        return self._folder / template.file

    def _download(self, repo: str, path: str, connect: "Callable[[], Hub]") -> SavedTemplate:
        """Download and check a template. Blocks."""
        from qwendesk.hub.download import download_file  # noqa: PLC0415  (imports the Hub's library)
        from qwendesk.hub.download_control import DownloadControl  # noqa: PLC0415

        hub = connect()
        file: RemoteFile = hub.file(repo, path)
        if file.n_bytes > _MOST_BYTES:
            raise QwenDeskError(
                tr("Not a chat template"), tr("{0} of {1} is too long for a chat template.", path, repo)
            )
        target = repo_file(self._folder / file.revision, repo, path)
        download_file(hub, file, target, lambda _progress: None, DownloadControl())
        try:
            text = target.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise QwenDeskError(tr("Not a chat template"), tr("{0} of {1} isn't text.", path, repo)) from error
        except OSError as error:
            raise _not_saved(error) from error
        if not text.strip() or is_broken_template(text):
            sentence = tr("The template of {0} is broken too, so it isn't used.", repo)
            raise QwenDeskError(tr("The new template is broken too"), sentence)
        return SavedTemplate(file.revision, target.relative_to(self._folder).as_posix())


def base_repo_of(model: LibraryModel, catalog: Catalog) -> str:
    """Return the repository of the model that `model` is a quant of; "" if the catalog doesn't know it."""
    names = (model.facts.name, model.facts.basename) if model.facts is not None else ()
    return catalog.base_repo_of(model.repo, *names, Path(model.path).name)


def _not_saved(error: OSError) -> QwenDeskError:
    return QwenDeskError(tr("Template not saved"), tr("The template couldn't be saved: {0}.", error.strerror or error))
