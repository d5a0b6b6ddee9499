"""Models that suit this PC: the catalog compared with the engine's devices and the memory."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
import psutil

from qwendesk.core.app_options import AppOptions
from qwendesk.core.engine_knowledge import read_knowledge
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit
from qwendesk.core.observed import Observed
from qwendesk.core.plan import DriveKind
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import Measurements
from qwendesk.hardware.engine_gpus import gpus_for_models, sees_card
from qwendesk.hardware.ram_modules import ram_bandwidth_here
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import CatalogFile, CatalogModel, Repository
from qwendesk.models.catalog_service import CatalogService
from qwendesk.models.expected_speed import find_doubtful, find_reports
from qwendesk.models.fit import Pc, estimate_fit, make_pc
from qwendesk.models.new_models import NewOffer, make_new_offers
from qwendesk.models.purpose_texts import with_texts
from qwendesk.models.purposes import PURPOSES, Choice, Purpose, choose_hero, choose_quick, rank_choices, sort_offers
from qwendesk.models.ranking import Offer, QuantOffer, choose_quant, find_flag
from qwendesk.models.uploaders import OtherUploader, offered_repositories, other_uploaders
from qwendesk.settings.service import SettingsService

# How long planning waits for the kind of drive. A network drive that is gone answers after minutes, or never.
_DRIVE_WAIT_S = 3.0
_NOT_FOR_HOME = frozenset({"BF16", "F16", "F32"})


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the page and the first start show."""

    state: Literal["looking", "ready", "failed"] = "looking"
    problem: str = ""
    """Reason why there is nothing to offer, in a sentence, if `state` is "failed"."""
    pc: Pc = Pc(ram_bytes=0)
    offers: tuple[Offer, ...] = ()
    """The recommended one first."""
    choices: dict[Purpose, tuple[Choice, ...]] = {}
    """Choices for each purpose, the best first."""
    purpose: Purpose = "fast"
    """The purpose that was chosen on the page."""
    with_pictures: bool = True
    others: Mapping[str, tuple[OtherUploader, ...]] = {}
    """Other uploaders of each model, by the model's id."""
    new: tuple[NewOffer, ...] = ()
    """Models that came after the catalog."""

    @property
    def hero(self) -> Offer | None:
        return next((offer for offer in self.offers if offer.is_hero), None)

    @property
    def choice(self) -> Choice | None:
        """What to take for the chosen purpose; None if nothing fits."""
        return next(iter(self.choices.get(self.purpose, ())), None)

    @property
    def for_purpose(self) -> tuple[Offer, ...]:
        """The models for the chosen purpose, the best first, each with the quant for it; then those that don't fit."""
        choices = self.choices.get(self.purpose, ())
        chosen = (
            msgspec.structs.replace(each.offer, recommended=each.quant, is_hero=not place)
            for place, each in enumerate(choices)
        )
        ids = {each.offer.id for each in choices}
        return *chosen, *(each for each in self.offers if each.id not in ids)

    @property
    def quick(self) -> Offer | None:
        """The small model of "Chat in a minute"."""
        hero = self.hero
        return choose_quick(self.offers, hero.id if hero is not None else "")

    def find(self, model: str) -> Offer | None:
        return next((offer for offer in self.offers if offer.id == model), None)


class OffersService:
    """Owns the offers. Call its methods on the event loop's thread; it reads files and plans on another."""

    def __init__(
        self,
        engine: EngineService,
        settings: SettingsService,
        catalog: CatalogService,
        measured: Measurements,
        *,
        ram_bytes: int = 0,
        drive: Callable[[], DriveKind] = lambda: "",
    ) -> None:
        """`ram_bytes` 0 means this PC's. `drive` returns the drive that models are downloaded to; it may block."""
        self._engine, self._settings, self._catalog = engine, settings, catalog
        self._ram_bytes = ram_bytes or psutil.virtual_memory().total
        self._measured, self._drive = measured, drive
        self.state = Observed(Offers())
        self._devices: Devices | EngineExit | None = None
        self._drive_query: threading.Thread | None = None
        self._one_update = asyncio.Lock()
        self._reserve_gb = settings.options.reserve_gb
        self._unsubscribes = (
            settings.subscribe(self._on_options),
            catalog.state.subscribe_field(lambda state: (state.catalog, state.new), lambda _models: self.plan_again()),
        )
        self._updates: set[asyncio.Task[Offers]] = set()

    async def update(self) -> Offers:
        """Ask the engine for its devices, unless they are known, and plan every model for them."""
        async with self._one_update:
            if not isinstance(self._devices, Devices):
                self._devices = await self._engine.probe()
            return await self._plan(with_pictures=self.state.value.with_pictures)

    async def refresh(self) -> Offers:
        """Ask the engine for its devices again and update: a GPU or an engine may have been added."""
        self._devices = None
        return await self.update()

    async def set_pictures(self, *, with_pictures: bool) -> Offers:
        """Offer every model with, or without, its vision projector."""
        async with self._one_update:
            return await self._plan(with_pictures=with_pictures)

    def set_purpose(self, purpose: Purpose) -> None:
        """Recommend what suits `purpose` best. Nothing is planned again."""
        self.state.update(purpose=purpose)

    async def close(self) -> None:
        """Stop following the options and the catalog."""
        for unsubscribe in self._unsubscribes:
            unsubscribe()
        for update in self._updates:
            update.cancel()
        await asyncio.gather(*self._updates, return_exceptions=True)

    def _on_options(self, options: AppOptions) -> None:
        before, self._reserve_gb = self._reserve_gb, options.reserve_gb
        if before != options.reserve_gb:
            self.plan_again()

    def plan_again(self) -> None:
        """Plan with what has changed, unless nothing was planned yet."""
        if self.state.value.state != "looking":
            update = asyncio.get_running_loop().create_task(self.update())
            self._updates.add(update)
            update.add_done_callback(self._updates.discard)

    async def _plan(self, *, with_pictures: bool) -> Offers:
        reserve = round(self._settings.options.reserve_gb * GIB)
        try:
            found = await asyncio.to_thread(self._make, self._devices, reserve, with_pictures)
        except QwenDeskError as error:
            found = Offers(state="failed", problem=error.sentence, with_pictures=with_pictures)
        found = msgspec.structs.replace(found, purpose=self.state.value.purpose)
        self.state.set(found)
        return found

    def _find_drive(self) -> DriveKind:
        """Return the drive that models are downloaded to; "" if it doesn't answer in time. Blocks.

        The query has a thread of its own, which does not keep the process alive.
        """
        if self._drive_query is not None and self._drive_query.is_alive():
            return ""  # an earlier query still waits, and so would one more
        found: list[DriveKind] = []
        self._drive_query = threading.Thread(target=lambda: found.append(self._drive()), daemon=True)
        self._drive_query.start()
        self._drive_query.join(_DRIVE_WAIT_S)
        return found[0] if found else ""

    def _make(self, devices: Devices | EngineExit | None, reserve: int, with_pictures: bool) -> Offers:
        problem = devices.sentence if isinstance(devices, EngineExit) else ""
        known = devices.devices if isinstance(devices, Devices) else ()
        pc = make_pc(
            known,
            self._ram_bytes,
            reserve,
            problem,
            self._measured.speeds.gpu_factor,
            self._measured.gpus,
            self._find_drive(),
            ram_bandwidth_here(),
        )
        catalog = self._catalog.store.catalog
        offers = make_offers(catalog, pc, with_pictures=with_pictures)
        return Offers(
            state="ready",
            pc=pc,
            offers=offers,
            choices={purpose: make_choices(purpose, offers, catalog, pc) for purpose in PURPOSES},
            with_pictures=with_pictures,
            others={model.id: other_uploaders(catalog, model) for model in catalog.models},
            new=make_new_offers(
                self._catalog.state.value.new, catalog, pc, with_pictures=with_pictures, engines=read_knowledge()
            ),
        )


def unused_gpus(offers: Offers, snapshot: Snapshot | None) -> tuple[str, ...]:
    """Return the names of NVIDIA and AMD GPUs that models could use, if the engine sees at most a slow integrated one.

    Return nothing while that isn't known. An engine that didn't start is reported elsewhere.
    """
    if snapshot is None or offers.state != "ready" or not offers.pc.is_probed:
        return ()
    if offers.pc.gpus and sees_card(offers.pc.gpus):
        return ()
    return tuple(gpu.name or str(gpu.vendor) for gpu in gpus_for_models(snapshot.gpus))


def make_offers(catalog: Catalog, pc: Pc, *, with_pictures: bool) -> tuple[Offer, ...]:
    """Return one offer for each model of the catalog, the recommended one first."""
    pairs = ((model, offered_repositories(catalog, model)) for model in catalog.models)
    offers = [_offer(catalog, model, repositories, pc, with_pictures) for model, repositories in pairs if repositories]
    hero = choose_hero(offers)
    marked = [msgspec.structs.replace(offer, is_hero=offer.id == hero) for offer in offers]
    return sort_offers(marked, hero)


def make_choices(purpose: Purpose, offers: Sequence[Offer], catalog: Catalog, pc: Pc) -> tuple[Choice, ...]:
    """Return what to take for a purpose, the best first, with the reasons."""
    return with_texts(rank_choices(purpose, offers, catalog.contents.speeds, pc))


def _offer(
    catalog: Catalog, model: CatalogModel, repositories: Sequence[Repository], pc: Pc, with_pictures: bool
) -> Offer:
    found = []
    for repository in repositories:
        mmproj = _mmproj(catalog, repository) if with_pictures else None
        files = (each for each in repository.files if each.kind == "model" and each.quant not in _NOT_FOR_HOME)
        found += [_quant(catalog, model, repository, file, mmproj, pc) for file in files]
    quants = tuple(sorted(found, key=lambda each: (-each.n_bytes, each.quant)))
    recommended, reason = choose_quant(quants)
    return Offer(
        model=model,
        quants=quants,
        recommended=recommended,
        reason=reason,
        benchmarks=tuple(each for each in catalog.contents.benchmarks if each.model == model.id),
        other_speeds=tuple(each for each in catalog.contents.other_speeds if each.model == model.id),
    )


def _mmproj(catalog: Catalog, repository: Repository) -> CatalogFile | None:
    found = catalog.find_file(repository.mmproj_repo, repository.mmproj_path)
    return found.file if found is not None else None


def _quant(
    catalog: Catalog, model: CatalogModel, repository: Repository, file: CatalogFile, mmproj: CatalogFile | None, pc: Pc
) -> QuantOffer:
    quality = tuple(
        each
        for each in catalog.contents.quality
        if (each.model, each.uploader, each.quant) == (model.id, repository.uploader, file.quant)
    )
    fit, speed = estimate_fit(model, file.n_bytes, mmproj.n_bytes if mmproj is not None else 0, pc)
    return QuantOffer(
        repo=repository.repo,
        path=file.path,
        quant=file.quant,
        n_bytes=file.n_bytes,
        is_exact=file.is_exact,
        fit=fit,
        speed=speed,
        reports=find_reports(catalog.contents.speeds, model, file.quant, file.n_bytes, fit, pc),
        doubtful=find_doubtful(catalog.contents.speeds, model, file.quant, file.n_bytes, fit, pc),
        quality=quality,
        notes=catalog.notes(model.id, repository.uploader, file.quant),
        flag=find_flag(catalog, repository, file),
        mmproj_path=mmproj.path if mmproj is not None else "",
        mmproj_bytes=mmproj.n_bytes if mmproj is not None else 0,
    )
