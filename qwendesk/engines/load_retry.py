"""Finds the step down to try after a failed load."""

import math
import re
from collections.abc import Sequence

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Devices
from qwendesk.engines.load_decision import Decide, ReadFiles
from qwendesk.hardware.ladder import STEPS, ModelShape, StepDown, StepId, experts_off_gpus, step_levels
from qwendesk.hardware.layer_split import usable_gpus

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
