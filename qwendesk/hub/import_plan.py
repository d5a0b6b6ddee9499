"""Plans an import: one folder for each repository, with names that are valid on every system."""

import re
from pathlib import Path, PurePath

from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.model_folders import repo_file
from qwendesk.hub.model_import import How, ImportItem

_NO_REPOSITORY = "imported"
"""Folder used in place of the owner's if the repository is unknown."""
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f<>:\"/\\|?*]+")


def import_plan(model: LibraryModel, library: Library, models: Path, how: How) -> tuple[ImportItem, ...]:
    """Return the files of `model` and its mmproj with their targets in the models folder `models`.

    An mmproj that other models use is copied even if the model is moved. Files that are already at their target are
    left out. Raises QwenDeskError for a name that can't be used.
    """
    name = _allowed_name(model.name)
    repo = model.repo or f"{_NO_REPOSITORY}/{name}"
    inside = PurePath(model.repo_path).parent.as_posix() if model.repo_path else "."
    prefix = "" if inside == "." else f"{inside}/"
    pairs = [(file.path, prefix + _file_name(file.path, name), how) for file in model.files]
    mmproj = model.mmproj
    if mmproj is not None:
        quant = mmproj.facts.quant if mmproj.facts is not None else ""
        own_name = _file_name(mmproj.path, f"mmproj-{quant or name}")
        pairs.append((mmproj.path, own_name, how if _is_used_alone(model, mmproj, library) else "copy"))
    items = [ImportItem(source, str(repo_file(models, repo, path)), each_how) for source, path, each_how in pairs]
    return tuple(item for item in items if PurePath(item.source) != PurePath(item.target))


def _is_used_alone(model: LibraryModel, mmproj: LibraryModel, library: Library) -> bool:
    users = {each.path for each in library.models if each.mmproj is not None and each.mmproj.path == mmproj.path}
    is_nearby = PurePath(mmproj.path).parent == PurePath(model.path).parent
    return is_nearby and users <= {model.path}


def _file_name(path: str, otherwise: str) -> str:
    """Return the file's own name, or `otherwise` for Ollama's blobs, which have none."""
    name = PurePath(path).name
    return name if name.lower().endswith(".gguf") else f"{otherwise}.gguf"


def _allowed_name(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name).strip(". ") or "model"
