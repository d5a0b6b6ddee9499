"""What is done for a placement that the user set by hand, such as a number of expert layers, if it doesn't fit.

The planner keeps the values that the user set. If they miss by little, it spends the headroom and makes batches
smaller. If that isn't enough, it says what is missing and offers the nearest value that fits.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

import msgspec

from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.hardware.ladder import ModelShape, layers_on_gpu

# Evaluation batches that are tried if the user set none. Smaller ones save little more.
_SMALLER_BATCHES = (512, 256)


def is_placed_by_hand(options: LoadOptions) -> bool:
    """Return True if the user set how the model is placed, and not that no GPU is used."""
    is_set = options.n_cpu_moe != "auto" or options.n_gpu_layers != "auto" or bool(options.tensor_split)
    return is_set and options.n_gpu_layers != 0


def are_experts_placed_by_hand(options: LoadOptions, model: ModelShape) -> bool:
    """Return True if the user set of how many layers the experts are in RAM, and the model has experts."""
    return options.n_cpu_moe != "auto" and model.expert_layers > 0


def closer_fits(machine: MachineMemory, options: LoadOptions) -> Iterator[tuple[MachineMemory, LoadOptions]]:
    """Yield what to try if `options` don't fit: with the headroom spent, then with smaller and smaller batches too."""
    machine = msgspec.structs.replace(machine, spends_headroom=True)
    yield machine, options
    for n_ubatch in _SMALLER_BATCHES if options.n_ubatch == "auto" else ():
        yield machine, msgspec.structs.replace(options, n_ubatch=n_ubatch)


def nearest_that_fits(
    options: LoadOptions, model: ModelShape, fits: Callable[[LoadOptions], bool]
) -> LoadOptions | None:
    """Return `options` with one value changed as little as possible so that it fits; None if no value does."""
    if are_experts_placed_by_hand(options, model):
        in_ram = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
        more = [msgspec.structs.replace(options, n_cpu_moe=n) for n in range(in_ram + 1, model.expert_layers + 1)]
        if found := _first(more, fits):
            return found
    if options.n_gpu_layers != "auto":
        on_gpu = layers_on_gpu(options, model)
        fewer = [msgspec.structs.replace(options, n_gpu_layers=n) for n in range(on_gpu - 1, 0, -1)]
        if found := _first(fewer, fits):
            return found
    return _first([msgspec.structs.replace(options, tensor_split=())], fits) if options.tensor_split else None


def _first(values: Sequence[LoadOptions], fits: Callable[[LoadOptions], bool]) -> LoadOptions | None:
    """Return the first that fits. Each needs less video memory than the one before."""
    at = bisect_left(values, True, key=fits)
    return values[at] if at < len(values) else None
