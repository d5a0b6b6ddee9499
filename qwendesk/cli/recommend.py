"""`qwendesk recommend`: which model and quant to take on this PC, or on one that the options describe.

Only the catalog and the engine's list of devices are read. Nothing is downloaded or loaded.
"""

import argparse
import asyncio
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
import psutil

from qwendesk.cli.made_up_pc import add_made_up_pc_options, is_made_up, kind_bandwidth, made_up_machine, size_of
from qwendesk.cli.plan import devices_here
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.errors import BadOption
from qwendesk.core.plan import Plan
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import MIB, show_rate, show_tokens
from qwendesk.engines.measurements import MeasuredSpeeds
from qwendesk.hardware.drives import drive_of
from qwendesk.hardware.ram_modules import ram_bandwidth_here
from qwendesk.hardware.snapshot_reader import read_gpus
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.catalog_updates import CatalogStore, LastLookUp
from qwendesk.hub.model_folders import read_folders
from qwendesk.models.catalog_service import date_text
from qwendesk.models.fit import FitKind, Pc, estimate_plan, make_pc
from qwendesk.models.offers import make_choices, make_offers
from qwendesk.models.purpose_texts import PURPOSE_TITLES, benchmark_texts
from qwendesk.models.purposes import PURPOSES, Choice
from qwendesk.models.ranking import BEST_FIRST, Offer, QuantOffer
from qwendesk.models.view.offer_texts import (
    licence_text,
    other_engines_texts,
    pc_text,
    quality_text,
    size_text,
    table_text,
)
from qwendesk.models.view.speed_texts import expected_text
from qwendesk.models.why_not import numbers_text, why_not
from qwendesk.settings.service import SettingsService

EXIT_FOUND, EXIT_NOTHING_FITS = 0, 1
# Choices in the text; --json has all.
_SHOWN = 3
# What --json has of a speed in another engine.
_OTHER_ENGINE = ("engine", "gpus", "ram_gb", "range", "quant", "source", "date")
# What the planner leaves of the memory that is free now.
_HEADROOM_BYTES = 512 * MIB
# Nothing that would read its weights from the drive again and again is recommended, so there is no such place.
_PLACES: Mapping[FitKind, str] = MappingProxyType({"vram": "gpu", "experts": "split", "layers": "split", "cpu": "cpu"})
_PLACE_TEXTS: Mapping[str, str] = MappingProxyType(
    {"gpu": mark("all on the GPU"), "split": mark("partly in RAM"), "cpu": mark("on the CPU")}
)


def add_recommend_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--purpose", choices=PURPOSES, default="fast", help="what counts most (default: fast)")
    add("--why", metavar="MODEL", help="say why not this model: each rule that puts it behind the first choice")
    add("--no-pictures", action="store_true", help="recommend without a vision file")
    add_made_up_pc_options(parser)
    add("--offline", action="store_true", help="use the catalog as installed, without what the Hub said since")
    add("--json", action="store_true", help="print one JSON object instead")


async def recommend(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Rank the models, print the result and return the exit status. Raises QwenDeskError for bad options."""
    task = asyncio.current_task()
    if task is not None:
        interrupts.on_request(task.cancel)
    pc = await pc_of(options, terminal)
    store = CatalogStore()
    catalog = await asyncio.to_thread(lambda: load_catalog() if options.offline else store.catalog)
    last = LastLookUp() if options.offline else store.read_last()
    named = _named(options.why, catalog) if options.why is not None else ""
    offers, choices = await asyncio.to_thread(_ranked, options, catalog, pc)
    reasons = why_not(options.purpose, named, offers, choices, pc) if named and choices else []
    measured = {} if is_made_up(options) else dict(MeasuredSpeeds().by_file.value)
    if options.json:
        terminal.write_json(
            {
                "pc": _pc_json(pc),
                "catalog": {"date": catalog.date, "looked_up": last.done.isoformat() if last.done else None},
                "choices": [_choice_json(each, pc, measured) for each in choices],
                **({"why_not": {"model": named, "reasons": reasons}} if named else {}),
            }
        )
    elif named and choices:
        terminal.write(_why_text(options, named, choices, pc, reasons))
    else:
        date = date_text(catalog.date, last, datetime.datetime.now().astimezone().date())
        terminal.write(_as_text(options, choices, pc, measured, date))
    return EXIT_FOUND if choices else EXIT_NOTHING_FITS


async def pc_of(options: argparse.Namespace, terminal: Terminal) -> Pc:
    """Return this PC, or the one that the options of `add_made_up_pc_options` describe. Raises QwenDeskError."""
    reserve_gib = SettingsService().options.reserve_gb if options.reserve is None else options.reserve
    reserve_bytes = size_of(reserve_gib, "--reserve")
    if is_made_up(options):
        machine = made_up_machine(options, reserve_bytes)
        devices = tuple(_with_free_memory(device, reserve_bytes) for device in machine.devices)
        return make_pc(devices, machine.ram_total_bytes, reserve_bytes, ram_bandwidth=machine.ram_bandwidth)
    devices = (await devices_here(terminal)).devices
    drive = await asyncio.to_thread(drive_of, Path(read_folders().models[0]))
    readings = await asyncio.to_thread(read_gpus)
    ram_bytes = psutil.virtual_memory().total if options.ram is None else size_of(options.ram, "--ram")
    factor = MeasuredSpeeds().gpu_factor
    bandwidth = kind_bandwidth(options.ram_kind) or ram_bandwidth_here()
    return make_pc(
        devices, ram_bytes, reserve_bytes, gpu_factor=factor, readings=readings, drive=drive, ram_bandwidth=bandwidth
    )


def _with_free_memory(device: DeviceInfo, reserve_bytes: int) -> DeviceInfo:
    """Return the device as large as what may be used of it: recommendations assume that nothing else is running."""
    if device.free_bytes is None or device.total_bytes is None:
        return device
    usable = device.free_bytes + reserve_bytes - min(_HEADROOM_BYTES, reserve_bytes)
    return msgspec.structs.replace(device, total_bytes=min(device.total_bytes, usable))


def _ranked(options: argparse.Namespace, catalog: Catalog, pc: Pc) -> tuple[tuple[Offer, ...], tuple[Choice, ...]]:
    catalog = _recommendable(catalog)
    offers = make_offers(catalog, pc, with_pictures=not options.no_pictures)
    return offers, make_choices(options.purpose, offers, catalog, pc)


def _named(text: str, catalog: Catalog) -> str:
    """Return the id of the model that the user names, whole or in part. Raises BadOption."""
    ids = [model.id for model in catalog.models]
    wanted = text.strip().lower()
    found = [each for each in ids if each.lower() == wanted] or [each for each in ids if wanted in each.lower()]
    if len(found) != 1 or not wanted:
        raise BadOption(tr("Bad option"), tr('--why takes one of {0}, not "{1}".', ", ".join(found or ids), text[:60]))
    return found[0]


def _why_text(
    options: argparse.Namespace, named: str, choices: Sequence[Choice], pc: Pc, reasons: Sequence[str]
) -> str:
    """Return the first choice, the named one, and each reason in a line of its own."""
    first, choice = choices[0], next((each for each in choices if each.offer.id == named), None)
    shown = dict.fromkeys(filter(None, (first, choice)))
    numbers = (f"{each.offer.id} {each.quant.quant}: {numbers_text(each)}" for each in shown)
    lines = [tr(PURPOSE_TITLES[options.purpose]), pc_text(pc), "", *numbers]
    if choice is first:
        return "\n".join([*lines, "", tr("It is the first choice: {0}", first.reason)]) + "\n"
    lines += ["", tr("Why {0} comes before {1}:", first.offer.id, named)]
    return "\n".join([*lines, *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]) + "\n"


def _recommendable(catalog: Catalog) -> Catalog:
    """Return the catalog without the quants that are never recommended, which needn't be planned."""
    repositories = tuple(
        msgspec.structs.replace(
            repository,
            files=tuple(file for file in repository.files if file.kind != "model" or file.quant in BEST_FIRST),
        )
        for repository in catalog.repositories
    )
    return Catalog(msgspec.structs.replace(catalog.contents, repositories=repositories))


def _pc_json(pc: Pc) -> dict[str, Any]:
    gpus = [
        {"name": gpu.description or gpu.name, "backend": gpu.backend, "total_bytes": gpu.total_bytes} for gpu in pc.gpus
    ]
    return {"gpus": gpus, "ram_bytes": pc.ram_bytes, "reserve_bytes": pc.reserve_bytes}


def _choice_json(choice: Choice, pc: Pc, measured: Mapping[str, float]) -> dict[str, Any]:
    quant, plan = choice.quant, _plan(choice, pc)
    speed, source = _speed(choice, measured)
    licence = choice.offer.model.licence
    return {
        "model": choice.offer.id,
        "quant": quant.quant,
        "repository": quant.repo,
        "file": quant.path,
        "fits": quant.fit.fits,
        "where": _PLACES[quant.fit.kind],
        "table_on_drive_bytes": quant.fit.lazy_bytes,
        "n_ctx": quant.fit.n_ctx,
        "options": msgspec.to_builtins(plan.options) if plan is not None else {},
        "expected_tok_s": [round(each, 1) for each in speed],
        "speed_source": source,
        "speeds": _speeds_json(quant),
        "speed_engine": "llama.cpp",
        "other_engines": [{key: getattr(each, key) for key in _OTHER_ENGINE} for each in choice.offer.other_speeds],
        "reason": choice.reason,
        "drawback": choice.drawback,
        "licence": {"name": licence.name, "restriction": licence.restriction},
    }


def _speeds_json(quant: QuantOffer) -> list[dict[str, Any]]:
    """Return what users report and what is estimated, each with the length of the chat and the cards that it is of."""
    if quant.expected is None:
        return []
    cards = [list(gpus) for gpus in dict.fromkeys(each.gpus for each in quant.expected.reports)]
    return [
        {
            "depth": each.depth,
            "tok_s": [round(each.slow, 1), round(each.fast, 1)],
            "source": each.source,
            "cards": cards if each.source == "reported" else [],
        }
        for each in quant.expected.speeds
    ]


def _plan(choice: Choice, pc: Pc) -> Plan | None:
    offer, quant = choice.offer, choice.quant
    plan = estimate_plan(offer.model, quant.n_bytes, quant.mmproj_bytes, pc, choice.options)
    if plan is None:
        return None
    files = msgspec.structs.replace(plan.options, model=quant.path, mmproj=quant.mmproj_path)
    return msgspec.structs.replace(plan, options=files)


def _speed(choice: Choice, measured: Mapping[str, float]) -> tuple[tuple[float, float], str]:
    """Return the lowest and highest speed to expect in new chats, in tokens per second, and what it's known from."""
    here = measured.get(PurePosixPath(choice.quant.path).name)
    if here is not None:
        return (here, here), "measured"
    expected = choice.quant.expected
    return (expected.start, expected.source) if expected is not None else ((0.0, 0.0), "estimated")


def _as_text(
    options: argparse.Namespace, choices: Sequence[Choice], pc: Pc, measured: Mapping[str, float], date: str
) -> str:
    title = tr(PURPOSE_TITLES[options.purpose])
    lines = [
        tr("{0}, without pictures", title) if options.no_pictures else tr("{0}, with pictures", title),
        pc_text(pc),
        date,
    ]
    if not choices:
        return "\n".join([*lines, tr("No model in the catalog fits in this PC's memory.")]) + "\n"
    for number, choice in enumerate(choices[:_SHOWN], 1):
        lines += ["", *_choice_lines(number, choice, measured)]
    return "\n".join(lines) + "\n"


def _choice_lines(number: int, choice: Choice, measured: Mapping[str, float]) -> list[str]:
    offer, quant = choice.offer, choice.quant
    speed, source = _speed(choice, measured)
    place = tr(_PLACE_TEXTS[_PLACES[quant.fit.kind]])
    lines = [
        f"{number}. {offer.id} {quant.quant}, {size_text(quant)}",
        tr("Context of {0}, {1}", show_tokens(quant.fit.n_ctx), place),
        *([tr("Pictures on the CPU")] if quant.fit.has_vision_on_cpu else []),
        tr("Measured here: {0} tok/s", show_rate(speed[0])) if source == "measured" else expected_text(offer, quant),
        tr("Why: {0}", choice.reason),
        tr("But: {0}", choice.drawback),
        *([table] if (table := table_text(quant.fit)) else []),
        *other_engines_texts(offer),
        *(tr("Results: {0}", each) for each in benchmark_texts(offer)),
        *(tr("Quant: {0}", quality_text(each, offer)) for each in quant.quality),
        licence_text(offer.model.licence),
        tr("File: {0}", f"{quant.repo}/{quant.path}"),
    ]
    return [lines[0], *(f"   {line}" for line in lines[1:])]
