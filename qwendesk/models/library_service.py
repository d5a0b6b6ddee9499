"""The models on this PC: scanning the folders, deleting and importing."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_file import run_in_thread
from qwendesk.core.links import real_path
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import join_list, tr
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import Library, LibraryModel, OpenedFile, model_at, scan
from qwendesk.hub.library_places import (
    FileLookup,
    HostEnvironment,
    SearchFolder,
    all_places,
    app_places,
    sync_service,
    this_machine,
)
from qwendesk.hub.model_deletion import DeletedFiles, DeletionFailure, ModelDeletion, delete, deletion_of
from qwendesk.hub.model_folders import ModelFolders, read_folders, write_folders
from qwendesk.hub.model_import import How, Imported, ImportItem, NotImported, import_files, import_plan


class LibraryState(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the last scan, and the folders that the user chose."""

    library: Library = Library()
    folders: ModelFolders
    free_bytes: Mapping[str, int | None] = {}
    """Free space on the drive of each models folder; None if unknown."""
    is_scanned: bool = False
    searched: tuple[SearchFolder, ...] = ()
    """The folders of the last scan, those of other apps included."""


class LibraryService:
    """Owns the library. Call its methods on the event loop's thread; it accesses the disk on others."""

    def __init__(self, machine: HostEnvironment | None = None, headers: HeaderCache | None = None) -> None:
        self.headers = headers or HeaderCache()
        """Shared with everything that reads model files."""
        self._machine = machine or this_machine()
        self.state = Observed(LibraryState(folders=read_folders()))
        self._one_scan = asyncio.Lock()

    @property
    def current(self) -> Library:
        """The library as the last scan found it; empty before the first."""
        return self.state.value.library

    @property
    def folders(self) -> ModelFolders:
        return self.state.value.folders

    def sync_service(self, folder: str) -> str:
        """Return the name of the cloud service that uploads what is saved in `folder`; "" if none is known."""
        return sync_service(Path(folder), self._machine)

    async def refresh(self) -> Library:
        """Scan all folders again. 500 models take about 0.1 s."""
        async with self._one_scan:
            searched, library, free_bytes = await asyncio.to_thread(self._scan, self.folders)
        self.state.update(library=library, free_bytes=free_bytes, is_scanned=True, searched=searched)
        return library

    async def usable(self) -> list[LibraryModel]:
        """Return the models on this PC that have no known problem. Looks for them at the first call."""
        library = self.current if self.state.value.is_scanned else await self.refresh()
        return [model for model in library.models if not model.problem]

    async def largest_first(self) -> tuple[LoadOptions, ...]:
        """Scan the folders and return how to load each model without a known problem, the largest first."""
        models = (model for model in (await self.refresh()).models if not model.problem and model.facts is not None)
        return tuple(
            LoadOptions(model=model.path, mmproj=model.mmproj.path if model.mmproj is not None else "")
            for model in sorted(models, key=lambda model: model.n_bytes, reverse=True)
        )

    async def add_models_folder(self, folder: str) -> None:
        """Add a folder that downloads and imports may go to, after the others."""
        folders = self.folders
        if folder not in folders.models:
            added = tuple(each for each in folders.added if each != folder)
            await self.set_folders(msgspec.structs.replace(folders, models=(*folders.models, folder), added=added))

    async def use_in_place(self, folder: str) -> None:
        """Add a folder whose models are used and never changed."""
        folders = self.folders
        if folder not in (*folders.models, *folders.added):
            await self.set_folders(msgspec.structs.replace(folders, added=(*folders.added, folder)))

    async def download_to(self, folder: str) -> None:
        """Make `folder` the first models folder, which downloads go to."""
        others = tuple(each for each in self.folders.models if each != folder)
        await self.set_folders(msgspec.structs.replace(self.folders, models=(folder, *others)))

    async def remove_folder(self, folder: str) -> None:
        """Stop using `folder` and keep its files. The last models folder is never removed."""
        models = tuple(each for each in self.folders.models if each != folder)
        added = tuple(each for each in self.folders.added if each != folder)
        if models:
            await self.set_folders(msgspec.structs.replace(self.folders, models=models, added=added))

    async def add_opened(self, file: str) -> None:
        """Keep a model file in the library that was opened from elsewhere; nothing changes for one that is in it.

        Others that are gone are forgotten, unless their whole folder is: that may be on a drive that comes back.
        """
        library = self.current if self.state.value.is_scanned else await self.refresh()
        if file in self.folders.opened or any(
            file == each.path for model in library.everything for each in model.files
        ):
            return
        if await asyncio.to_thread(Path(file).is_file):
            kept = await asyncio.to_thread(_still_there, self.folders.opened)
            await self.set_folders(msgspec.structs.replace(self.folders, opened=(*kept, file)))

    async def forget_opened(self, file: str) -> None:
        """Take a file that was opened from elsewhere out of the library. The file stays."""
        opened = tuple(each for each in self.folders.opened if each != file)
        await self.set_folders(msgspec.structs.replace(self.folders, opened=opened))

    async def include_other_apps(self, *, included: bool) -> None:
        """Use, or don't use, the models of LM Studio, Jan and other apps."""
        if included != self.folders.other_apps:
            await self.set_folders(msgspec.structs.replace(self.folders, other_apps=included))

    async def set_folders(self, folders: ModelFolders) -> Library:
        """Save the user's folders and scan them.

        Raises QwenDeskError if a models folder is inside another app's folder, or if they can't be saved.
        """
        await asyncio.to_thread(self._save_folders, folders)
        self.state.update(folders=folders)
        return await self.refresh()

    def find(self, wanted: str) -> LibraryModel:
        """Return the model with that path or name, ignoring case. Raises QwenDeskError if there is not exactly one."""
        everything = self.current.everything
        path = str(Path(wanted).absolute())
        found = [each for each in everything if path in {file.path for file in each.files}]
        found = found or [each for each in everything if each.name.lower() == wanted.lower()]
        if not found:
            sentence = tr('There is no model "{0}". `qwendesk models list` shows all models.', wanted)
            raise QwenDeskError(tr("Model not found"), sentence)
        if len(found) > 1:
            paths = join_list(each.path for each in found)
            sentence = tr("Several models are called {0}: {1}. Use the path instead.", wanted, paths)
            raise QwenDeskError(tr("Several models have this name"), sentence)
        return found[0]

    def deletion_of(self, model: LibraryModel) -> ModelDeletion | DeletionFailure:
        """Return what deleting `model` would delete, or why it can't be deleted."""
        return deletion_of(model, self.current)

    async def delete(self, deletion: ModelDeletion, *, permanently: bool) -> DeletedFiles | DeletionFailure:
        """Move the files to the trash, or delete them permanently."""
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
        """Copy or move the model at `source`, with all shards and its vision projector, into `models_folder`.

        By default that is the first models folder. `cancelled` and `progress` (bytes done and total) are called on
        another thread.
        """
        await self.refresh()
        target = models_folder or Path(self.folders.models[0])
        planned = await asyncio.to_thread(self._plan_import, source, how, target)
        if isinstance(planned, NotImported):
            return planned
        try:
            return await run_in_thread(
                lambda is_stopped: import_files(planned, lambda: is_stopped() or cancelled(), progress)
            )
        finally:
            await asyncio.shield(self.refresh())

    def _plan_import(self, source: Path, how: How, target: Path) -> tuple[ImportItem, ...] | NotImported:
        place = self._app_place_of(target)
        if place is not None:
            return NotImported(_app_folder_sentence(target, place))
        place = self._app_place_of(source)
        if place is not None and how == "move":
            return NotImported(tr("{0} belongs to {1}, so it can only be copied.", source.name, place.app))
        known = (each for each in self.current.everything if str(source) in {file.path for file in each.files})
        model = next(known, None) or model_at(source, self.headers)
        if model is None:
            return NotImported(tr("There is no model file at {0}.", source))
        if model.problem:
            return NotImported(model.problem)
        planned = import_plan(model, self.current, target, how)
        return planned or NotImported(tr("{0} is already in this folder.", model.name))

    def _scan(self, folders: ModelFolders) -> tuple[tuple[SearchFolder, ...], Library, dict[str, int | None]]:
        """Return the folders to search, what is in them, and the free space on the drives of the models folders."""
        places = all_places(folders, self._machine, FileLookup())
        owners = {file: self._app_place_of(Path(file)) for file in folders.opened}
        opened = [OpenedFile(file, owner.origin if owner else "opened") for file, owner in owners.items()]
        return places, scan(places, self.headers, opened), {each: free_on_drive(Path(each)) for each in folders.models}

    def _app_place_of(self, path: Path) -> SearchFolder | None:
        """Return the folder of another app that contains `path`, whether or not its models are used."""
        real = real_path(path)
        places = app_places(self._machine, FileLookup())
        return next((place for place in places if real.is_relative_to(real_path(Path(place.path)))), None)

    def _save_folders(self, folders: ModelFolders) -> None:
        for each in folders.models:
            place = self._app_place_of(Path(each))
            if place is not None:
                raise QwenDeskError(tr("This folder belongs to another app"), _app_folder_sentence(Path(each), place))
        try:
            write_folders(folders)
        except OSError as error:
            sentence = tr("The folders couldn't be saved: {0}.", error.strerror or error)
            raise QwenDeskError(tr("Folders not saved"), sentence) from error


def _still_there(files: Sequence[str]) -> list[str]:
    return [file for file in files if Path(file).is_file() or not Path(file).parent.exists()]


def _app_folder_sentence(folder: Path, place: SearchFolder) -> str:
    return tr("{0} is in a folder of {1}, which QwenDesk doesn't change. Choose another folder.", folder, place.app)


def free_on_drive(folder: Path) -> int | None:
    """Return the free bytes on the drive that `folder` is on, or will be; None if the system doesn't say.

    Blocks for a moment.
    """
    for place in (folder, *folder.parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None
