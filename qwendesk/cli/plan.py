"""`qwendesk plan`: estimates a model's memory and speed without loading it.

Of a file on Hugging Face, only the header is read. Unless the options describe another PC (cli/made_up_pc.py), the plan
is for this one, and for a local file the engine's dry run gives the exact figures.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.cli.made_up_pc import (
    add_link_options,
    add_made_up_pc_options,
    is_made_up,
    made_up_links,
    made_up_machine,
    size_of,
    with_links,
    with_ram,
)
from qwendesk.cli.models_hub import connected_hub, split_name
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.commands.command_writer import COMMAND_KINDS, command, difference
from qwendesk.commands.outgrown import NextStep, next_step
from qwendesk.commands.serving import Serving, cards_of, kv_bytes_of
from qwendesk.core.devices import GpuLink
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.file_names import is_mmproj_name
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.option_rules import parse_load_options
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DevicePlan, MachineMemory, Plan
from qwendesk.core.presets import preset_of_file
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes, show_expected, show_rate, show_tokens
from qwendesk.engine.protocol import Devices
from qwendesk.engines.exact_plan import exact_plan
from qwendesk.engines.link_text import link_text
from qwendesk.engines.load_decision import facts_for, machine_now, plan_of, with_drive
from qwendesk.engines.measurements import MeasuredLoads, MeasuredSpeeds
from qwendesk.hardware.engine_gpus import match_gpus
from qwendesk.hardware.gpu_links import gpu_links, link_reports
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hardware.snapshot_reader import read_gpus
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.companion_pairing import find_draft_head, find_mmproj
from qwendesk.hub.gguf import first_shard
from qwendesk.hub.model_folders import read_folders
from qwendesk.settings.service import SettingsService

EXIT_FITS, EXIT_DOES_NOT_FIT = 0, 1
_HUB_PREFIX = "hf:"

Files = tuple[ModelFacts, ModelFacts | None]


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "model",
        metavar="FILE|hf:REPO/FILE",
        help="a GGUF file on this PC or on Hugging Face, where only its header is read",
    )
    add("--mmproj", metavar="FILE", help="the vision file (default: a matching one in the model's folder)")
    add("--ctx", metavar="N", type=int, help="context length in tokens (default: chosen by the planner)")
    add_made_up_pc_options(parser)
    add_link_options(parser)
    add(
        "--set",
        metavar="KEY=VALUE",
        dest="assignments",
        action="append",
        nargs="+",
        default=[],
        help="set any load option; repeatable",
    )
    add(
        "--command",
        dest="command_of",
        choices=COMMAND_KINDS,
        help="print a command line (or Modelfile) for this program instead",
    )
    add("--json", action="store_true", help="print one JSON object instead")


async def plan(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Plan, print the result and return the exit status. Raises QwenDeskError for bad options and unreadable files."""
    task = asyncio.current_task()
    if task is not None:
        interrupts.on_request(task.cancel)
    asked = _asked(options)
    files = await asyncio.to_thread(_read_headers, asked)
    if isinstance(files, LoadFailure):
        raise QwenDeskError(files.title, files.sentence)
    if files[1] is not None and not asked.mmproj:
        asked = msgspec.structs.replace(asked, mmproj=files[1].path)
    if files[0].draft_head is not None and not asked.draft_model:
        asked = msgspec.structs.replace(asked, draft_model=files[0].draft_head.path)
    gpus = () if is_made_up(options) else await asyncio.to_thread(read_gpus)
    machine = await _machine(options, gpus, terminal)
    made = await _plan(options, asked, files, machine)
    if isinstance(made, LoadFailure):
        raise QwenDeskError(made.title, made.sentence)
    links = made_up_links(options, machine.devices) if is_made_up(options) else gpu_links(machine.devices, gpus)
    serving = _serving(made, files[0], machine, links)
    answer = preset_of_file(files[0], thinking=True)
    step = next_step(made.options, answer, serving, fits=made.fits, windows=sys.platform == "win32")
    if options.command_of:
        text = command(options.command_of, made.options, answer, serving, windows=sys.platform == "win32")
        terminal.write(text.rstrip("\n") + "\n")
        if note := difference(options.command_of, answer):
            terminal.note(note)
    elif options.json:
        terminal.write_json(as_json(made, _measured(options, made), step))
    else:
        terminal.write(_as_text(made, _measured(options, made), _link_lines(made, machine, gpus), step))
    return EXIT_FITS if made.fits else EXIT_DOES_NOT_FIT


def _measured(options: argparse.Namespace, made: Plan) -> float | None:
    """Return the speed that was measured on this PC with the planned options; None for a made-up PC."""
    return MeasuredSpeeds().in_short_chats(made.options) if not is_made_up(options) else None


async def _machine(options: argparse.Namespace, gpus: Sequence[GpuReading], terminal: Terminal) -> MachineMemory:
    reserve_gib = SettingsService().options.reserve_gb if options.reserve is None else options.reserve
    reserve_bytes = size_of(reserve_gib, "--reserve")
    if is_made_up(options):
        return with_links(made_up_machine(options, reserve_bytes), options)
    here = machine_now(
        await devices_here(terminal),
        reserve_bytes=reserve_bytes,
        drift=MeasuredLoads().drift,
        gpu_factor=MeasuredSpeeds().gpu_factor,
        readings=gpus,
    )
    return with_ram(here, options.ram, options.ram_kind)


async def _plan(
    options: argparse.Namespace, asked: LoadOptions, files: Files, machine: MachineMemory
) -> Plan | LoadFailure:
    if is_made_up(options):
        return plan_of(*files, machine, asked)
    is_on_hub = asked.model.startswith(_HUB_PREFIX)
    place = Path(read_folders().models[0] if is_on_hub else asked.model)
    machine = await asyncio.to_thread(with_drive, machine, files[0], place)
    if is_on_hub:
        return plan_of(*files, machine, asked)
    from qwendesk.engines.engine_choice import preferred_engine

    engines = await preferred_engine()
    return await exact_plan(*files, machine, asked, engines.dry_run)


def _serving(made: Plan, facts: ModelFacts, machine: MachineMemory, links: Sequence[GpuLink]) -> Serving:
    """Return what a command for a program that doesn't load GGUF files needs to know."""
    model = made.options.model
    repo = split_name(model.removeprefix(_HUB_PREFIX))[0] if model.startswith(_HUB_PREFIX) else ""
    return Serving(
        base_repo=load_catalog().base_repo_of(repo, facts.name, facts.basename, Path(model).name),
        cards=cards_of(machine.devices, made, links),
        kv_bytes=kv_bytes_of(made),
        n_heads=facts.head_count,
        n_kv_heads=facts.head_count_kv,
    )


def _link_lines(made: Plan, machine: MachineMemory, gpus: Sequence[GpuReading]) -> list[str]:
    """Return a line about the link of each planned graphics card, as far as the probes know it."""
    readings = match_gpus(machine.devices, gpus)
    reports = {report.key: report for report in link_reports(gpus)}
    return [
        f"{tr('Link of {0}', device.title)}: {link_text(reports[readings[device.name].key], device.weights_bytes)}"
        for device in made.memory.gpus
        if device.name in readings and readings[device.name].key in reports
    ]


async def devices_here(terminal: Terminal) -> Devices:
    """Return the engine's devices; if it can't list them, print a note and return none, so that only RAM is used."""
    from qwendesk.engines.engine_choice import preferred_client

    client = await preferred_client()
    try:
        found = await client.probe()
    finally:
        await client.close()
    if isinstance(found, EngineExit):
        terminal.note(tr("The engine couldn't list the GPUs, so this plan uses only RAM. {0}", found.sentence))
        return Devices(id=0, devices=(), cpu_features=())
    return found


def _asked(options: argparse.Namespace) -> LoadOptions:
    """Return the load options of the command line. Raises BadOption."""
    assignments = {}
    for text in (text for group in options.assignments for text in group):
        key, separator, value = text.partition("=")
        if not separator:
            raise BadOption(tr("Bad option"), tr('--set takes KEY=VALUE, not "{0}".', text))
        assignments[key.strip()] = value
    if options.ctx is not None:
        assignments["n_ctx"] = str(options.ctx)
    is_on_hub = options.model.startswith(_HUB_PREFIX)
    model = options.model if is_on_hub else str(first_shard(Path(options.model)))
    start = LoadOptions(model=model, mmproj=options.mmproj or "")
    return parse_load_options(start, assignments)


def _read_headers(asked: LoadOptions) -> Files | LoadFailure:
    """Read the headers of the files. Blocks. Raises QwenDeskError if the Hub can't be reached."""
    if asked.model.startswith(_HUB_PREFIX):
        return _read_headers_on_hub(asked)
    if not asked.mmproj and asked.vision != "off":
        mmproj = find_mmproj(Path(asked.model))
        asked = msgspec.structs.replace(asked, mmproj=str(mmproj or ""))
    if not asked.draft_model:
        head = find_draft_head(Path(asked.model))
        asked = msgspec.structs.replace(asked, draft_model=str(head or ""))
    return facts_for(asked)


def _read_headers_on_hub(asked: LoadOptions) -> Files:
    from qwendesk.hub.download_plan import plan_download
    from qwendesk.hub.gguf import join_shards, read_facts
    from qwendesk.hub.remote_header import remote_facts

    repo, path = split_name(asked.model.removeprefix(_HUB_PREFIX))
    if not path:
        raise QwenDeskError(
            tr("Bad name"), tr('"{0}" isn\'t a name on Hugging Face. Enter it as hf:owner/name/file.gguf.', asked.model)
        )
    hub = connected_hub()
    with_mmproj = not asked.mmproj and asked.vision != "off"
    files = plan_download(hub, repo, path, with_mmproj=with_mmproj).files
    parts = [remote_facts(hub, file) for file in files if not is_mmproj_name(file.path)]
    mmproj = next((remote_facts(hub, file) for file in files if is_mmproj_name(file.path)), None)
    if asked.mmproj.startswith(_HUB_PREFIX):
        repo, path = split_name(asked.mmproj.removeprefix(_HUB_PREFIX))
        mmproj = remote_facts(hub, hub.file(repo, path))
    elif asked.mmproj:
        mmproj = read_facts(Path(asked.mmproj))
    return join_shards(parts), mmproj


def as_json(made: Plan, measured_tok_s: float | None = None, step: NextStep | None = None) -> dict[str, Any]:
    """Return the object that --json prints."""
    return {
        "fits": made.fits,
        "devices": [_device(device) for device in made.devices],
        "ram_bytes": made.ram_bytes,
        "options": msgspec.to_builtins(made.options),
        "expected_tok_s": [round(speed, 1) for speed in made.speed.start] if made.speed else None,
        "measured_tok_s": round(measured_tok_s, 1) if measured_tok_s is not None else None,
        "why": [*made.why, *filter(None, (made.accuracy, made.label))],
        "source": made.source,
        "next_step": {"sentence": step.sentence, "command": step.command} if step is not None else None,
    }


def _device(device: DevicePlan) -> dict[str, Any]:
    keys = (
        "name",
        "description",
        "layers",
        "weights_bytes",
        "kv_bytes",
        "recurrent_bytes",
        "compute_bytes",
        "vision_bytes",
        "total_bytes",
    )
    return {key: getattr(device, key) for key in (*keys, "budget_bytes")}


def _as_text(made: Plan, measured_tok_s: float | None, links: Sequence[str], step: NextStep | None) -> str:
    lines = [tr("It fits.") if made.fits else tr("It doesn't fit.")]
    if made.label:
        lines.append(made.label)
    lines += [f"  {sentence}" for sentence in (*made.why, made.accuracy) if sentence]
    for device in (*made.memory.gpus, made.memory.ram):
        parts = {
            tr("weights"): device.weights_bytes,
            tr("KV cache"): device.kv_bytes,
            tr("recurrent state"): device.recurrent_bytes,
            tr("buffers"): device.compute_bytes,
            tr("vision"): device.vision_bytes,
            tr("next-token layer"): device.draft_bytes,
            tr("driver and other"): device.other_bytes,
            tr("used by the GPU"): device.gpu_bytes,
        }
        detail = ", ".join(f"{what} {show_bytes(n_bytes)}" for what, n_bytes in parts.items() if n_bytes)
        name = tr("RAM") if device.name == "CPU" else device.title
        lines.append(f"{name}: {show_bytes(device.total_bytes)}" + (f" ({detail})" if detail else ""))
    lines += links
    if measured_tok_s is not None:
        lines.append(tr("Measured here: {0} tok/s", show_rate(measured_tok_s)))
    elif made.speed is not None:
        lines.append(
            tr(
                "Estimated {0} tok/s at the start of a chat, {1} at {2} context.",
                show_expected(made.speed.start),
                show_expected(made.speed.long),
                show_tokens(made.speed.long_tokens),
            )
        )
    if made.source == "estimate":
        lines.append(tr("These are estimates."))
    if step is not None:
        lines += ["", tr("Next step: {0}", step.sentence), *step.command.splitlines()]
    return "\n".join(lines) + "\n"
