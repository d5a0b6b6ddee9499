"""Moves experts off the GPUs that lack memory, for the spill remedies and for the retry after a failed load."""

from collections.abc import Collection, Iterator
from itertools import zip_longest

import msgspec

from qwendesk.core.options import LoadOptions
from qwendesk.hardware.expert_layers import cpu_expert_layers, with_cpu_expert_layers
from qwendesk.hardware.ladder import ModelShape, step_levels
from qwendesk.hardware.layer_split import runs_of_layers


def experts_off_gpus(
    options: LoadOptions, model: ModelShape, n_gpus: int, short: Collection[int]
) -> Iterator[LoadOptions]:
    """Yield options with the experts of one more layer in RAM each: layers of the GPUs in `short`, by their numbers.

    Which layers a GPU has is known if there are several GPUs and tensor_split is set, as in every plan for them. Else
    the layers are counted from the first, as n_cpu_moe does.
    """
    runs = runs_of_layers(options, model.layers, n_gpus)
    if not runs:
        yield from step_levels("experts", options, model)
        return
    in_ram = list(cpu_expert_layers(options, model.layers))
    left = [[layer for layer in runs[gpu] if layer not in in_ram] for gpu in short]
    load_mode = "auto" if options.load_mode == "auto" else "none"  # as in the ladder
    for layer in (layer for row in zip_longest(*left) for layer in row if layer is not None):
        in_ram.append(layer)
        yield msgspec.structs.replace(with_cpu_expert_layers(options, in_ram), load_mode=load_mode)
