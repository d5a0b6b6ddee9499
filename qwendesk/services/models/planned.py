"""How a file would run here, by the planner that decides at every load: what a label says is what a load does.

The planner tries its steps one after the other, 10 to 80 ms a file; a catalog has 450 files. So here the same steps
are tried by halving: in a row of steps that each move one more layer into RAM, the GPUs need less and less.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Plan, PlanKind, Prices, SpeedEstimate
from qwendesk.hardware.estimate import split_weights
from qwendesk.hardware.ladder import SHORTEST_CONTEXT, Start, steps
from qwendesk.hardware.planner import judge, price
from qwendesk.hardware.sketch import dimensions_of, sketch
from qwendesk.hub.catalog_schema import Model
from qwendesk.services.models.fitting import FitKind, FitLabel, Pc, estimated_mmproj

_KINDS: Mapping[PlanKind, FitKind] = {
    "vram": "vram",
    "some_experts_in_ram": "experts",
    "all_experts_in_ram": "experts",
    "layers_in_ram": "layers",
    "cpu": "cpu",
    "disk": "too_large",
}
_ASKED = LoadOptions(model="")
_SMALLEST = LoadOptions(
    model="",
    n_ctx=SHORTEST_CONTEXT,
    type_k="q8_0",
    type_v="q8_0",
    n_gpu_layers=0,
    n_cpu_moe=0,
    n_ubatch=512,
    vision="cpu",
    devices=("none",),
)
"""The least that a model can be loaded with, all of it in one memory: what "needs" means of one that is too large."""


@functools.lru_cache(maxsize=2048)
def planned(model: Model, n_bytes: int, mmproj_bytes: int, pc: Pc) -> tuple[FitLabel, SpeedEstimate | None]:
    """As `fit_of`, for a file of `model` of which only the size is known; remembered, as pictures go on and off."""
    mmproj = estimated_mmproj(mmproj_bytes) if mmproj_bytes else None
    return fit_of(sketched(model, n_bytes), mmproj, pc)


def sketched(model: Model, n_bytes: int, quant: str = "") -> ModelFacts:
    """Facts of a file of `model` with `n_bytes` that nobody has opened."""
    dimensions = dimensions_of(model.hyperparameters, model.params_b)
    return sketch(dimensions, model.architecture, n_bytes, quant=quant, name=model.id)


def fit_of(facts: ModelFacts, mmproj: ModelFacts | None, pc: Pc) -> tuple[FitLabel, SpeedEstimate | None]:
    """How `facts` with its picture file would run on `pc`, and the speed to expect; None where neither is known."""
    if not facts.block_count or not facts.embedding_length:
        return FitLabel(kind="unknown", with_pictures=mmproj is not None), None
    machine = machine_of(pc)
    plan = _first_that_fits(facts, mmproj, machine, pc)
    if plan is None:
        return _too_large(facts, mmproj, machine, pc), None
    return label_of_plan(plan, facts.block_count, pc, with_pictures=mmproj is not None), plan.speed


def machine_of(pc: Pc) -> Machine:
    """This PC when nothing else fills it: what it can run, whatever runs at the moment."""
    return Machine(
        devices=tuple(_empty(gpu) for gpu in pc.gpus),
        ram_total_bytes=pc.ram_bytes,
        ram_available_bytes=pc.ram_room_bytes,
        reserve_bytes=pc.reserve_bytes,
    )


def label_of_plan(plan: Plan, n_layers: int, pc: Pc, *, with_pictures: bool) -> FitLabel:
    """A plan that fits, in the words of a fit label."""
    kind, options, on_cpu = _KINDS[plan.kind], plan.options, 0
    if kind == "experts" and isinstance(options.n_cpu_moe, int):
        on_cpu = min(options.n_cpu_moe, n_layers)
    elif kind == "layers" and isinstance(options.n_gpu_layers, int):
        on_cpu = max(n_layers + 1 - options.n_gpu_layers, 0)
    return FitLabel(
        kind=kind,
        n_ctx=options.n_ctx,
        cache_type=options.type_k,
        gpu_bytes=sum(each.total_bytes for each in plan.prices.gpus),
        gpu_room_bytes=sum(each.budget_bytes or 0 for each in plan.prices.gpus),
        ram_bytes=plan.ram_bytes,
        ram_room_bytes=pc.ram_room_bytes,
        on_cpu=on_cpu,
        of_layers=n_layers,
        with_pictures=with_pictures,
    )


def _first_that_fits(facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, pc: Pc) -> Plan | None:
    """The plan that `hardware.planner.solve` finds, in fewer steps; None when nothing fits."""
    if facts.file_bytes > pc.vram_room_bytes + pc.ram_room_bytes:
        return None
    for has_gpu in (True, False) if machine.devices else (False,):
        asked = _ASKED if has_gpu or not machine.devices else msgspec.structs.replace(_ASKED, devices=("none",))
        start = Start(
            facts=facts,
            options=asked,
            expert_blocks=split_weights(facts, ()).expert_blocks,
            has_gpu=has_gpu,
            has_pictures=mmproj is not None,
        )
        for _, row in itertools.groupby(steps(start), key=_row):
            found = _by_halving(facts, mmproj, machine, tuple(row))
            if found is not None:
                return judge(facts, mmproj, machine, found)
    return None


def _row(options: LoadOptions) -> tuple[object, ...]:
    """What steps have in common that differ only in how much lies in RAM."""
    moves_experts = isinstance(options.n_cpu_moe, int) and options.n_cpu_moe > 0
    moves_layers = isinstance(options.n_gpu_layers, int)
    return options.n_ctx, options.type_k, options.type_v, options.vision, moves_experts, moves_layers


def _by_halving(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, row: Sequence[LoadOptions]
) -> LoadOptions | None:
    """The first step of `row` that fits. Each needs less of the GPUs and more RAM than the one before."""
    low, high = 0, len(row)
    prices: dict[int, Prices] = {}
    while low < high:
        middle = (low + high) // 2
        prices[middle] = price(facts, row[middle], machine, mmproj)
        if any(gpu.missing_bytes for gpu in prices[middle].gpus):
            low = middle + 1
        else:
            high = middle
    return row[low] if low < len(row) and prices[low].fits else None


def _too_large(facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, pc: Pc) -> FitLabel:
    least = price(facts, _SMALLEST, machine, mmproj).ram
    return FitLabel(
        kind="too_large",
        n_ctx=_SMALLEST.n_ctx,
        cache_type=_SMALLEST.type_k,
        gpu_room_bytes=pc.vram_room_bytes,
        ram_bytes=least.total_bytes,
        ram_room_bytes=pc.ram_room_bytes,
        of_layers=facts.block_count,
        with_pictures=mmproj is not None,
    )


def _empty(gpu: DeviceInfo) -> DeviceInfo:
    return DeviceInfo(gpu.name, gpu.description, gpu.kind, gpu.backend, gpu.total_bytes, gpu.total_bytes)
