"""The first start: what is offered, where it goes, whether there is room, and how far it is."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.paths import is_demo
from qwendesk.core.subscribers import Subscribers
from qwendesk.core.units import show_bytes
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.queue_state import DownloadItem
from qwendesk.services.engine.service import EngineService
from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.drives import free_on_drive
from qwendesk.services.models.offers import Offers, OffersService
from qwendesk.services.models.ranking import Offer, QuantOffer
from qwendesk.services.models.service import ModelsService

_SPARE_BYTES = 1024**3
"""Left free on the drive."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the first screen shows."""

    offers: Offers = Offers()
    folder: str = ""
    free_bytes: int | None = None
    """On the folder's drive; None when it cannot be told."""
    found: tuple[LibraryModel, ...] = ()
    """Models on this PC that can be loaded, largest first."""
    downloads: tuple[DownloadItem, ...] = ()
    """Those that are not done."""
    measured_bytes_per_s: float = 0.0
    """The fastest that a download ran since the app started; 0 before one did."""
    is_offline: bool = False
    problem: str = ""
    """Why the last thing asked for could not be begun."""

    def coming(self, quant: QuantOffer) -> DownloadItem | None:
        """The download of this file, if one runs or waits."""
        wanted = (quant.repo, quant.path)
        firsts = ((item, item.kept.files[0].file) for item in self.downloads)
        return next((item for item, file in firsts if (file.repo, file.path) == wanted), None)

    def missing_bytes(self, offer: Offer) -> int:
        """How much room the drive lacks for `offer`; 0 when there is enough, or nobody knows."""
        if offer.recommended is None or self.free_bytes is None:
            return 0
        return max(offer.total_bytes(offer.recommended) + _SPARE_BYTES - self.free_bytes, 0)


class StartService:
    """Owns the Start. Methods are called on the event loop's thread."""

    def __init__(
        self,
        engine: EngineService,
        models: ModelsService,
        offers: OffersService,
        downloads: DownloadsService,
        *,
        free_bytes: Callable[[Path], int | None] | None = None,
    ) -> None:
        self._engine, self._models, self._offers, self._downloads = engine, models, offers, downloads
        self._free_bytes = free_bytes or free_on_drive
        self._start = Start(folder=models.folders.models[0])
        self._wanted: list[str] = []
        """Downloads begun here; the first that is done is loaded if nothing but the demo is."""
        self._no_room_for: Offer | None = None
        """What was asked for last, if that was refused because the drive is full."""
        self._subscribers = Subscribers[Start]()
        self._endings = (
            offers.subscribe(lambda news: self._change(offers=news)),
            models.subscribe_library(lambda _news: self._change(found=self._found())),
            downloads.subscribe(lambda _news: self._on_downloads()),
            downloads.subscribe_finished(self._on_finished),
        )
        self._loads: set[asyncio.Task[None]] = set()
        self._one_load = asyncio.Lock()

    @property
    def start(self) -> Start:
        return self._start

    def subscribe(self, callback: Callable[[Start], None]) -> Callable[[], None]:
        """Call `callback` each time something changed. Returns what ends it."""
        return self._subscribers.add(callback)

    async def look(self) -> None:
        """Look at the folder's drive and at what is there already."""
        folder = self._models.folders.models[0]
        free = await asyncio.to_thread(self._free_bytes, Path(folder))
        self._change(folder=folder, free_bytes=free, found=self._found(), offers=self._offers.offers)
        self._on_downloads()

    async def look_at_room(self) -> None:
        """Read anew how much room the folder's drive has: somebody may have made some since."""
        folder = self._models.folders.models[0]
        free = await asyncio.to_thread(self._free_bytes, Path(folder))
        if folder != self._models.folders.models[0]:
            return
        self._change(folder=folder, free_bytes=free)
        if self._no_room_for is not None:
            self._refuse_without_room(self._no_room_for)

    async def choose_folder(self, folder: str) -> None:
        """Downloads go there from now on; the folder before is still looked at."""
        self._no_room_for = None
        folders = self._models.folders
        models = (folder, *(each for each in folders.models if each != folder))
        try:
            await self._models.set_folders(msgspec.structs.replace(folders, models=models))
        except QwenDeskError as error:
            self._change(problem=error.sentence)
            return
        self._change(problem="")
        await self.look()

    async def download(self, offer: Offer) -> None:
        """Fetch the recommended file of `offer`; when it is done and nothing but the demo is loaded, it is loaded."""
        quant = offer.recommended
        if quant is None:
            return
        self._no_room_for = None
        await self.look_at_room()
        if self._refuse_without_room(offer):
            return
        try:
            identity = await self._downloads.add(quant.repo, quant.path, with_mmproj=bool(offer.mmproj_bytes))
        except QwenDeskError as error:
            self._change(problem=error.sentence)
            return
        self._wanted.append(identity)
        self._change(problem="")

    async def pause(self, item: DownloadItem) -> None:
        """Pause what runs, go on with what does not."""
        try:
            if item.kept.state in ("paused", "failed"):
                await self._downloads.resume(item.kept.id)
            else:
                await self._downloads.pause(item.kept.id)
        except QwenDeskError as error:
            self._change(problem=error.sentence)

    async def close(self) -> None:
        for end in self._endings:
            end()
        for load in self._loads:
            load.cancel()
        await asyncio.gather(*self._loads, return_exceptions=True)

    def _refuse_without_room(self, offer: Offer) -> bool:
        """Say how much room the drive lacks for `offer`, if it lacks any. Returns whether it does."""
        missing = self._start.missing_bytes(offer)
        sentence = f"{self._start.folder} lacks {show_bytes(missing)}. Choose another folder, or make room."
        self._no_room_for = offer if missing else None
        self._change(problem=sentence if missing else "")
        return bool(missing)

    def _found(self) -> tuple[LibraryModel, ...]:
        good = (each for each in self._models.library.models if not each.problem)
        return tuple(sorted(good, key=lambda each: -each.n_bytes))

    def _on_downloads(self) -> None:
        state = self._downloads.state
        speed = max(self._start.measured_bytes_per_s, state.total.bytes_per_s)
        self._change(downloads=state.unfinished, is_offline=state.is_offline, measured_bytes_per_s=speed)

    def _on_finished(self, item: DownloadItem) -> None:
        if item.kept.id in self._wanted:
            load = asyncio.get_running_loop().create_task(self._load(Path(item.kept.files[0].target)))
            self._loads.add(load)
            load.add_done_callback(self._loads.discard)

    async def _load(self, model: Path) -> None:
        """One after another, so that the second of two downloads finds the first one loaded."""
        async with self._one_load:
            options = await self._engine.options_for(model)
            if await self._is_free():
                await self._engine.load(options)

    async def _is_free(self) -> bool:
        """Wait until nothing is loading and the demo has ended its answer. False once another model is loaded."""
        changed = asyncio.Event()
        unsubscribe = self._engine.subscribe(lambda _state: changed.set())
        try:
            while True:
                await self._engine.settled()
                if _has_model(self._engine.state):
                    return False
                if self._engine.state.phase is not Phase.ANSWERING:
                    return True
                changed.clear()
                await changed.wait()
        finally:
            unsubscribe()

    def _change(self, **changes: object) -> None:
        start = msgspec.structs.replace(self._start, **changes)
        if start != self._start:
            self._start = start
            self._subscribers.notify(start)


def _has_model(state: EngineState) -> bool:
    """Whether a model other than the demo is loaded, rests until the next question, or was ejected by the person."""
    wanted = state.wanted if state.failure is None else None
    return wanted is not None and not is_demo(wanted.model)
