"""Lists the data that the app stores on this PC, deletes it at the user's request, and remembers what couldn't be
deleted.

Links are deleted but not followed: the target of a link is left alone unless the user agreed to empty it too. A note in
the settings folder says that a deletion was requested. It is written first and deleted last, so that an interrupted
deletion is noticed at the next start.

The app has a few folders of its own (core/paths.py). They are listed completely, so that a file of an unknown kind is
counted as "other" and deleted too. Outside these folders are only an access token in the system's keyring, model
folders that the user chose, and files that the user exported or saved.
"""

import asyncio
import fnmatch
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile
from qwendesk.core.links import is_link
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.hub.access_tokens import delete_token, known_hosts
from qwendesk.hub.model_folders import default_models_folder, read_folders

_logger = logging.getLogger(__name__)


class DeletionLeftover(msgspec.Struct, frozen=True):
    """Something that a deletion left behind."""

    what: str
    """A path, or the host of an access token."""
    reason: str = ""
    """The system's error message; empty if the deletion was interrupted."""


class _Note(msgspec.Struct, frozen=True):
    models: bool = False
    """True if the models in the app's own folder are to be deleted too."""
    left: tuple[DeletionLeftover, ...] | None = None
    """None until the deletion is finished."""


def note_file() -> Path:
    return paths.config_folder() / "deletion.json"


def note_deletion(*, models: bool) -> None:
    """Write the note that everything is to be deleted. Blocks. An error is only logged."""
    _write_note(_Note(models))


def take_leftovers() -> tuple[DeletionLeftover, ...]:
    """Return what the last deletion left behind and still exists, and delete the note. Blocks.

    Call it at the start, before anything is written to the app's folders.
    """
    if not note_file().exists():
        return ()
    note = _note().read()
    try:
        note_file().unlink(missing_ok=True)
    except OSError as error:
        _logger.warning("%s could not be deleted: %s", note_file(), error)
    if note.left is None:
        data = (stored for stored in find_stored_data() if note.models or stored.kind != "models")
        return tuple(DeletionLeftover(str(place)) for stored in data for place in stored.places)
    return tuple(each for each in note.left if not Path(each.what).is_absolute() or _is_there(Path(each.what)))


def delete_everything(
    *,
    models: bool,
    emptied: Sequence[Path] = (),
    forget_token: Callable[[str], None] = delete_token,
    hosts: Sequence[str] = (),
) -> tuple[DeletionLeftover, ...]:
    """Delete everything that the app stores, and return what couldn't be deleted. Blocks.

    Call it after everything else in the app has stopped. With `models`, the models in the app's own folder are deleted
    too; model folders that the user chose are always kept. `emptied` are links, as in `find_linked_folders`, whose
    targets are emptied too. `forget_token` deletes the access token of a host; it is called for all known hosts and for
    `hosts`. Leftovers are remembered for the next start.
    """
    all_hosts = dict.fromkeys((*known_hosts(), *hosts))
    note_deletion(models=models)
    chosen, own = read_folders(), default_models_folder()
    kept = {Path(each) for each in (*chosen.models, *chosen.added)} - {own} | (set() if models else {own})
    deletion = _Deletion(kept, emptied)
    deletion.empty_own_folders()
    for host in all_hosts:
        try:
            forget_token(host)
        except Exception as error:  # noqa: BLE001 - each keyring has errors of its own, and the other tokens go too
            deletion.add_leftover(host, error)
    if deletion.leftovers:
        _write_note(_Note(models, tuple(deletion.leftovers)))
    else:
        deletion.delete_folders()
    return tuple(deletion.leftovers)


class _Deletion:
    """One pass over the app's folders. `leftovers` collects what couldn't be deleted."""

    def __init__(self, kept: Iterable[Path], emptied: Sequence[Path]) -> None:
        # The resolved paths are included, because they differ below a linked folder.
        self._kept = {place for path in (*kept, note_file()) for place in (path, _resolved(path))}
        self._emptied = set(emptied)
        self.leftovers: list[DeletionLeftover] = []

    def empty_own_folders(self) -> None:
        """Delete everything in the app's folders except the note and what is to be kept."""
        for folder in paths.own_folders():
            # On some systems one of these folders is inside another one, which may be a link.
            links = [each for each in (folder, *folder.parents) if paths.is_own(each) and is_link(each)]
            if all(link in self._emptied for link in links):
                self._empty(_resolved(folder) if links else folder)

    def delete_folders(self) -> None:
        """Delete the note, and then the app's folders in which nothing is kept."""
        self._try(note_file(), note_file().unlink)
        for folder in paths.own_folders():
            if is_link(folder) and not self._holds_kept(folder):
                self._try(folder, folder.unlink)
            elif folder.is_dir() and not entries(folder):
                self._try(folder, folder.rmdir)

    def add_leftover(self, what: str, error: Exception) -> None:
        """Remember that something could not be deleted."""
        reason = (error.strerror if isinstance(error, OSError) else "") or f"{type(error).__name__}: {error}"
        self.leftovers.append(DeletionLeftover(what, reason))

    def _empty(self, folder: Path) -> None:
        for path in entries(folder):
            if path not in self._kept:
                self._delete_path(path)

    def _delete_path(self, path: Path) -> None:
        if is_link(path):
            if path in self._emptied:
                # Empty it only once, because it may lead to a folder that contains it.
                self._emptied.discard(path)
                self._empty(_resolved(path))
            if path not in paths.own_folders() and not self._holds_kept(path):
                self._try(path, path.unlink)
        elif os.path.ismount(path):
            # A mount point also leads elsewhere, but can't be deleted.
            self.leftovers.append(
                DeletionLeftover(str(path), tr("This is a separate drive. Delete its contents yourself."))
            )
        elif path.is_dir():
            self._empty(path)
            if not self._holds_kept(path) and not any(path in Path(each.what).parents for each in self.leftovers):
                self._try(path, path.rmdir)
        else:
            self._try(path, path.unlink)

    def _holds_kept(self, folder: Path) -> bool:
        return any(folder in kept.parents and kept.exists() for kept in self._kept)

    def _try(self, path: Path, delete: Callable[[], None]) -> None:
        try:
            delete()
        except FileNotFoundError:
            return  # it is deleted already
        except OSError as error:
            self.add_leftover(str(path), error)


def _resolved(path: Path) -> Path:
    """Return the path with links resolved. Unlike `Path.resolve`, don't raise for cycles of links."""
    return Path(os.path.realpath(path))


def _is_there(path: Path) -> bool:
    return is_link(path) or path.exists()


def _write_note(note: _Note) -> None:
    _note().try_write(note)


def _note() -> JsonFile[_Note]:
    return JsonFile(note_file(), _Note, _Note, keep_unusable=False)


# Name patterns of each kind, for entries directly in the app's folders. Other entries are "cache" or "other".
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
            "speed-reports.json*",
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


class DeletionRequest(msgspec.Struct, frozen=True):
    """The data that the user agreed to delete."""

    models: bool
    """True if the models in the app's own folder are deleted too."""
    emptied: tuple[Path, ...] = ()
    """Links whose targets are emptied too."""


class PrivacyState(msgspec.Struct, frozen=True):
    """Stored data and the requested deletion. The data are empty until the first `refresh`."""

    data: tuple[StoredData, ...] = ()
    links: tuple[LinkedFolder, ...] = ()
    """Folders of the app that are links."""
    deletion: DeletionRequest | None = None
    """The request to carry out when the app has closed, if any."""


class PrivacyService:
    """Lists stored data and carries out a deletion. Nothing is deleted before everything else has closed."""

    def __init__(self) -> None:
        self.state = Observed(PrivacyState())

    async def refresh(self) -> None:
        """Update the list of stored data and linked folders."""
        data, links = await asyncio.to_thread(lambda: (find_stored_data(), find_linked_folders()))
        self.state.update(data=data, links=links)

    def request_deletion(self, request: DeletionRequest) -> None:
        """Request a deletion after the app has closed. The window closes the app when this state is set."""
        self.state.update(deletion=request)

    async def note_request(self) -> None:
        """Write a requested deletion to disk, so that the next start knows about it even if the app is killed."""
        request = self.state.value.deletion
        if request is not None:
            await asyncio.to_thread(note_deletion, models=request.models)

    def carry_out(self, host: str) -> tuple[DeletionLeftover, ...]:
        """Carry out the requested deletion, if any, and return what couldn't be deleted. Blocks.

        Call it after everything else in the app has stopped. The access token of the Hub at `host` is deleted too.
        """
        request = self.state.value.deletion
        if request is None:
            return ()
        return delete_everything(models=request.models, emptied=request.emptied, hosts=(host,))
