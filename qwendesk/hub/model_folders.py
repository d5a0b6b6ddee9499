"""The user's model folders, and the paths of a repository's files in them.

In the app's own folders they are `<owner>/<repository>/<path in the repository>`: each repository has its own folder,
because each has its own `mmproj-F16.gguf`.
"""

import re
from pathlib import Path, PurePath

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_file import JsonFile
from qwendesk.core.translation import tr

_FILE = "model-folders.json"
# A name that every file system allows (Windows allows the fewest).
_PART = re.compile(r"[^\x00-\x1f<>:\"/\\|?*]+")
# Hidden names, including the recycle bin and the restore points that Windows has on each drive.
_HIDDEN = re.compile(r"[.$].*|system volume information", re.IGNORECASE)
# Names that Windows reserves for devices, with any extension.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


class ModelFolders(msgspec.Struct, frozen=True):
    """The folders and files that the user chose. Paths are absolute, in the system's notation, without duplicates."""

    models: tuple[str, ...]
    """The app's own folders; downloads and imports go to the first unless the user chooses another. Never empty."""
    added: tuple[str, ...] = ()
    """Folders that the user added, whose files are used in place."""
    opened: tuple[str, ...] = ()
    """Model files that the user opened from anywhere, the latest last. They are used in place."""
    other_apps: bool = True
    """Whether the folders of other apps and the Hugging Face cache are searched too."""

    def __post_init__(self) -> None:
        # Qt's dialogs return `D:/models` for `D:\models`.
        models = dict.fromkeys(map(Path, self.models))
        added = dict.fromkeys(each for each in map(Path, self.added) if each not in models)
        msgspec.structs.force_setattr(self, "models", tuple(map(str, models)))
        msgspec.structs.force_setattr(self, "added", tuple(map(str, added)))


def read_folders() -> ModelFolders:
    """Return the folders that the user chose; by default the folder `models` in the app's data folder."""
    folders = _file().read()
    return folders if folders.models else msgspec.structs.replace(folders, models=(str(default_models_folder()),))


def write_folders(folders: ModelFolders) -> None:
    """Save the folders. Raises OSError."""
    _file().write(folders)


def _file() -> JsonFile[ModelFolders]:
    return JsonFile(paths.config_folder() / _FILE, ModelFolders, lambda: ModelFolders(()))


def default_models_folder() -> Path:
    return paths.data_folder() / "models"


def is_hidden(name: str) -> bool:
    """Return True for the name of a hidden file or folder, or of a system folder."""
    return _HIDDEN.fullmatch(name) is not None


def repo_folder(models: Path, repo: str) -> Path:
    """Return the folder for `repo` ("owner/name") in a models folder. Raises QwenDeskError like `repo_file`."""
    return models.joinpath(*_safe_parts(repo))


def repo_file(models: Path, repo: str, repo_path: str) -> Path:
    """Return the path of `repo_path` of `repo` in a models folder.

    Raises QwenDeskError for a name that would lead out of that folder, or that isn't allowed on every file system.
    """
    return repo_folder(models, repo).joinpath(*_safe_parts(repo_path))


def repo_of(models: PurePath, path: PurePath) -> tuple[str, str] | None:
    """Return the repository and the path in it of a file in a models folder; None for other files."""
    if not path.is_relative_to(models):
        return None
    parts = path.relative_to(models).parts
    return ("/".join(parts[:2]), "/".join(parts[2:])) if len(parts) > 2 else None


def _safe_parts(name: str) -> list[str]:
    parts = name.split("/")
    for part in parts:
        if not _PART.fullmatch(part) or part.endswith((".", " ")) or _DEVICE.fullmatch(part):
            sentence = tr('"{0}" can\'t be the name of a file or folder here. Choose another file.', name)
            raise QwenDeskError(tr("Name not allowed"), sentence)
    return parts
