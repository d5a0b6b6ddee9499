"""Lists the data that the app stores on this PC, with location and size. `deletion.py` deletes all of it.

The app has a few folders of its own (core/paths.py). They are listed completely, so that a file of an unknown kind is
counted as "other" and deleted too. Outside these folders are only an access token in the system's keyring, model
folders that the user chose, and files that the user exported or saved.
"""

import fnmatch
import os
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core import paths
from qwendesk.core.links import is_link

KINDS: Final = MappingProxyType(
    {
        "chats": ("chats.db*", "chats-backup-*", "chats-version-*", "damaged-*", "replaced-*"),
        "attachments": ("attachments", "attachments-removed"),
        "settings": (
            "settings.json*",
            "model-folders.json*",
            "prompts.json*",
            "profiles.json*",
            "window.json*",
            "browser-pages.json*",
            "deletion.json*",
            "mcp-servers.json*",
            "servers.json*",
        ),
        "tools": ("file-edits", "tool_consents.json*"),
        "notes": ("notes.json*",),
        "token": ("tokens.json*", "token_hosts.json*"),
        "measured": (
            "speeds.json*",
            "draft-speedups.json*",
            "measured_loads.json*",
            "last-model.json*",
            "engine-crashes.json*",
            "bench-*.json*",
        ),
        "downloads": ("downloads.json*",),
        "catalog": ("catalog*", "app-updates.json*"),
        "templates": ("templates",),
        "engines": ("engines",),
        "models": ("models",),
        "logs": ("*.log*",),
        "crashes": ("crashes",),
    }
)
"""Name patterns of each kind, for entries directly in the app's folders. Other entries are "cache" or "other"."""


class StoredData(msgspec.Struct, frozen=True):
    """One kind of stored data. `places` are its files and folders; empty if there are none."""

    kind: str
    places: tuple[Path, ...] = ()
    n_bytes: int = 0


class LinkedFolder(msgspec.Struct, frozen=True):
    """A folder of the app that is a link, for example because the user moved its content to another disk."""

    link: Path
    target: Path
    may_be_emptied: bool
    """False for a target that has far more than the app's data: the home folder or a folder that contains it."""


def find_stored_data() -> tuple[StoredData, ...]:
    """Return all data that is stored now. Walks the folders; blocks."""
    found: dict[str, list[Path]] = {kind: [] for kind in (*KINDS, "cache", "other")}
    folders = paths.own_folders()
    for folder in folders:
        for path in entries(folder):
            if path not in folders:
                found[_kind_of(path)].append(path)
    return tuple(StoredData(kind, tuple(places), sum(_size(path) for path in places)) for kind, places in found.items())


def find_linked_folders() -> tuple[LinkedFolder, ...]:
    """Return those of the app's folders, and of the folders directly in them, that are links. Blocks."""
    folders = paths.own_folders()
    candidates = dict.fromkeys((*folders, *(path for folder in folders for path in entries(folder))))
    return tuple(_linked(path) for path in candidates if is_link(path) and path.is_dir())


def entries(folder: Path) -> list[Path]:
    """Return the entries of `folder`, sorted; an empty list if it can't be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _linked(link: Path) -> LinkedFolder:
    target, home = link.resolve(), Path.home().resolve()
    return LinkedFolder(link, target, may_be_emptied=target not in (home, *home.parents))


def _kind_of(path: Path) -> str:
    for kind, patterns in KINDS.items():
        if any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns) and path.parent != paths.cache_folder():
            return kind
    return "cache" if path.parent == paths.cache_folder() else "other"


def _size(path: Path) -> int:
    """Return the size in bytes. Files that are deleted in the meantime count as 0."""
    if path.is_dir() and not is_link(path):
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
