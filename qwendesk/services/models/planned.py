"""What the planner, which decides at every load, says of a file that is not here yet: so that label and load agree.

It weighs every step of its ladder, some 10 to 80 ms a file, so only what is recommended is asked of it; `fit_label`
judges the rest.
"""

import functools
from collections.abc import Mapping

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Plan, PlanKind, SpeedEstimate
from qwendesk.hardware.planner import solve
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


@functools.lru_cache(maxsize=256)
def planned(model: Model, n_bytes: int, mmproj_bytes: int, pc: Pc) -> tuple[FitLabel, SpeedEstimate | None]:
    """The label of the plan for a file of `model` with its picture file, and the speed to expect. Takes a moment."""
    dimensions = dimensions_of(msgspec.structs.asdict(model.hyperparameters), model.params_b)
    facts = sketch(dimensions, model.architecture, n_bytes)
    mmproj = estimated_mmproj(mmproj_bytes) if mmproj_bytes else None
    plan = solve(facts, mmproj, machine_of(pc), LoadOptions(model=""))
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
    """A plan in the words of a fit label."""
    kind: FitKind = _KINDS[plan.kind] if plan.fits else "too_large"
    options = plan.options
    on_cpu = 0
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


def _empty(gpu: DeviceInfo) -> DeviceInfo:
    return DeviceInfo(gpu.name, gpu.description, gpu.kind, gpu.backend, gpu.total_bytes, gpu.total_bytes)
