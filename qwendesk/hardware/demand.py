"""What one way of placing a model asks of each GPU and of RAM."""

from bisect import bisect_right
from itertools import accumulate

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import MIB
from qwendesk.hardware.estimate import (
    Weights,
    device_compute_bytes,
    host_compute_bytes,
    kv_bytes,
    recurrent_bytes,
    ubatch,
    vision_bytes,
)
from qwendesk.hardware.sharing import shares_ram, usable_gpus

__all__ = ["Demand", "Placement", "Situation", "demand", "usable_gpus"]

WORKER_BYTES = 256 * MIB
"""RAM of the worker process beside the model: Python with the engine library measured 41 MiB, a vocabulary of
150,000 tokens with its merges about 60 MiB more; rounded up generously."""


class Placement(msgspec.Struct, frozen=True):
    """One way to place a model. `gpu_layers` counts from the back, the output being the last layer."""

    n_ctx: int
    gpu_layers: int
    cpu_moe: int


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the fit looks at. `gpus` are the devices that may take layers, in the engine's order."""

    facts: ModelFacts
    mmproj: ModelFacts | None
    options: LoadOptions
    weights: Weights
    gpus: tuple[DeviceInfo, ...]


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes asked of each GPU (same order as the situation's) and of RAM."""

    gpus: tuple[int, ...]
    ram_weights: int
    """Weights in RAM: what mmap may leave on disk."""
    ram_other: int
    experts_in_ram: bool


def demand(situation: Situation, placement: Placement) -> Demand:
    """The bytes `placement` needs where, by the formulas of `hardware.estimate`."""
    facts, options, weights = situation.facts, situation.options, situation.weights
    n_layers = len(weights.blocks)
    first_on_gpu = n_layers + 1 - placement.gpu_layers if situation.gpus else n_layers + 1
    on_gpus = _Shares(situation, first_on_gpu, placement.gpu_layers)
    kv = kv_bytes(facts, placement.n_ctx, options.type_k, options.type_v) // max(facts.attention_layers, 1)
    recurrent = recurrent_bytes(facts) // max(facts.recurrent_layers, 1)
    ram_weights, ram_other, experts_in_ram = weights.in_ram, WORKER_BYTES, False
    for index, block in enumerate(weights.blocks):
        on_gpu = index >= first_on_gpu
        state = kv if block.has_kv else recurrent if index < n_layers - facts.nextn_layers else 0
        experts_on_gpu = on_gpu and index >= placement.cpu_moe
        on_gpus.add(index, (block.rest if on_gpu else 0) + (block.experts if experts_on_gpu else 0))
        on_gpus.add(index, state if on_gpu and options.offload_kqv else 0)
        ram_weights += (0 if on_gpu else block.rest) + (0 if experts_on_gpu else block.experts)
        ram_other += 0 if on_gpu and options.offload_kqv else state
        experts_in_ram |= bool(block.experts) and not experts_on_gpu
    on_gpus.add(n_layers, weights.output if n_layers >= first_on_gpu else 0)
    ram_weights += 0 if n_layers >= first_on_gpu else weights.output

    compute = device_compute_bytes(facts, placement.n_ctx, options)
    moved = weights.largest_expert_tensor if options.op_offload and experts_in_ram else 0
    on_gpus.add_to_each(compute + moved)
    ram_other += host_compute_bytes(facts, placement.n_ctx, ubatch(options))
    ram_other += compute if first_on_gpu > 0 else 0
    vision = vision_bytes(situation.mmproj)
    if situation.gpus and options.vision in ("auto", "gpu"):
        on_gpus.add_to_first(vision)
    else:
        ram_other += vision
    ram_other += sum(n_bytes for gpu, n_bytes in zip(situation.gpus, on_gpus.totals, strict=True) if shares_ram(gpu))
    return Demand(
        gpus=tuple(on_gpus.totals), ram_weights=ram_weights, ram_other=ram_other, experts_in_ram=experts_in_ram
    )


class _Shares:
    """Adds up bytes for each GPU, dealing layers out as llama.cpp does: by free memory, or by tensor_split."""

    def __init__(self, situation: Situation, first_layer: int, n_layers: int) -> None:
        gpus, options = situation.gpus, situation.options
        stated = list(options.tensor_split[: len(gpus)]) + [0.0] * (len(gpus) - len(options.tensor_split))
        free = [float(gpu.free_bytes or gpu.total_bytes or 0) for gpu in gpus]
        parts = stated if any(stated) else free if any(free) else [1.0] * len(gpus)
        self._parts = [part / sum(parts) for part in parts]
        self._ends = list(accumulate(self._parts))
        self._first, self._count = first_layer, max(n_layers, 1)
        self._whole_layers = options.split_mode in ("layer", "none")
        self.totals = [0] * len(gpus)

    def add(self, layer: int, n_bytes: int) -> None:
        if not n_bytes:
            return
        if self._whole_layers:
            gpu = bisect_right(self._ends, (layer - self._first) / self._count)
            self.totals[min(gpu, len(self.totals) - 1)] += n_bytes
            return
        for gpu, part in enumerate(self._parts):
            self.totals[gpu] += round(n_bytes * part)

    def add_to_each(self, n_bytes: int) -> None:
        self.totals = [total + n_bytes for total in self.totals]

    def add_to_first(self, n_bytes: int) -> None:
        self.totals[0] += n_bytes
