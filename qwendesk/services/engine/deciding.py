"""What the options leave to "auto", decided: by the model file's header and the memory that is free now."""

from collections.abc import Callable
from pathlib import Path, PurePath

import msgspec
import psutil

from qwendesk.core.errors import BadModelFile
from qwendesk.core.failures import LoadFailure, LoadFailureKind
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.option_rules import conflicts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Plan
from qwendesk.core.units import GIB, show_bytes
from qwendesk.engine.protocol import Devices
from qwendesk.hardware.planner import could_load, solve
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.pairing import mmproj_mismatch

Drift = tuple[tuple[str, int], ...]
"""Device name and bytes that loads took there beyond the formulas (services/engine/measured.py)."""


def decide(
    options: LoadOptions, devices: Devices, *, reserve_bytes: int = GIB, drift: Drift = ()
) -> LoadOptions | LoadFailure:
    """`options` without an "auto" that the planner decides, or why they cannot be loaded. Reads headers; blocks."""
    plan = plan_for(options, machine_now(devices, reserve_bytes=reserve_bytes, drift=drift))
    if isinstance(plan, LoadFailure):
        return plan
    return refusal(plan, options) or plan.options


def deciding_with(
    reserve_gb: Callable[[], float], drift: Callable[[], Drift]
) -> Callable[..., LoadOptions | LoadFailure]:
    """`decide` with the user's reserve and what was measured on this PC, both asked anew for each load."""

    def decide_now(options: LoadOptions, devices: Devices) -> LoadOptions | LoadFailure:
        return decide(options, devices, reserve_bytes=round(reserve_gb() * GIB), drift=drift())

    return decide_now


def machine_now(devices: Devices, *, reserve_bytes: int = GIB, drift: Drift = ()) -> Machine:
    """The memory there is at this moment, nothing of ours being loaded."""
    memory = psutil.virtual_memory()
    return Machine(
        devices=devices.devices,
        ram_total_bytes=memory.total,
        ram_available_bytes=memory.available,
        reserve_bytes=reserve_bytes,
        drift=drift,
        physical_cores=psutil.cpu_count(logical=False) or 0,
    )


def plan_for(options: LoadOptions, machine: Machine) -> Plan | LoadFailure:
    """The plan for the files that `options` name, or what is wrong with them. Reads headers; blocks."""
    files = facts_for(options)
    if isinstance(files, LoadFailure):
        return files
    return plan_of(*files, machine, options)


def plan_of(facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, options: LoadOptions) -> Plan | LoadFailure:
    """The plan for files whose facts are known; a LoadFailure for options that cannot be together."""
    for conflict in conflicts(options, facts):
        return LoadFailure("bad_option", "Impossible combination", conflict.sentence)
    return solve(facts, mmproj, machine, options)


def refusal(plan: Plan, asked: LoadOptions) -> LoadFailure | None:
    """Why a plan for what was `asked` is not loaded; None when it is. What the user set may use all that is free."""
    if plan.fits or (_is_set_by_user(asked) and could_load(plan, asked)):
        return None
    return _failure(asked, plan)


def facts_for(options: LoadOptions) -> tuple[ModelFacts, ModelFacts | None] | LoadFailure:
    """What the model file and its picture file say of themselves, or why they cannot be used. Reads headers; blocks."""
    try:
        model = read_facts(Path(options.model))
        mmproj = read_facts(Path(options.mmproj)) if options.mmproj and options.vision != "off" else None
    except BadModelFile as error:
        return LoadFailure(msgspec.convert(error.kind, LoadFailureKind), error.title, error.sentence)
    if mmproj is not None and (sentence := mmproj_mismatch(model, mmproj)):
        return LoadFailure("mmproj_mismatch", "The picture file does not fit", sentence)
    return model, mmproj


def _is_set_by_user(options: LoadOptions) -> bool:
    return options.n_gpu_layers != "auto" or options.n_cpu_moe != "auto"


def _failure(options: LoadOptions, plan: Plan) -> LoadFailure:
    name = PurePath(options.model).name
    for gpu in plan.prices.gpus:
        if gpu.limit_bytes is not None and gpu.total_bytes > gpu.limit_bytes:
            return LoadFailure(
                "out_of_vram",
                "Not enough video memory",
                f"{name} with these settings needs {show_bytes(gpu.total_bytes)} on {gpu.description or gpu.name}, "
                f"which has {show_bytes(gpu.limit_bytes)} free. Set GPU offload and Expert layers on CPU to auto, "
                "shorten the context, or choose a smaller quant.",
            )
        if gpu.missing_bytes and plan.prices.ram.missing_bytes == 0:
            return LoadFailure(
                "out_of_vram",
                "Not enough video memory",
                f"{name} with these settings needs {show_bytes(gpu.total_bytes)} on {gpu.description or gpu.name}, of "
                f"which {show_bytes(gpu.budget_bytes or 0)} may be used. Lower the reserve for other programs, set GPU "
                "offload and Expert layers on CPU to auto, shorten the context, or choose a smaller quant.",
            )
    ram = plan.prices.ram
    advice = "Close other programs, or choose a smaller quant or model."
    if options.load_mode != "mmap":
        advice += " The load mode mmap would load it anyway and read from disk what does not fit: very slow."
    return LoadFailure(
        "out_of_ram",
        "Not enough memory",
        f"{name} needs {show_bytes(ram.total_bytes)} of RAM, and {show_bytes(ram.budget_bytes or 0)} is free. {advice}",
    )
