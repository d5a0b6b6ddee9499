"""Decides the options that are "auto" for the memory that is free now, and the step down to try after a failed load."""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path, PurePath

import msgspec
import psutil

from qwendesk.core.errors import BadModelFile
from qwendesk.core.failures import LoadFailure, LoadFailureKind
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.model_titles import model_title
from qwendesk.core.option_rules import conflicts
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import DriveKind, MachineMemory, MemoryUse, Plan
from qwendesk.core.translation import join_sentences, tr
from qwendesk.core.units import GIB, show_bytes
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.hardware.drives import drive_of
from qwendesk.hardware.engine_gpus import carve_outs, link_speeds
from qwendesk.hardware.ladder import STEPS, ModelShape, StepDown, StepId, experts_off_gpus, step_levels
from qwendesk.hardware.layer_split import usable_gpus
from qwendesk.hardware.model_memory import lazy_table_bytes
from qwendesk.hardware.plan_text import nearest_text
from qwendesk.hardware.planner import best_plan, could_load
from qwendesk.hardware.ram_modules import ram_bandwidth_here
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hub.companion_pairing import draft_head_mismatch, find_draft_head, find_mmproj, mmproj_mismatch
from qwendesk.hub.gguf import first_shard, read_facts

# The facts of a model, with its draft head if that has a file of its own, and of its vision file, if it has one.
ModelFiles = tuple[ModelFacts, ModelFacts | None]
ReadFiles = Callable[[LoadOptions], ModelFiles | LoadFailure]
# Decides every "auto", or returns why loading is impossible. Called on another thread, because it reads files.
Decide = Callable[[LoadOptions, Devices], DecidedOptions | LoadFailure]
# Returns the load options for a model file.
OptionsFor = Callable[[Path], Awaitable[LoadOptions]]
# Tells the drive of a file or folder, such as `drive_of`.
FindDrive = Callable[[Path], DriveKind]
# For each device its name and the bytes that loads took beyond the estimate (engines/measurements.py).
Drift = tuple[tuple[str, int], ...]


def decide(options: LoadOptions, devices: Devices) -> DecidedOptions | LoadFailure:
    """Return the options to load with, or why loading is impossible. Reads headers; blocks."""
    plan = plan_for(options, machine_now(devices))
    if isinstance(plan, LoadFailure):
        return plan
    return refusal(plan, options) or plan.options


def decide_on_cpu(options: LoadOptions, devices: Devices) -> DecidedOptions | LoadFailure:
    """Decide as `decide` does, but use no GPU, for safe mode. Reads headers; blocks."""
    vision = "off" if options.vision == "off" else "cpu"
    return decide(msgspec.structs.replace(options, devices=("none",), n_gpu_layers=0, vision=vision), devices)


def machine_now(
    devices: Devices,
    *,
    reserve_bytes: int = GIB,
    drift: Drift = (),
    gpu_factor: float = 1.0,
    readings: Sequence[GpuReading] = (),
) -> MachineMemory:
    """Return the memory that is free now. No model should be loaded, because its memory would count as used.

    `gpu_factor` and `readings`, what the probes read of the GPUs, make the estimate of speed more accurate.
    """
    memory = psutil.virtual_memory()
    return MachineMemory(
        devices=devices.devices,
        ram_total_bytes=memory.total,
        ram_available_bytes=memory.available,
        reserve_bytes=reserve_bytes,
        drift=drift,
        gpu_factor=gpu_factor,
        pcie_bandwidth=link_speeds(devices.devices, readings),
        carve_outs=carve_outs(devices.devices, readings),
        physical_cores=psutil.cpu_count(logical=False) or 0,
        ram_bandwidth=ram_bandwidth_here(),
    )


def ram_freed_by_reload(report: LoadReport | None, machine: MachineMemory) -> int:
    """Return the bytes of RAM that a reload frees: all that the engine allocated, except weights mapped from disk.

    That includes what it allocated on GPUs that share the RAM, beyond their carve-outs.
    """
    if report is None:
        return 0
    mapped = report.options.load_mode in ("auto", "mmap")
    shared, set_aside = {device.name for device in machine.devices if device.shares_ram}, dict(machine.carve_outs)
    return sum(
        row.total_bytes - (row.weights_bytes if mapped else 0)
        if row.device == "CPU"
        else max(row.total_bytes - set_aside.get(row.device, 0), 0)
        for row in report.allocations
        if row.device == "CPU" or row.device in shared
    )


def plan_for(options: LoadOptions, machine: MachineMemory) -> Plan | LoadFailure:
    """Return the plan for the files in `options`, or what is wrong with them. Reads headers; blocks."""
    files = facts_for(options)
    if isinstance(files, LoadFailure):
        return files
    return plan_of(*files, with_drive(machine, files[0], Path(options.model)), options)


def with_drive(
    machine: MachineMemory, facts: ModelFacts, place: Path, find_drive: FindDrive = drive_of
) -> MachineMemory:
    """Return `machine` with the drive that the model is on, or will be. Blocks.

    Only a model with a table that may stay on the drive depends on it. For any other, the drive isn't asked.
    """
    if not lazy_table_bytes(facts):
        return machine
    return msgspec.structs.replace(machine, drive=find_drive(place))


def plan_of(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, options: LoadOptions
) -> Plan | LoadFailure:
    """Return the plan for files whose facts are known, or a LoadFailure for conflicting options."""
    for conflict in conflicts(options, facts):
        return LoadFailure("bad_option", tr("These options conflict"), conflict.sentence)
    return best_plan(facts, mmproj, machine, options)


def refusal(plan: Plan, requested: LoadOptions) -> LoadFailure | None:
    """Return why the plan for the options `requested` can't be loaded; None if it can.

    If the user set how much goes to the GPU, the plan may use all free memory, including the reserve.
    """
    if plan.fits or (_is_set_by_user(requested) and could_load(plan, requested)):
        return None
    failure = _failure(requested, plan)
    if plan.nearest is None:
        return failure
    sentence = join_sentences(failure.sentence, nearest_text(requested, plan.nearest))
    return msgspec.structs.replace(failure, sentence=sentence, nearest=plan.nearest)


def facts_for(options: LoadOptions, read: Callable[[Path], ModelFacts] = read_facts) -> ModelFiles | LoadFailure:
    """Return the facts of the model file and its vision file, or why they can't be used. Blocks.

    `read` reads a header: usually `HeaderCache.read_facts`, which reads each file once.
    """
    try:
        model = read(Path(options.model))
        mmproj = read(Path(path)) if (path := files_of(options)[1]) else None
        head = _read_draft_head(model, options, read)
    except BadModelFile as error:
        return LoadFailure(msgspec.convert(error.kind, LoadFailureKind), error.title, error.sentence)
    if model.kind == "mmproj":
        sentence = tr(
            "{0} is a vision file (mmproj), not a model. Choose the model; its vision file is found automatically.",
            PurePath(options.model).name,
        )
        return LoadFailure("other", tr("This is a vision file"), sentence)
    if model.kind == "adapter":
        sentence = tr(
            "{0} is a LoRA adapter, not a model. Choose its model, and the adapter as the option “LoRA adapters”.",
            PurePath(options.model).name,
        )
        return LoadFailure("other", tr("This is a LoRA adapter"), sentence)
    if model.kind == "draft_head":  # the engine would crash on it
        sentence = tr(
            "{0} is a draft head (MTP), not a model. Choose its model; a draft head in the same folder is found "
            "automatically.", PurePath(options.model).name,
        )  # fmt: skip
        return LoadFailure("other", tr("This is a draft head"), sentence)
    if mmproj is not None and (mismatch := mmproj_mismatch(model, mmproj)):
        return LoadFailure("mmproj_mismatch", tr("The vision file doesn't fit"), mismatch.message)
    if isinstance(head, ModelFacts):
        model = msgspec.structs.replace(model, draft_head=head)
    return model, mmproj


async def with_companions(model: Path) -> LoadOptions:
    """Return the options for a model with the mmproj file and the draft head in its folder."""
    model = await asyncio.to_thread(first_shard, model)
    mmproj = await asyncio.to_thread(find_mmproj, model)
    head = await asyncio.to_thread(find_draft_head, model)
    return LoadOptions(model=str(model), mmproj=str(mmproj or ""), draft_model=str(head or ""))


def files_of(options: LoadOptions) -> tuple[str, ...]:
    """Return the paths of the files that `facts_for` reads, the model's first; "" for those that are not wanted."""
    mmproj = options.mmproj if options.vision != "off" else ""
    return options.model, mmproj, options.draft_model if options.speculative in ("auto", "mtp") else ""


def draft_head_problem(model: ModelFacts, options: LoadOptions) -> str:
    """Return why the chosen draft head can't be used, in a sentence; "" if it can, or if none is wanted. Blocks."""
    head = None if model.draft_head is not None else _read_draft_head(model, options, read_facts)
    return head if isinstance(head, str) else ""


def _read_draft_head(
    model: ModelFacts, options: LoadOptions, read: Callable[[Path], ModelFacts]
) -> ModelFacts | str | None:
    """Return the draft head of `options`, or why it can't be used; None if none is wanted.

    The model works without it, so a head that can't be used fails no load.
    """
    path = files_of(options)[2]
    if not path:
        return None
    try:
        head = read(Path(path))
    except BadModelFile as error:
        return error.sentence
    return draft_head_mismatch(model, head) or head


def _is_set_by_user(options: LoadOptions) -> bool:
    return options.n_gpu_layers != "auto" or options.n_cpu_moe != "auto"


def _failure_of_shared_memory(name: str, memory: MemoryUse) -> LoadFailure:
    """Return what is short if GPU and CPU share one memory: all of it, or only what the GPU may use."""
    if memory.ram.missing_bytes:
        sentence = tr(
            "{0} with these settings needs {1} of the memory that GPU and CPU share, of which {2} may be used. Close "
            "other programs, or choose a smaller quant or model.",
            name, show_bytes(memory.shared.total_bytes), show_bytes(memory.shared.budget_bytes or 0),
        )  # fmt: skip
        return LoadFailure("out_of_ram", tr("Not enough memory"), sentence)
    gpu = max(memory.gpus, key=lambda each: each.missing_bytes)
    sentence = tr(
        "{0} with these settings needs {1} on {2}, which may use {3} of the memory. Choose a smaller quant.",
        name, show_bytes(gpu.total_bytes), gpu.description or gpu.name, show_bytes(gpu.budget_bytes or 0),
    )  # fmt: skip
    return LoadFailure("out_of_vram", tr("Not enough memory for the GPU"), sentence)


def _failure(options: LoadOptions, plan: Plan) -> LoadFailure:
    """Return what is short. The sentence advises no load options: load_retry.py finds those that help."""
    name = model_title(options.model)
    if plan.memory.is_unified:
        return _failure_of_shared_memory(name, plan.memory)
    for gpu in plan.memory.gpus:
        gpu_name = gpu.title if len(plan.memory.gpus) > 1 else gpu.description or gpu.name
        if gpu.limit_bytes is not None and gpu.total_bytes > gpu.limit_bytes:
            return LoadFailure(
                "out_of_vram",
                tr("Not enough video memory"),
                tr(
                    "{0} with these settings needs {1} on {2}, which has {3} free. Close other programs, or choose a "
                    "smaller quant.",
                    name, show_bytes(gpu.total_bytes), gpu_name, show_bytes(gpu.limit_bytes),
                ),
            )  # fmt: skip
        if gpu.missing_bytes and plan.memory.ram.missing_bytes == 0:
            return LoadFailure(
                "out_of_vram",
                tr("Not enough video memory"),
                tr(
                    "{0} with these settings needs {1} on {2}, of which {3} may be used. Lower the reserve for games "
                    "and other apps, or choose a smaller quant.",
                    name, show_bytes(gpu.total_bytes), gpu_name, show_bytes(gpu.budget_bytes or 0),
                ),
            )  # fmt: skip
    needed, free = show_bytes(plan.memory.ram.total_bytes), show_bytes(plan.memory.ram.budget_bytes or 0)
    sentence = tr(
        "{0} needs {1} of RAM, and {2} is free. Close other programs, or choose a smaller quant or model.",
        name, needed, free,
    )  # fmt: skip
    if options.load_mode != "mmap":
        hint = tr("With the load mode mmap it would load anyway, but very slowly: the rest is read from disk.")
        sentence = join_sentences(sentence, hint)
    return LoadFailure("out_of_ram", tr("Not enough memory"), sentence)


_LEAST_EXPERT_LAYERS = 4
# How much of the layers one retry moves to the CPU.
_SHARE = 0.25
# How many steps down are checked for one offer. The planner usually names the one that fits at once.
_MOST_STEPS = 8


def find_step(
    options: LoadOptions, failure: LoadFailure, devices: Devices, read_files: ReadFiles, check: Decide
) -> StepDown | None:
    """Return the step down to offer after a failed load; None if there is none. Blocks.

    If video memory was short, that is the first one that the planner, `check`, would allow now, if it allows any.
    """
    files = read_files(options)
    model = None if isinstance(files, LoadFailure) else files[0]
    layers = model.block_count - model.nextn_layers if model is not None else 0
    shape = ModelShape(layers, layers if model is not None and model.expert_count else 0, bool(options.mmproj))
    gpus = tuple(device.name for device in usable_gpus(devices.devices, options))
    step = tried = next_step(options, failure, shape, gpus)
    for _ in range(_MOST_STEPS if failure.kind == "out_of_vram" else 0):
        if tried is None:
            break
        decided = check(tried.options, devices)
        if not isinstance(decided, LoadFailure):
            return tried
        tried = next_step(tried.options, decided, shape, gpus)
    return step


def next_step(
    options: LoadOptions, failure: LoadFailure, model: ModelShape, gpus: Sequence[str] = ()
) -> StepDown | None:
    """Return a configuration that needs less memory or doesn't use the GPU; None if that can't help.

    `options` are the options of the failed load, if possible without "auto". `gpus` are the engine's names of the GPUs
    that share the model, in its order.
    """
    if failure.nearest is not None and (step := _to_nearest(options, failure.nearest)):
        return step
    if failure.kind in ("out_of_ram", "out_of_vram") and options.speculative == "auto":
        options = msgspec.structs.replace(options, speculative="off")  # together with the step: there may be no drafts
    if failure.kind == "out_of_ram":
        return _first_step(options, model, ("drafts", "context"))
    if failure.kind == "out_of_vram":
        short = _short_gpu(failure, gpus)
        return _first_step(options, model, tuple(step.id for step in STEPS if step.id != "cpu"), len(gpus), short)
    if failure.kind == "buffer_too_large":
        return _first_step(options, model, ("kv", "context", "layers"))
    if failure.kind == "kv_tensor_too_large":
        # Every layer with attention has such a tensor, so it doesn't help to move some of them to the CPU.
        return _first_step(options, model, ("kv", "context", "cpu"))
    if failure.kind == "engine_crashed":
        # If no reason is known, the graphics driver is the most likely cause.
        return _first_step(options, model, ("cpu",))
    return None


def _to_nearest(options: LoadOptions, nearest: LoadOptions) -> StepDown | None:
    """Return the step to the value that the planner found; None if it isn't a step, but the split between GPUs."""
    if nearest.n_cpu_moe != options.n_cpu_moe:
        return StepDown("experts", nearest)
    return StepDown("layers", nearest) if nearest.n_gpu_layers != options.n_gpu_layers else None


def _short_gpu(failure: LoadFailure, gpus: Sequence[str]) -> int | None:
    """Return which GPU the engine couldn't allocate memory on, by its log; None if that is unknown."""
    for line in failure.engine_lines:
        if not re.search("alloc", line, re.IGNORECASE):
            continue
        for number, name in enumerate(gpus):
            if re.search(rf"\b{re.escape(name)}\b", line):
                return number
    return None


def _first_step(
    options: LoadOptions, model: ModelShape, step_ids: tuple[StepId, ...], n_gpus: int = 0, short: int | None = None
) -> StepDown | None:
    """Return the first possible step, with as many of its levels as one retry takes.

    Experts move off the GPU `short`, if it is known which one lacks memory.
    """
    for step_id in step_ids:
        if step_id == "experts" and short is not None:
            levels = tuple(experts_off_gpus(options, model, n_gpus, [short]))
        else:
            levels = tuple(step_levels(step_id, options, model))
        if levels:
            stride = _stride(step_id, len(levels), model)
            return StepDown(step_id, levels[min(stride, len(levels)) - 1])
    return None


def _stride(step_id: StepId, n_levels: int, model: ModelShape) -> int:
    """Return how many levels one retry takes: several if levels are small, because each failed load takes seconds."""
    match step_id:
        case "experts":
            return max(_LEAST_EXPERT_LAYERS, math.ceil(model.expert_layers * _SHARE))
        case "layers":
            return math.ceil(n_levels * _SHARE)
        case _:
            return 1
