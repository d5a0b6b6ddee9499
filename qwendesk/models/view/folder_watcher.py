"""Watches the model folders for changes that the system reports."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from PySide6.QtCore import QFileSystemWatcher, QObject, Signal

from qwendesk.models.library_service import LibraryService
from qwendesk.models.library_watch import LibraryWatch

# Systems limit how many folders a program may watch; on some, all programs share that limit.
_MOST = 1_000


class FolderWatcher(QObject):
    """Watches folders, on the window's thread.

    Pass only folders that were just read successfully: a network drive that doesn't respond would block.
    """

    changed = Signal()
    """A file or folder was added to or removed from one of the folders."""

    def __init__(self) -> None:
        super().__init__()
        self._system = QFileSystemWatcher(self)
        self._system.directoryChanged.connect(self.changed)

    def follow(self, folders: Sequence[str]) -> bool:
        """Watch these folders and no others. Return False if the system doesn't watch all of them."""
        wanted, watched = set(folders[:_MOST]), set(self._system.directories())
        if watched - wanted:
            self._system.removePaths(sorted(watched - wanted))
        refused = self._system.addPaths(sorted(wanted - watched)) if wanted - watched else []
        return not refused and len(folders) <= _MOST


def build_library_watch(library: LibraryService, closing: AsyncExitStack) -> LibraryWatch:
    """Return a watch that rescans the model folders when a FolderWatcher reports a change."""
    watcher = FolderWatcher()
    closing.callback(watcher.deleteLater)
    watch = LibraryWatch(library, watcher.follow)
    closing.push_async_callback(watch.close)
    watcher.changed.connect(watch.note_change)
    return watch
