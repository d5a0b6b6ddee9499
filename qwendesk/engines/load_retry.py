"""Finds the step down to try after a failed load."""

import math

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.hardware.ladder import STEPS, ModelShape, StepDown, StepId, step_levels

_LEAST_EXPERT_LAYERS = 4
_SHARE = 0.25
"""How much of the layers one retry moves to the CPU."""


def next_step(options: LoadOptions, failure: LoadFailure, model: ModelShape) -> StepDown | None:
    """Return a configuration that needs less memory or doesn't use the GPU; None if that can't help.

    `options` are the options of the failed load, if possible without "auto".
    """
    if failure.nearest is not None and (step := _to_nearest(options, failure.nearest)):
        return step
    if failure.kind == "out_of_ram":
        return _first_step(options, model, ("context",))
    if failure.kind == "out_of_vram":
        return _first_step(options, model, tuple(step.id for step in STEPS if step.id != "cpu"))
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


def _first_step(options: LoadOptions, model: ModelShape, step_ids: tuple[StepId, ...]) -> StepDown | None:
    """Return the first possible step, with as many of its levels as one retry takes."""
    for step_id in step_ids:
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
