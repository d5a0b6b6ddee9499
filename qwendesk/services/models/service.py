"""The models on this computer: what the window and the commands know of them, and may do with them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.deleting import Deleted, Deletion, NotDeleted, delete, deletion_of
from qwendesk.hub.folders import ModelFolders, read_folders, write_folders
from qwendesk.hub.import_plan import import_plan
from qwendesk.hub.importing import How, Imported, ImportItem, NotImported, import_files
from qwendesk.hub.library import Library, LibraryModel, model_at, scan
from qwendesk.hub.library_headers import Headers
from qwendesk.hub.library_places import DiskLook, Machine, Place, all_places, app_places, this_machine
from qwendesk.services.models.drives import free_on_drive

_RESCAN_S = 10.0
"""A rescan of 500 models takes about 0.1 s of one thread."""


class ModelsService:
    """Owns the library. Methods are called on the event loop's thread; the disk is looked at on others."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or this_machine()
        self._headers = Headers()
        self._library = Library()
        self._free: dict[str, int | None] = {}
        self._folders = read_folders()
        self._library_subscribers = Subscribers[Library]()
        self._folders_subscribers = Subscribers[ModelFolders]()
        self._one_scan = asyncio.Lock()
        self._closing = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None

    @property
    def library(self) -> Library:
        """As the last scan found it; empty before the first."""
        return self._library

    @property
    def folders(self) -> ModelFolders:
        return self._folders

    def subscribe_library(self, callback: Callable[[Library], None]) -> Callable[[], None]:
        """Call `callback` with the library each time it changed. Returns what ends it."""
        return self._library_subscribers.add(callback)

    def subscribe_folders(self, callback: Callable[[ModelFolders], None]) -> Callable[[], None]:
        """Call `callback` with the user's folders each time they changed. Returns what ends it."""
        return self._folders_subscribers.add(callback)

    def free_bytes(self, folder: str) -> int | None:
        """Free on the drive of one of our folders when it was last looked at; None when nobody could say."""
        return self._free.get(folder)

    async def refresh(self) -> Library:
        """Look at all places again."""
        async with self._one_scan:
            folders = self._folders
            library, self._free = await asyncio.to_thread(self._look, folders)
        if library != self._library:
            self._library = library
            self._library_subscribers.notify(library)
        return library

    def watch(self) -> None:
        """Look again every few seconds, until `close`."""
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Returns when nothing runs any more."""
        self._closing.set()
        if self._watcher is not None:
            await self._watcher

    async def set_folders(self, folders: ModelFolders) -> Library:
        """Change and remember the user's folders, and look there.

        Raises QwenDeskError when a folder of ours would lie in another app's, and when it cannot be remembered.
        """
        await asyncio.to_thread(self._keep_folders, folders)
        self._folders = folders
        self._folders_subscribers.notify(folders)
        return await self.refresh()

    def find(self, wanted: str) -> LibraryModel:
        """The one model with that path or name (without regard to case). Raises QwenDeskError if it is not one."""
        everything = self._library.everything
        path = str(Path(wanted).absolute())
        found = [each for each in everything if path in {file.path for file in each.files}]
        found = found or [each for each in everything if each.name.lower() == wanted.lower()]
        if not found:
            sentence = f'No model here is called "{wanted}". `qwendesk models list` shows them all.'
            raise QwenDeskError("No such model", sentence)
        if len(found) > 1:
            paths = ", ".join(each.path for each in found)
            raise QwenDeskError("Several models of that name", f"Several are called {wanted}: {paths}. Give the path.")
        return found[0]

    def deletion_of(self, model: LibraryModel) -> Deletion | NotDeleted:
        """What deleting `model` would take away, to ask about; or why that cannot be."""
        return deletion_of(model, self._library)

    async def delete(self, deletion: Deletion, *, permanently: bool) -> Deleted | NotDeleted:
        """Put the files in the trash, or delete them for good."""
        outcome = await asyncio.to_thread(delete, deletion, permanently=permanently)
        await self.refresh()
        return outcome

    async def import_model(
        self,
        source: Path,
        how: How,
        models_folder: Path | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> Imported | NotImported:
        """Bring the model at `source`, all its parts and its picture file into a folder of ours (the first one).

        A file already in a folder of ours moves to the other folder. `cancelled` and `progress` (bytes done, in all)
        are called on another thread.
        """
        await self.refresh()
        target = models_folder or Path(self._folders.models[0])
        planned = await asyncio.to_thread(self._plan_import, source, how, target)
        if isinstance(planned, NotImported):
            return planned
        outcome = await asyncio.to_thread(import_files, planned, cancelled, progress)
        await self.refresh()
        return outcome

    def _plan_import(self, source: Path, how: How, target: Path) -> tuple[ImportItem, ...] | NotImported:
        place = self._app_place_of(target)
        if place is not None:
            return NotImported(
                f"{target} lies in a folder of {place.app}, which stays as it is. Choose another folder."
            )
        place = self._app_place_of(source)
        if place is not None and how == "move":
            return NotImported(f"{source.name} belongs to {place.app}, whose files stay where they are. Copy it.")
        known = (each for each in self._library.everything if str(source) in {file.path for file in each.files})
        model = next(known, None) or model_at(source, Headers())
        if model is None:
            return NotImported(f"There is no model file {source}.")
        if model.problem:
            return NotImported(model.problem)
        planned = import_plan(model, self._library, target, how)
        return planned or NotImported(f"{model.name} is there already.")

    def _look(self, folders: ModelFolders) -> tuple[Library, dict[str, int | None]]:
        library = scan(all_places(folders, self._machine, DiskLook()), self._headers)
        return library, {each: free_on_drive(Path(each)) for each in folders.models}

    def _app_place_of(self, path: Path) -> Place | None:
        """The other app's folder that holds `path`, also when the app is not looked at for models."""
        real = path.resolve()
        places = app_places(self._machine, DiskLook())
        return next((place for place in places if real.is_relative_to(Path(place.path).resolve())), None)

    def _keep_folders(self, folders: ModelFolders) -> None:
        for each in folders.models:
            place = self._app_place_of(Path(each))
            if place is not None:
                sentence = f"{each} lies in a folder of {place.app}, which stays as it is. Choose another folder."
                raise QwenDeskError("Another app's folder", sentence)
        try:
            write_folders(folders)
        except OSError as error:
            sentence = f"The choice of folders could not be saved: {error.strerror or error}."
            raise QwenDeskError("Folders not saved", sentence) from error

    async def _watch(self) -> None:
        while not self._closing.is_set():
            await self.refresh()
            try:
                await asyncio.wait_for(self._closing.wait(), _RESCAN_S)
            except TimeoutError:
                continue
