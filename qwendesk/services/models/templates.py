"""Chat templates of the base models, fetched where a file's own is broken, pinned by commit and kept here."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import decode_json, write_whole
from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.folders import repo_file
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.verify_use import is_broken_template

if TYPE_CHECKING:
    from qwendesk.hub.remote import Hub, RemoteFile

_logger = logging.getLogger(__name__)
_INDEX = "templates.json"
_MOST_BYTES = 1024**2


class Template(msgspec.Struct, frozen=True):
    """One template that is kept."""

    commit: str
    file: str
    """Relative to the templates folder."""


class TemplatesService:
    """Owns the kept templates, by base repository. Methods are called on the event loop's thread."""

    def __init__(self, connect: "Callable[[], Hub] | None" = None, folder: Path | None = None) -> None:
        self._connect = connect
        self._folder = folder or paths.data_folder() / "templates"
        self._known = _read(self._folder / _INDEX)
        self._subscribers = Subscribers[str]()

    @property
    def repos(self) -> frozenset[str]:
        """Base repositories whose template is here."""
        return frozenset(self._known)

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with a repository whose template came. Returns what ends it."""
        return self._subscribers.add(callback)

    def path(self, repo: str) -> Path | None:
        """The kept template of a base repository; None when it is not here (any more)."""
        known = self._known.get(repo)
        path = self._folder / known.file if known is not None else None
        return path if path is not None and path.is_file() else None

    async def fetch(self, repo: str, path: str) -> Path:
        """Gets the present template at `path` of `repo`, and uses it from now on.

        Raises HubTrouble, and QwenDeskError for one that is no better or cannot be kept.
        """
        if self._connect is None:
            raise QwenDeskError("No connection", "This window was built without a connection to Hugging Face.")
        template = await asyncio.to_thread(self._fetched, repo, path, self._connect)
        self._known[repo] = template
        try:
            await asyncio.to_thread(write_whole, self._folder / _INDEX, msgspec.json.encode(self._known))
        except OSError as error:
            raise _not_kept(error) from error
        self._subscribers.notify(repo)
        return self._folder / template.file

    def _fetched(self, repo: str, path: str, connect: "Callable[[], Hub]") -> Template:
        """On another thread."""
        from qwendesk.hub.download import download_file  # noqa: PLC0415  (imports the Hub's library)
        from qwendesk.hub.download_control import Control  # noqa: PLC0415

        hub = connect()
        file: RemoteFile = hub.file(repo, path)
        if file.n_bytes > _MOST_BYTES:
            raise QwenDeskError("Not a template", f"{path} of {repo} is far too long to be a chat template.")
        target = repo_file(self._folder / file.revision, repo, path)
        download_file(hub, file, target, lambda _progress: None, Control())
        try:
            text = target.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise QwenDeskError("Not a template", f"{path} of {repo} is not text.") from error
        except OSError as error:
            raise _not_kept(error) from error
        if not text.strip() or is_broken_template(text):
            sentence = f"The template that {repo} has now is broken in the same way. The file's own one is kept."
            raise QwenDeskError("No better template", sentence)
        return Template(file.revision, target.relative_to(self._folder).as_posix())


def base_repo_of(model: LibraryModel, catalog: Catalog) -> str:
    """The repository of the model that `model` is a quant of; "" when the catalog does not know."""
    repository = catalog.repository(model.repo)
    if repository is not None:
        found = catalog.model(repository.model)
    else:
        names = (model.facts.name, model.facts.basename) if model.facts is not None else ()
        found = catalog.model_of(model.repo, *names, Path(model.path).name)
    return found.base_repo if found is not None else ""


def _read(index: Path) -> dict[str, Template]:
    try:
        return decode_json(index.read_bytes(), dict[str, Template])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used: templates have to be fetched again: %s", index, error)
        return {}


def _not_kept(error: OSError) -> QwenDeskError:
    return QwenDeskError("Template not kept", f"The template could not be saved: {error.strerror or error}.")
