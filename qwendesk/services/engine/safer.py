"""After a load that failed: the next configuration that asks less of the PC. Pure."""

from typing import Literal

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions

SaferKind = Literal["pictures_on_cpu", "experts_on_cpu", "fewer_layers", "shorter_context", "cpu_only"]

SHORTEST_CONTEXT = 4_096
"""Tokens; below this a chat with a picture or two does not fit."""
_FEWER = 0.75
"""What is left of the layers, or of the context, after one step."""


class Safer(msgspec.Struct, frozen=True):
    """One step down: what changes, and the options with it."""

    kind: SaferKind
    options: LoadOptions
    amount: int = 0
    """Layers on the GPU, expert layers on the CPU or tokens of context after the step, by `kind`."""


def safer(options: LoadOptions, failure: LoadFailure, n_layers: int, n_experts: int) -> Safer | None:
    """The next step down from `options`, which are decided (no "auto" left); None when nothing is left to try.

    Only for failures that less memory or no GPU can mend. `n_layers` are the model's, 0 if unknown; `n_experts` is 0
    for a dense model.
    """
    on_gpu = _layers_on_gpu(options, n_layers)
    if failure.kind == "out_of_ram":
        return _shorter(options)
    if failure.kind == "out_of_vram":
        steps = (_pictures(options), _experts(options, n_layers, n_experts), _fewer(options, on_gpu), _shorter(options))
        return next((step for step in steps if step is not None), None)
    if failure.kind == "engine_died" and on_gpu:
        # Without a reason that we know: a driver is the likeliest to blame.
        return Safer("cpu_only", _changed(options, devices=("none",), n_gpu_layers=0, vision=_off_the_gpu(options)))
    return None


def _pictures(options: LoadOptions) -> Safer | None:
    if options.vision != "gpu" or not options.mmproj:
        return None
    return Safer("pictures_on_cpu", _changed(options, vision="cpu"))


def _experts(options: LoadOptions, n_layers: int, n_experts: int) -> Safer | None:
    moved = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    if not n_experts or not n_layers or moved >= n_layers:
        return None
    more = min(n_layers, max(moved + 4, moved + round(n_layers * (1 - _FEWER))))
    return Safer("experts_on_cpu", _changed(options, n_cpu_moe=more), more)


def _fewer(options: LoadOptions, on_gpu: int) -> Safer | None:
    if not on_gpu:
        return None
    fewer = int(on_gpu * _FEWER)
    return Safer("fewer_layers", _changed(options, n_gpu_layers=fewer), fewer)


def _shorter(options: LoadOptions) -> Safer | None:
    if options.n_ctx <= SHORTEST_CONTEXT:
        return None
    shorter = max(SHORTEST_CONTEXT, options.n_ctx // 2)
    return Safer("shorter_context", _changed(options, n_ctx=shorter), shorter)


def _layers_on_gpu(options: LoadOptions, n_layers: int) -> int:
    if options.devices == ("none",):
        return 0
    if isinstance(options.n_gpu_layers, int):
        return min(options.n_gpu_layers, n_layers + 1) if n_layers else options.n_gpu_layers
    return n_layers + 1  # and the output layer


def _off_the_gpu(options: LoadOptions) -> str:
    return "cpu" if options.vision == "gpu" else options.vision


def _changed(options: LoadOptions, **changes: object) -> LoadOptions:
    return msgspec.structs.replace(options, **changes)
