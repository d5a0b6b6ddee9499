"""What the app keeps on this PC: what it is, where it is, how large, and how all of it is deleted.

The app has four folders of its own (core/paths.py). Everything in them is found by walking them, so that a file that
nobody thought of here is counted as "other" and deleted too. Outside of them lie an access token in the system's
keyring, model folders that the person chose, and what was exported or saved by hand.
"""

import fnmatch
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core import paths
from qwendesk.hub.folders import default_models_folder
from qwendesk.hub.token import delete_token, known_hosts

KINDS: Final = MappingProxyType(
    {
        "chats": ("chats.db*", "chats-version-*", "damaged-*"),
        "attachments": ("attachments",),
        "settings": ("settings.json*", "model-folders.json*", "prompts.json*", "profiles.json*", "window.json*"),
        "token": ("tokens.json*",),
        "measured": ("speeds.json*", "measured_loads.json*", "last-model.json*", "engine-crashes.json*"),
        "downloads": ("downloads.json*",),
        "catalog": ("catalog*",),
        "templates": ("templates",),
        "engines": ("engines",),
        "models": ("models",),
        "logs": ("*.log*",),
        "crashes": ("crashes",),
    }
)
"""Kind to patterns of names at the top of the app's folders; what fits none is "cache" or "other"."""


class Holding(msgspec.Struct, frozen=True):
    """One kind of thing that is kept. `places` are files and folders; empty when there is nothing of it."""

    kind: str
    places: tuple[Path, ...] = ()
    n_bytes: int = 0


def app_folders() -> tuple[Path, ...]:
    """Each once: on some systems several are the same, or lie in each other."""
    return tuple(dict.fromkeys((paths.data_folder(), paths.config_folder(), paths.cache_folder(), paths.log_folder())))


def look() -> tuple[Holding, ...]:
    """All that is kept now. Walks the folders; blocks."""
    found: dict[str, list[Path]] = {kind: [] for kind in (*KINDS, "cache", "other")}
    folders = app_folders()
    for folder in folders:
        for path in _entries(folder):
            if path not in folders:
                found[_kind_of(path)].append(path)
    return tuple(Holding(kind, tuple(places), sum(_size(path) for path in places)) for kind, places in found.items())


def delete_everything(
    *, models: bool, forget_token: Callable[[str], None] = delete_token, hosts: Sequence[str] = ()
) -> tuple[str, ...]:
    """Delete all of it, and the tokens; `models` also those in the app's own folder of models. Blocks.

    Called when nothing of the app runs any more. Returns what could not be deleted, with the reason.
    """
    for host in dict.fromkeys((*known_hosts(), *hosts)):
        forget_token(host)
    troubles: list[str] = []
    kept = None if models else default_models_folder()
    for folder in app_folders():
        for path in _entries(folder):
            if path != kept:
                _delete(path, kept, troubles)
        try:
            folder.rmdir()
        except OSError:
            # Not empty: the models that stay, or what is told in `troubles`.
            continue
    return tuple(troubles)


def _delete(path: Path, kept: Path | None, troubles: list[str]) -> None:
    if kept is not None and path in kept.parents:
        for each in _entries(path):
            if each != kept:
                _delete(each, kept, troubles)
        return
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        troubles.append(f"{path}: {error.strerror or error}")


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _kind_of(path: Path) -> str:
    for kind, patterns in KINDS.items():
        if any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns) and path.parent != paths.cache_folder():
            return kind
    return "cache" if path.parent == paths.cache_folder() else "other"


def _size(path: Path) -> int:
    """Bytes of the files; those that vanish meanwhile count nothing."""
    if path.is_dir() and not path.is_symlink():
        return sum(_size(Path(entry.path)) for entry in _scan(path))
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
