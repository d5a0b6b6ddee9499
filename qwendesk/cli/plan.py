"""`qwendesk plan`: how a model would be loaded, what it would take and how fast it should be, without loading it.

Of a file on Hugging Face only the header is read. Without --vram it is this PC, and the engine itself is asked.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import psutil

from qwendesk.cli.models_hub import connected_hub, split_name
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.commands import COMMAND_KINDS, command
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.option_rules import load_options_of
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.core.plan import DevicePlan, Machine, Plan
from qwendesk.core.units import GIB, show_bytes, show_expected, show_tokens
from qwendesk.engine.protocol import Devices
from qwendesk.services.engine.beside import mmproj_beside
from qwendesk.services.engine.deciding import facts_for, machine_now, plan_of
from qwendesk.services.engine.exact import exact_plan
from qwendesk.services.engine.measured import MeasuredLoads
from qwendesk.services.settings import SettingsService

EXIT_FITS, EXIT_DOES_NOT_FIT = 0, 1
SYSTEM_RAM_BYTES = 3 * GIB
"""Of --ram, what the system and a browser need."""
_ON_THE_HUB = "hf:"
_MOST_GPUS = 16

Files = tuple[ModelFacts, ModelFacts | None]


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="FILE|hf:REPO/FILE", help="a GGUF file here, or one on Hugging Face (only its header is read)")
    add("--mmproj", metavar="FILE", help="the picture file; without it: the one that lies beside the model")
    add("--ctx", metavar="N", type=int, help="context length in tokens; without it the planner chooses")
    add("--vram", metavar="GIB[,GIB...]", help="plan for graphics cards of this size instead of those here; 0: none")
    add("--ram", metavar="GIB", type=float, help="plan for this much RAM instead of what is free here")
    add("--reserve", metavar="GIB", type=float, help="video memory to leave free; without it: your setting")
    add("--set", metavar="KEY=VALUE", dest="assignments", action="append", nargs="+", default=[],
        help="any load option; repeatable")  # fmt: skip
    add(
        "--command",
        dest="command_of",
        choices=COMMAND_KINDS,
        help="print the plan as a command (or Modelfile) of this program instead",
    )
    add("--json", action="store_true", help="print one JSON object instead")


async def plan(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Plans, prints, and returns the exit status. Raises QwenDeskError for bad options and unreadable files."""
    task = asyncio.current_task()
    if task is not None:
        interrupts.on_request(task.cancel)
    asked = _asked(options)
    files = await asyncio.to_thread(_files, asked)
    if isinstance(files, LoadFailure):
        raise QwenDeskError(files.title, files.sentence)
    if files[1] is not None and not asked.mmproj:
        asked = msgspec.structs.replace(asked, mmproj=files[1].path)
    made = await _plan(options, asked, files, terminal)
    if isinstance(made, LoadFailure):
        raise QwenDeskError(made.title, made.sentence)
    if options.command_of:
        text = command(options.command_of, made.options, GenerationOptions(), windows=sys.platform == "win32")
        terminal.write(text.rstrip("\n") + "\n")
    elif options.json:
        terminal.write_json(as_json(made))
    else:
        terminal.write(_as_text(made))
    return EXIT_FITS if made.fits else EXIT_DOES_NOT_FIT


async def _plan(
    options: argparse.Namespace, asked: LoadOptions, files: Files, terminal: Terminal
) -> Plan | LoadFailure:
    reserve_gib = SettingsService().options.reserve_gb if options.reserve is None else options.reserve
    reserve_bytes = round(_positive(reserve_gib, "--reserve") * GIB)
    if options.vram is not None:
        return plan_of(*files, _made_up_machine(options, reserve_bytes), asked)
    from qwendesk.services.engine.engines import engines_here

    engines = engines_here()
    await engines.choose(SettingsService().options.engine)
    devices = await _devices_here(terminal)
    machine = _with_ram(machine_now(devices, reserve_bytes=reserve_bytes, drift=MeasuredLoads().drift), options.ram)
    if asked.model.startswith(_ON_THE_HUB):
        return plan_of(*files, machine, asked)

    async def ask(decided: LoadOptions) -> Any:
        from qwendesk.engine.estimating import ask_engine

        return await ask_engine(decided, environment=engines.environment())

    return await exact_plan(*files, machine, asked, ask)


async def _devices_here(terminal: Terminal) -> Devices:
    """What the engine sees; RAM alone, with a note, when it cannot be asked."""
    from qwendesk.services.engine.engines import client_here

    client = await client_here()
    try:
        found = await client.probe()
    finally:
        await client.close()
    if isinstance(found, EngineDeath):
        terminal.note(f"The engine cannot say which GPUs are here, so RAM alone is planned with: {found.sentence}")
        return Devices(id=0, devices=(), cpu_features=())
    return found


def _asked(options: argparse.Namespace) -> LoadOptions:
    """The load options as given. Raises BadOption."""
    assignments = {}
    for text in (text for group in options.assignments for text in group):
        key, separator, value = text.partition("=")
        if not separator:
            raise BadOption("Bad option", f'"{text}" must look like KEY=VALUE.')
        assignments[key.strip()] = value
    if options.ctx is not None:
        assignments["n_ctx"] = str(options.ctx)
    start = LoadOptions(model=options.model, mmproj=options.mmproj or "")
    return load_options_of(start, assignments)


def _files(asked: LoadOptions) -> Files | LoadFailure:
    """What the headers say; blocks. Raises QwenDeskError when the Hub cannot be read."""
    if asked.model.startswith(_ON_THE_HUB):
        return _files_on_hub(asked)
    if not asked.mmproj and asked.vision != "off":
        beside = mmproj_beside(Path(asked.model))
        asked = msgspec.structs.replace(asked, mmproj=str(beside or ""))
    return facts_for(asked)


def _files_on_hub(asked: LoadOptions) -> Files:
    from qwendesk.hub.download_plan import is_mmproj, plan_download
    from qwendesk.hub.gguf import join_parts, read_facts
    from qwendesk.hub.remote_header import remote_facts

    repo, path = split_name(asked.model.removeprefix(_ON_THE_HUB))
    if not path:
        raise QwenDeskError("Bad name", f'"{asked.model}" should be like hf:owner/name/file.gguf.')
    hub = connected_hub()
    with_mmproj = not asked.mmproj and asked.vision != "off"
    files = plan_download(hub, repo, path, with_mmproj=with_mmproj).files
    parts = [remote_facts(hub, file) for file in files if not is_mmproj(file)]
    pictures = next((remote_facts(hub, file) for file in files if is_mmproj(file)), None)
    if asked.mmproj.startswith(_ON_THE_HUB):
        repo, path = split_name(asked.mmproj.removeprefix(_ON_THE_HUB))
        pictures = remote_facts(hub, hub.file(repo, path))
    elif asked.mmproj:
        pictures = read_facts(Path(asked.mmproj))
    return join_parts(parts), pictures


def _made_up_machine(options: argparse.Namespace, reserve_bytes: int) -> Machine:
    """A PC with the cards that --vram names, all of them free. They count as NVIDIA's."""
    cards = []
    for number, text in enumerate(options.vram.split(",")):
        n_bytes = round(_positive(_number(text, "--vram"), "--vram") * GIB)
        if n_bytes:
            cards.append(DeviceInfo(f"GPU{number}", f"{show_bytes(n_bytes)} card", "gpu", "CUDA", n_bytes, n_bytes))
    if len(cards) > _MOST_GPUS:
        raise BadOption("Bad option", f"--vram names {len(cards)} cards; the engine takes at most {_MOST_GPUS}.")
    memory = psutil.virtual_memory()
    machine = Machine(
        devices=tuple(cards),
        ram_total_bytes=memory.total,
        ram_available_bytes=memory.available,
        reserve_bytes=reserve_bytes,
        physical_cores=psutil.cpu_count(logical=False) or 0,
    )
    return _with_ram(machine, options.ram)


def _with_ram(machine: Machine, ram_gib: float | None) -> Machine:
    if ram_gib is None:
        return machine
    total = round(_positive(ram_gib, "--ram") * GIB)
    available = max(total - SYSTEM_RAM_BYTES, total // 2)
    return msgspec.structs.replace(machine, ram_total_bytes=total, ram_available_bytes=available)


def _number(text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadOption("Bad option", f'"{text}" is no number of GiB for {flag}.') from None


def _positive(value: float, flag: str) -> float:
    if not 0 <= value <= 100_000:
        raise BadOption("Bad option", f"{flag} {value:g} is no size in GiB.")
    return value


def as_json(made: Plan) -> dict[str, Any]:
    """The plan as programs read it."""
    return {
        "fits": made.fits,
        "devices": [_device(device) for device in made.devices],
        "ram_bytes": made.ram_bytes,
        "options": msgspec.to_builtins(made.options),
        "expected_tok_s": [round(speed, 1) for speed in made.speed.start] if made.speed else None,
        "why": [*made.why, *((made.label,) if made.label else ())],
        "source": made.source,
    }


def _device(device: DevicePlan) -> dict[str, Any]:
    keys = ("name", "weights_bytes", "kv_bytes", "recurrent_bytes", "compute_bytes", "vision_bytes", "total_bytes")
    return {key: getattr(device, key) for key in (*keys, "budget_bytes")}


def _as_text(made: Plan) -> str:
    lines = ["It fits." if made.fits else "It does not fit."]
    if made.label:
        lines.append(made.label)
    lines += [f"  {sentence}" for sentence in made.why]
    for device in (*made.prices.gpus, made.prices.ram):
        parts = {
            "weights": device.weights_bytes,
            "KV cache": device.kv_bytes,
            "recurrent state": device.recurrent_bytes,
            "compute": device.compute_bytes,
            "pictures": device.vision_bytes,
            "next-token layer": device.draft_bytes,
            "driver and other": device.drift_bytes,
        }
        detail = ", ".join(f"{what} {show_bytes(n_bytes)}" for what, n_bytes in parts.items() if n_bytes)
        lines.append(f"{'RAM' if device.name == 'CPU' else device.name}: {show_bytes(device.total_bytes)} ({detail})")
    if made.speed is not None:
        lines.append(
            f"Expect about {show_expected(made.speed.start)} tok/s at the start, {show_expected(made.speed.long)} with "
            f"{show_tokens(made.speed.long_tokens)} tokens before it (an estimate until it is measured here)."
        )
    if made.source == "estimate":
        lines.append("The numbers are estimates.")
    return "\n".join(lines) + "\n"
