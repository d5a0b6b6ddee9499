"""The catalog that the app uses: the one it came with, and what the Hub has answered since, which is saved."""

import datetime
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.catalog_updates import Updates, joined, updated, updates_in_use

_UPDATES_FILE, _LAST_FILE = "catalog-updates.json", "catalog-look-up.json"
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]


class LastLookUp(msgspec.Struct, frozen=True):
    """When the files of all repositories were last looked up on the Hub."""

    done: _Time | None = None
    """The last time that it succeeded."""
    tried: _Time | None = None
    """The last time, whether it succeeded or not."""
    problem: str = ""
    """Why it failed that time, in a sentence; "" if it succeeded."""


class CatalogStore:
    """Owns the catalog and what is saved of it. Its methods read and write files, and may be called on any thread."""

    def __init__(self, load: Callable[[], Catalog] = load_catalog, folder: Path | None = None) -> None:
        """`load` reads the catalog that the app came with. Updates are saved in `folder`, by default the app's."""
        folder = folder or paths.data_folder()
        self._load = load
        self._updates_file = JsonFile(folder / _UPDATES_FILE, Updates, dict, keep_unusable=False)
        self._last_file = JsonFile(folder / _LAST_FILE, LastLookUp, LastLookUp, keep_unusable=False)
        self._lock = threading.Lock()
        self._original: Catalog | None = None
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """The catalog with all updates. Never blocks once it has been read. Raises BadCatalog."""
        if self._catalog is not None:
            return self._catalog
        with self._lock:
            if self._catalog is None:
                self._catalog = updated(self._read_original(), self._updates_file.read())
            return self._catalog

    @property
    def updates(self) -> Updates:
        """The saved updates that change the catalog. Raises BadCatalog."""
        with self._lock:
            return updates_in_use(self._read_original(), self._updates_file.read())

    def add(self, answers: Updates) -> None:
        """Update the catalog with the Hub's answers about its repositories, and save them. Raises BadCatalog.

        Answers about other repositories are ignored. Without a change, `catalog` stays the same object.
        """
        with self._lock:
            original = self._read_original()
            known = {repo: each for repo, each in answers.items() if original.repository(repo) is not None}
            if not known:
                return
            updates = joined(self._updates_file.read(), known)
            fresh = updated(original, updates)
            if self._catalog is None or fresh.contents != self._catalog.contents:
                self._catalog = fresh
            self._updates_file.try_write(updates)

    def read_last(self) -> LastLookUp:
        """Return when the Hub was last asked about all repositories."""
        return self._last_file.read()

    def save_last(self, last: LastLookUp) -> None:
        self._last_file.try_write(last)

    def _read_original(self) -> Catalog:
        if self._original is None:
            self._original = self._load()
        return self._original
