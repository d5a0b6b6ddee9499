"""The first start: what is offered, where it is saved, the free space, and the download's progress."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import is_demo
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.models.downloads import DownloadsService, DownloadsState
from qwendesk.models.library_service import LibraryService, free_on_drive
from qwendesk.models.offers import Offers, OffersService
from qwendesk.models.other_apps import AppModels, models_by_app
from qwendesk.models.ranking import Offer, QuantOffer

# Free space that a download must leave on the drive.
_SPARE_BYTES = 1024**3


class FirstStartState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the first screen shows."""

    offers: Offers = Offers()
    folder: str = ""
    free_bytes: int | None = None
    """Free space on the folder's drive; None if unknown."""
    synced_by: str = ""
    """The cloud service that would upload what is saved in the folder; "" if none is known."""
    apps: tuple[AppModels, ...] = ()
    """What each program left on this PC, and the user's own folders."""
    downloads: tuple[DownloadItem, ...] = ()
    """The unfinished downloads."""
    measured_bytes_per_s: float = 0.0
    """The highest speed of a download since the app started; 0 before the first."""
    is_offline: bool = False
    is_metered: bool = False
    """The system says that this connection is metered."""
    has_model: bool = False
    """A model is loaded or being loaded."""
    problem: str = ""
    """Reason why the last action failed."""

    @property
    def found(self) -> tuple[LibraryModel, ...]:
        """Models on this PC that can be loaded, largest first."""
        return tuple(sorted((model for app in self.apps for model in app.usable), key=lambda model: -model.n_bytes))

    def download_of(self, quant: QuantOffer) -> DownloadItem | None:
        """Return the unfinished download of this file, if there is one."""
        wanted = (quant.repo, quant.path)
        firsts = ((item, item.saved.files[0].file) for item in self.downloads)
        return next((item for item, file in firsts if (file.repo, file.path) == wanted), None)

    def missing_bytes(self, offer: Offer) -> int:
        """Return how much free space is missing for `offer`; 0 if there is enough, or if unknown."""
        if offer.recommended is None or self.free_bytes is None:
            return 0
        return max(offer.recommended.total_bytes + _SPARE_BYTES - self.free_bytes, 0)


class FirstStartService:
    """Owns the FirstStartState. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engine: EngineService,
        library: LibraryService,
        offers: OffersService,
        downloads: DownloadsService,
        options_for: Callable[[Path], Awaitable[LoadOptions]],
    ) -> None:
        self._engine, self._library, self._offers, self._downloads = engine, library, offers, downloads
        self._options_for = options_for
        self._free_bytes: Callable[[Path], int | None] = free_on_drive
        self.state = Observed(
            FirstStartState(folder=library.folders.models[0], has_model=_is_wanted(engine.observed.value))
        )
        self._wanted: list[str] = []
        """Downloads started here. The first one that finishes is loaded, unless another model is loaded."""
        self._refused_offer: Offer | None = None
        """The last offer that was refused because the drive is full."""
        self._unsubscribes = (
            offers.state.subscribe(lambda offers: self.state.update(offers=offers)),
            library.state.subscribe_field(lambda state: state.library, self._on_library),
            downloads.state.subscribe(self._on_downloads),
            downloads.subscribe_finished(self._on_finished),
            engine.observed.subscribe(lambda state: self.state.update(has_model=_is_wanted(state))),
        )
        self._loads: set[asyncio.Task[None]] = set()
        self._one_load = asyncio.Lock()

    def set_metered(self, is_metered: bool) -> None:
        """Set whether the connection is metered."""
        self.state.update(is_metered=is_metered)

    async def update(self) -> None:
        """Read the free space on the folder's drive, and take over the library and the downloads."""
        folder = self._library.folders.models[0]
        free = await asyncio.to_thread(self._free_bytes, Path(folder))
        synced_by = self._library.sync_service(folder)
        self.state.update(folder=folder, free_bytes=free, synced_by=synced_by, offers=self._offers.state.value)
        self._on_library(self._library.current)
        self._on_downloads(self._downloads.state.value)

    async def update_free_space(self) -> None:
        """Read the free space on the folder's drive again: the user may have deleted something."""
        folder = self._library.folders.models[0]
        free = await asyncio.to_thread(self._free_bytes, Path(folder))
        if folder != self._library.folders.models[0]:
            return
        self.state.update(folder=folder, free_bytes=free)
        if self._refused_offer is not None:
            self._refuse_without_room(self._refused_offer)

    async def choose_folder(self, folder: str) -> None:
        """Download to `folder` from now on; the folder used before stays a models folder."""
        self._refused_offer = None
        try:
            await self._library.download_to(folder)
        except QwenDeskError as error:
            self.state.update(problem=error.sentence)
            return
        self.state.update(problem="")
        await self.update()

    async def download(self, offer: Offer) -> None:
        """Download the recommended file of `offer`, and load it if no other model is loaded by then."""
        quant = offer.recommended
        if quant is None:
            return
        self._refused_offer = None
        await self.update_free_space()
        if self._refuse_without_room(offer):
            return
        try:
            identity = await self._downloads.add(quant.repo, quant.path, with_mmproj=bool(quant.mmproj_bytes))
        except QwenDeskError as error:
            self.state.update(problem=error.sentence)
            return
        self._wanted.append(identity)
        self.state.update(problem="")

    async def pause_or_resume(self, item: DownloadItem) -> None:
        """Pause a download that is running or queued; resume any other."""
        try:
            if item.saved.state in ("paused", "failed"):
                await self._downloads.resume(item.saved.id)
            else:
                await self._downloads.pause(item.saved.id)
        except QwenDeskError as error:
            self.state.update(problem=error.sentence)

    async def cancel(self, item: DownloadItem) -> None:
        """Stop a download and delete its unfinished files."""
        try:
            await self._downloads.cancel(item.saved.id)
        except QwenDeskError as error:
            self.state.update(problem=error.sentence)

    async def close(self) -> None:
        for unsubscribe in self._unsubscribes:
            unsubscribe()
        for load in self._loads:
            load.cancel()
        await asyncio.gather(*self._loads, return_exceptions=True)

    def _refuse_without_room(self, offer: Offer) -> bool:
        """Set `problem` if the drive is too full for `offer`. Return whether it is."""
        missing = self.state.value.missing_bytes(offer)
        sentence = tr(
            "{0} needs {1} more space. Choose another folder or free up space.",
            self.state.value.folder,
            show_bytes(missing),
        )
        self._refused_offer = offer if missing else None
        self.state.update(problem=sentence if missing else "")
        return bool(missing)

    def _on_library(self, library: Library) -> None:
        self.state.update(apps=models_by_app(library, self._library.state.value.searched))

    def _on_downloads(self, state: DownloadsState) -> None:
        speed = max(self.state.value.measured_bytes_per_s, state.total.bytes_per_s)
        self.state.update(downloads=state.unfinished, is_offline=state.is_offline, measured_bytes_per_s=speed)

    def _on_finished(self, item: DownloadItem) -> None:
        if item.saved.id in self._wanted:
            load = asyncio.get_running_loop().create_task(self._load(Path(item.saved.files[0].target)))
            self._loads.add(load)
            load.add_done_callback(self._loads.discard)

    async def _load(self, model: Path) -> None:
        """Load `model` unless another one is loaded. One load at a time, so that only the first of two downloads is."""
        async with self._one_load:
            options = await self._options_for(model)
            if await self._is_free():
                await self._engine.load(options)

    async def _is_free(self) -> bool:
        """Wait until no load is running and the demo has finished its answer. Return False if a model is loaded."""
        changed = asyncio.Event()
        unsubscribe = self._engine.observed.subscribe(lambda _state: changed.set())
        try:
            while True:
                await self._engine.wait_until_settled()
                if _has_model(self._engine.observed.value):
                    return False
                if self._engine.observed.value.phase is not Phase.ANSWERING:
                    return True
                changed.clear()
                await changed.wait()
        finally:
            unsubscribe()


def _has_model(state: EngineState) -> bool:
    """Return whether a model other than the demo is loaded, or is unloaded because it was idle."""
    wanted = state.requested if state.failure is None else None
    return wanted is not None and not is_demo(wanted.model)


def _is_wanted(state: EngineState) -> bool:
    """Return whether any model, the demo included, is loaded or being loaded."""
    return state.report is not None or state.requested is not None
