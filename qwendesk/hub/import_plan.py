"""Where the files of a model go when it is imported: one folder per repository, names that every system takes."""

import re
from pathlib import Path, PurePath

from qwendesk.hub.folders import repo_file
from qwendesk.hub.importing import How, ImportItem
from qwendesk.hub.library import Library, LibraryModel

_NO_REPOSITORY = "imported"
"""In place of an owner, for files whose repository nothing tells."""
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f<>:\"/\\|?*]+")


def import_plan(model: LibraryModel, library: Library, models: Path, how: How) -> tuple[ImportItem, ...]:
    """The files of `model` and where they belong in the models folder `models`, with the picture file if it has one.

    A picture file that other models use too is copied, also when the model is moved. Files that are there already
    are left out. Raises QwenDeskError for a name that cannot be used.
    """
    name = _usable(model.name)
    repo = model.repo or f"{_NO_REPOSITORY}/{name}"
    inside = PurePath(model.repo_path).parent.as_posix() if model.repo_path else "."
    prefix = "" if inside == "." else f"{inside}/"
    pairs = [(file.path, prefix + _file_name(file.path, name), how) for file in model.files]
    pictures = model.mmproj
    if pictures is not None:
        quant = pictures.facts.quant if pictures.facts is not None else ""
        own_name = _file_name(pictures.path, f"mmproj-{quant or name}")
        pairs.append((pictures.path, own_name, how if _is_its_own(model, pictures, library) else "copy"))
    items = [ImportItem(source, str(repo_file(models, repo, path)), each_how) for source, path, each_how in pairs]
    return tuple(item for item in items if PurePath(item.source) != PurePath(item.target))


def _is_its_own(model: LibraryModel, pictures: LibraryModel, library: Library) -> bool:
    users = {each.path for each in library.models if each.mmproj is not None and each.mmproj.path == pictures.path}
    beside = PurePath(pictures.path).parent == PurePath(model.path).parent
    return beside and users <= {model.path}


def _file_name(path: str, otherwise: str) -> str:
    """The file's own name; Ollama's blobs have none."""
    name = PurePath(path).name
    return name if name.lower().endswith(".gguf") else f"{otherwise}.gguf"


def _usable(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name).strip(". ") or "model"
