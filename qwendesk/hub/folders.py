"""The user's model folders: which they are, and where in them a repository's file belongs.

Ours hold one folder per repository, `<owner>/<repository>/<path in the repository>`, because every repository has a
`mmproj-F16.gguf` of its own.
"""

import logging
import re
from pathlib import Path, PurePath

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import decode_json, write_whole

_logger = logging.getLogger(__name__)

_FILE = "model-folders.json"
_PART = re.compile(r"[^\x00-\x1f<>:\"/\\|?*]+")
"""A name every file system takes (Windows refuses the most)."""
_HIDDEN = re.compile(r"[.$].*|system volume information", re.IGNORECASE)
"""Also what Windows keeps on each drive: `$RECYCLE.BIN` with what was deleted, and its restore points."""
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices, with any ending."""


class ModelFolders(msgspec.Struct, frozen=True):
    """What the user chose. Paths are absolute, written as the system writes them, and none is there twice."""

    models: tuple[str, ...]
    """The app's own folders; downloads and imports go to the first unless another is named. Never empty."""
    added: tuple[str, ...] = ()
    """Folders the user added: files there are used in place."""
    other_apps: bool = True
    """Look in the folders of LM Studio, Jan, Ollama, llama.cpp and the Hugging Face cache too."""

    def __post_init__(self) -> None:
        # A dialog of Qt gives `D:/models` where the system says `D:\models`.
        models = dict.fromkeys(map(Path, self.models))
        added = dict.fromkeys(each for each in map(Path, self.added) if each not in models)
        msgspec.structs.force_setattr(self, "models", tuple(map(str, models)))
        msgspec.structs.force_setattr(self, "added", tuple(map(str, added)))


def read_folders() -> ModelFolders:
    """The user's choice; the folder `models` in the app's data where nothing is chosen yet.

    A file that cannot be read is logged and counts as no choice: models would not be lost, only not found.
    """
    chosen = paths.config_folder() / _FILE
    try:
        folders = decode_json(chosen.read_bytes(), ModelFolders)
    except FileNotFoundError:
        folders = ModelFolders(())
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used, the usual model folder is taken: %s", chosen, error)
        folders = ModelFolders(())
    return folders if folders.models else msgspec.structs.replace(folders, models=(str(default_models_folder()),))


def write_folders(folders: ModelFolders) -> None:
    """Remembers the choice. Raises OSError."""
    content = msgspec.json.format(msgspec.json.encode(folders), indent=2)
    write_whole(paths.config_folder() / _FILE, content)


def default_models_folder() -> Path:
    return paths.data_folder() / "models"


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is nothing that a person put there to be used."""
    return _HIDDEN.fullmatch(name) is not None


def repo_folder(models: Path, repo: str) -> Path:
    """Where the files of `repo` ("owner/name") belong below the models folder. Raises QwenDeskError as `repo_file`."""
    return models.joinpath(*_safe_parts(repo))


def repo_file(models: Path, repo: str, repo_path: str) -> Path:
    """Where `repo_path` of `repo` belongs below the models folder.

    Raises QwenDeskError for a name that would lead out of that folder or that some file system does not take.
    """
    return repo_folder(models, repo).joinpath(*_safe_parts(repo_path))


def repo_of(models: PurePath, path: PurePath) -> tuple[str, str] | None:
    """The repository and the path in it that a file below the models folder stands for; None if it lies elsewhere."""
    if not path.is_relative_to(models):
        return None
    parts = path.relative_to(models).parts
    return ("/".join(parts[:2]), "/".join(parts[2:])) if len(parts) > 2 else None


def _safe_parts(name: str) -> list[str]:
    parts = name.split("/")
    for part in parts:
        if not _PART.fullmatch(part) or part.endswith((".", " ")) or _DEVICE.fullmatch(part):
            sentence = f'"{name}" cannot be the name of a file or folder here. Choose another file.'
            raise QwenDeskError("Not a usable name", sentence)
    return parts
