"""What this PC should run: the catalog, held against the engine's devices and the memory there is."""

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec
import psutil

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineDeath
from qwendesk.core.subscribers import Subscribers
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.catalog_schema import CatalogFile, Model, Repository
from qwendesk.services.engine.service import EngineService
from qwendesk.services.models.fitting import Pc, pc_of
from qwendesk.services.models.planned import planned
from qwendesk.services.models.ranking import (
    Offer,
    QuantOffer,
    Speed,
    choose_hero,
    choose_quant,
    choose_quick,
    expected_speed,
    flag_of,
    order,
)
from qwendesk.services.settings import SettingsService

UPLOADERS = ("unsloth", "bartowski", "lmstudio-community", "ggml-org")
"""Whose files are offered, the first who has the model: the widest choice of quants, and measured quality, come first.

As of the catalog that is always the first; the others are for a model that a newer catalog has from them alone.
"""
_NOT_FOR_HOME = frozenset({"BF16", "F16", "F32"})


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the page and the first start show."""

    state: Literal["looking", "ready", "failed"] = "looking"
    problem: str = ""
    """Of "failed": the sentence that says why there is nothing to offer."""
    pc: Pc = Pc(ram_bytes=0)
    offers: tuple[Offer, ...] = ()
    """The recommended one first."""
    with_pictures: bool = True
    catalog_date: str = ""

    @property
    def hero(self) -> Offer | None:
        return next((offer for offer in self.offers if offer.is_hero), None)

    @property
    def quick(self) -> Offer | None:
        """The small model of "Chat in a minute"."""
        hero = self.hero
        return choose_quick(self.offers, hero.id if hero is not None else "")

    def find(self, model: str) -> Offer | None:
        return next((offer for offer in self.offers if offer.id == model), None)

    def speed(self, offer: Offer) -> Speed | None:
        """What others report for such a PC, or the planner's estimate; None where neither knows."""
        return expected_speed(offer.model, offer.recommended, self.pc) if offer.recommended is not None else None


class OffersService:
    """Owns the offers. Methods are called on the event loop's thread; files are read and weighed on another."""

    def __init__(
        self,
        engine: EngineService,
        settings: SettingsService,
        *,
        catalog: Callable[[], Catalog] = load_catalog,
        ram_bytes: Callable[[], int] = lambda: psutil.virtual_memory().total,
    ) -> None:
        self._engine, self._settings = engine, settings
        self._load_catalog, self._ram_bytes = catalog, ram_bytes
        self._offers = Offers()
        self._devices: Devices | EngineDeath | None = None
        self._subscribers = Subscribers[Offers]()
        self._one_look = asyncio.Lock()

    @property
    def offers(self) -> Offers:
        return self._offers

    def subscribe(self, callback: Callable[[Offers], None]) -> Callable[[], None]:
        """Call `callback` with the offers each time they changed. Returns what ends it."""
        return self._subscribers.add(callback)

    async def look(self) -> Offers:
        """Ask the engine what there is, once, and weigh every model against it."""
        async with self._one_look:
            if not isinstance(self._devices, Devices):
                self._devices = await self._engine.probe()
            return await self._weigh(with_pictures=self._offers.with_pictures)

    async def look_again(self) -> Offers:
        """As `look`, with the devices asked anew: a GPU or an engine may have come."""
        self._devices = None
        return await self.look()

    async def choose_pictures(self, *, with_pictures: bool) -> Offers:
        """Offer everything with, or without, its picture file."""
        async with self._one_look:
            return await self._weigh(with_pictures=with_pictures)

    async def _weigh(self, *, with_pictures: bool) -> Offers:
        reserve = round(self._settings.options.reserve_gb * GIB)
        try:
            found = await asyncio.to_thread(self._make, self._devices, reserve, with_pictures)
        except QwenDeskError as error:
            found = Offers(state="failed", problem=error.sentence, with_pictures=with_pictures)
        if found != self._offers:
            self._offers = found
            self._subscribers.notify(found)
        return found

    def _make(self, devices: Devices | EngineDeath | None, reserve: int, with_pictures: bool) -> Offers:
        problem = devices.sentence if isinstance(devices, EngineDeath) else ""
        known = devices.devices if isinstance(devices, Devices) else ()
        pc = pc_of(known, self._ram_bytes(), reserve, problem)
        catalog = self._load_catalog()
        return Offers(
            state="ready",
            pc=pc,
            offers=make_offers(catalog, pc, with_pictures=with_pictures),
            with_pictures=with_pictures,
            catalog_date=catalog.date,
        )


def make_offers(catalog: Catalog, pc: Pc, *, with_pictures: bool) -> tuple[Offer, ...]:
    """One offer for each model of the catalog, the recommended one first."""
    pairs = ((model, _repository(catalog, model)) for model in catalog.models)
    offers = [_offer(catalog, model, repo, pc, with_pictures) for model, repo in pairs if repo is not None]
    hero = choose_hero(offers)
    marked = [msgspec.structs.replace(offer, is_hero=offer.id == hero) for offer in offers]
    return order(marked, hero)


def _repository(catalog: Catalog, model: Model) -> Repository | None:
    """The best uploader's plain repository of `model`: not the base model, not the one for speculative decoding."""
    found = {
        each.uploader: each
        for each in reversed(catalog.repositories)
        if each.model == model.id and each.files and not each.is_mtp and not each.is_base
    }
    return next((found[uploader] for uploader in UPLOADERS if uploader in found), None)


def _offer(catalog: Catalog, model: Model, repository: Repository, pc: Pc, with_pictures: bool) -> Offer:
    mmproj = _mmproj(catalog, repository) if with_pictures else None
    files = [each for each in repository.files if each.kind == "model" and each.quant not in _NOT_FOR_HOME]
    quants = tuple(
        sorted(
            (_quant(catalog, model, repository, file, mmproj, pc) for file in files),
            key=lambda each: (-each.n_bytes, each.quant),
        )
    )
    recommended, reason = choose_quant(quants)
    return Offer(
        model=model,
        quants=quants,
        recommended=recommended,
        reason=reason,
        mmproj_path=mmproj.path if mmproj is not None else "",
        mmproj_bytes=mmproj.n_bytes if mmproj is not None else 0,
    )


def _mmproj(catalog: Catalog, repository: Repository) -> CatalogFile | None:
    found = catalog.find_file(repository.mmproj_repo, repository.mmproj_path)
    return found.file if found is not None else None


def _quant(
    catalog: Catalog, model: Model, repository: Repository, file: CatalogFile, mmproj: CatalogFile | None, pc: Pc
) -> QuantOffer:
    quality = tuple(
        each
        for each in catalog.contents.quality
        if (each.model, each.uploader, each.quant) == (model.id, repository.uploader, file.quant)
    )
    fit, speed = planned(model, file.n_bytes, mmproj.n_bytes if mmproj is not None else 0, pc)
    return QuantOffer(
        repo=repository.repo,
        path=file.path,
        quant=file.quant,
        n_bytes=file.n_bytes,
        is_exact=file.is_exact,
        fit=fit,
        speed=speed,
        quality=quality,
        notes=catalog.notes(model.id, repository.uploader, file.quant),
        flag=flag_of(catalog, repository, file),
    )
