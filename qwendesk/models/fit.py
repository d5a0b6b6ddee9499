"""Works out how a model file would run on this PC, with the same planner that decides how a model is loaded.

The planner tries its steps one after the other, which takes 10 to 80 ms per file; a catalog has 450 files. In a run of
steps each one moves one more layer into RAM, so the video memory needed only decreases. This module therefore searches
such runs by bisection.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DriveKind, MachineMemory, MemoryUse, Plan, PlanKind, SpeedEstimate
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.device_split import can_split
from qwendesk.hardware.engine_gpus import carve_outs
from qwendesk.hardware.estimated_facts import dimensions_of, estimate_facts
from qwendesk.hardware.ladder import SHORTEST_CONTEXT, LadderInput, candidates, closer_fits
from qwendesk.hardware.layer_split import planned_gpus, usable_gpus
from qwendesk.hardware.memory_estimate import memory_use
from qwendesk.hardware.model_memory import lazy_table_bytes, split_weights
from qwendesk.hardware.planner import LEAST_ROOMY_CONTEXT, comfortable_ram_bytes, fixed_plan, leaves_room, placed
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hub.catalog_schema import CatalogModel

# Where the weights are, from fastest to slowest: in video memory, some expert layers in RAM, some layers in RAM, all in
# RAM; or the file is too large.
FitKind = Literal["vram", "experts", "layers", "cpu", "too_large", "unknown"]

# RAM left for the system, a browser and a game: this much, or this share if RAM is small. Assumed, not measured.
_OTHER_RAM_BYTES, _OTHER_RAM_SHARE = 5 * GIB, 0.4
# A context of this many tokens counts as long.
LONG_CONTEXT = 65_536


class Pc(msgspec.Struct, frozen=True, kw_only=True):
    """The hardware of this PC that decides what runs. Sizes in bytes."""

    gpus: tuple[DeviceInfo, ...] = ()
    """The GPUs that the engine can use; empty if the CPU does everything."""
    ram_bytes: int
    reserve_bytes: int = GIB
    """Left free on each GPU for other programs."""
    is_probed: bool = True
    """False if the engine could not list its devices; `problem` says why."""
    problem: str = ""
    cpu: str = ""
    gpu_factor: float = 1.0
    """By how much the GPUs were faster than estimated, as measured on this PC."""
    carve_outs: tuple[tuple[str, int], ...] = ()
    """Name of an integrated GPU and the bytes that the firmware sets aside for it, which are not part of the RAM."""
    drive: DriveKind = ""
    """The drive of the folder that models are downloaded to."""
    ram_bandwidth: tuple[float, float] | None = None
    """As in MachineMemory."""

    @property
    def is_unified(self) -> bool:
        """True if there are GPUs and all of them use the RAM as their memory."""
        return bool(self.gpus) and all(gpu.shares_ram for gpu in self.gpus)

    @property
    def vram_bytes(self) -> int:
        """Video memory of all GPUs, including the reserve."""
        return sum(gpu.total_bytes or 0 for gpu in self.gpus)

    @property
    def shared_bytes(self) -> int:
        """The memory of a PC whose GPU uses the RAM."""
        return self.ram_bytes + sum(n_bytes for _, n_bytes in self.carve_outs)

    @property
    def vram_room_bytes(self) -> int:
        """What models may use of the GPUs. If they share the RAM, it is a part of that, not more memory."""
        gpus = planned_gpus(machine_memory(self), _AUTO_OPTIONS)
        return sum(gpu.budget_bytes or 0 for gpu in gpus)

    @property
    def ram_room_bytes(self) -> int:
        return self.ram_bytes - min(_OTHER_RAM_BYTES, int(self.ram_bytes * _OTHER_RAM_SHARE))

    @property
    def room_bytes(self) -> int:
        """What models may use of the GPUs and of the RAM together."""
        if self.is_unified:
            return self.ram_room_bytes + sum(n_bytes for _, n_bytes in self.carve_outs)
        return self.vram_room_bytes + self.ram_room_bytes


class FitLabel(msgspec.Struct, frozen=True, kw_only=True):
    """How a file, with its vision projector if it has one, would run on this PC. Sizes in bytes."""

    kind: FitKind
    n_ctx: int = 0
    cache_type: str = "f16"
    gpu_bytes: int = 0
    gpu_room_bytes: int = 0
    ram_bytes: int = 0
    ram_room_bytes: int = 0
    comfortable_ram_bytes: int = 0
    """Bytes of `ram_room_bytes` that should stay free."""
    on_cpu: int = 0
    """Layers in RAM; expert layers if `kind` is "experts"."""
    of_layers: int = 0
    with_pictures: bool = False
    has_vision_on_cpu: bool = False
    lazy_bytes: int = 0
    """A table that stays on the drive and is read row by row; not part of `ram_bytes`."""
    drive: DriveKind = ""
    is_unified: bool = False
    """True if the GPU uses the RAM. `ram_bytes` then includes `gpu_bytes`."""

    @property
    def fits(self) -> bool:
        return self.kind not in ("too_large", "unknown")

    @property
    def free_ram_bytes(self) -> int:
        """What is left of the RAM for models."""
        return self.ram_room_bytes - self.ram_bytes

    @property
    def is_tight(self) -> bool:
        """Return whether it fits, but leaves so little RAM that other programs get slow."""
        uses_ram = self.kind in _KINDS_IN_RAM or (self.kind == "vram" and self.is_unified)
        return uses_ram and self.free_ram_bytes < self.comfortable_ram_bytes

    @property
    def fills_memory(self) -> bool:
        """Return whether it fits, but leaves other programs almost no RAM."""
        return self.is_tight and self.free_ram_bytes < _NO_RAM_BYTES

    @property
    def rank(self) -> int:
        """Speed class, for sorting: 0 is the fastest."""
        return _RANKS[self.kind]


_NO_RAM_BYTES = 512 * MIB
_KINDS_IN_RAM = frozenset({"experts", "layers", "cpu"})
_RANKS: Mapping[FitKind, int] = {"vram": 0, "experts": 1, "layers": 2, "cpu": 2, "too_large": 3, "unknown": 3}
_KINDS: Mapping[PlanKind, FitKind] = {
    "vram": "vram",
    "some_experts_in_ram": "experts",
    "all_experts_in_ram": "experts",
    "layers_in_ram": "layers",
    "cpu": "cpu",
    "disk": "too_large",
}
_AUTO_OPTIONS = LoadOptions(model="")
# The options with the smallest memory use; "needs" of a file that is too large is computed with them.
_SMALLEST_OPTIONS = LoadOptions(
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


def make_pc(
    devices: tuple[DeviceInfo, ...],
    ram_bytes: int,
    reserve_bytes: int,
    problem: str = "",
    gpu_factor: float = 1.0,
    readings: Sequence[GpuReading] = (),
    drive: DriveKind = "",
    ram_bandwidth: tuple[float, float] | None = None,
) -> Pc:
    """Return this PC as the engine sees it. GPUs of unknown memory size are left out."""
    gpus = tuple(gpu for gpu in usable_gpus(devices, LoadOptions(model="")) if gpu.total_bytes)
    cpu = next((device.description.strip() for device in devices if device.kind == "cpu"), "")
    return Pc(
        gpus=gpus,
        ram_bytes=ram_bytes,
        reserve_bytes=reserve_bytes,
        is_probed=not problem,
        problem=problem,
        cpu=cpu,
        gpu_factor=gpu_factor,
        carve_outs=carve_outs(gpus, readings),
        drive=drive,
        ram_bandwidth=ram_bandwidth,
    )


def estimate_mmproj(n_bytes: int) -> ModelFacts:
    """Return facts of a vision projector of which only the size is known."""
    tensors = (TensorFacts("v.patch_embd.weight", "", (), n_bytes),)
    return ModelFacts(path="", file_bytes=n_bytes, kind="mmproj", architecture="clip", tensors=tensors)


@functools.lru_cache(maxsize=2048)
def estimate_fit(model: CatalogModel, n_bytes: int, mmproj_bytes: int, pc: Pc) -> tuple[FitLabel, SpeedEstimate | None]:
    """Return `plan_fit` of a file of `model` of which only the size is known. Results are cached."""
    mmproj = estimate_mmproj(mmproj_bytes) if mmproj_bytes else None
    return plan_fit(estimate_model(model, n_bytes), mmproj, pc)


@functools.lru_cache(maxsize=512)
def estimate_plan(model: CatalogModel, n_bytes: int, mmproj_bytes: int, pc: Pc, options: LoadOptions) -> Plan | None:
    """Return the plan for a file of `model` of which only the size is known; None if it doesn't fit. Cached."""
    mmproj = estimate_mmproj(mmproj_bytes) if mmproj_bytes else None
    return _first_fitting_plan(estimate_model(model, n_bytes), mmproj, machine_memory(pc), pc, options)


def estimate_model(model: CatalogModel, n_bytes: int, quant: str = "") -> ModelFacts:
    """Return facts of a file of `model` with `n_bytes` whose header isn't known."""
    dimensions = dimensions_of(model.hyperparameters, model.params_b)
    return estimate_facts(dimensions, model.architecture, n_bytes, quant=quant, name=model.id)


def plan_fit(facts: ModelFacts, mmproj: ModelFacts | None, pc: Pc) -> tuple[FitLabel, SpeedEstimate | None]:
    """Return how the model would run on `pc`, and the expected speed, which is None if unknown."""
    if not facts.block_count or not facts.embedding_length:
        return FitLabel(kind="unknown", with_pictures=mmproj is not None), None
    machine = machine_memory(pc)
    plan = _first_fitting_plan(facts, mmproj, machine, pc)
    if plan is None:
        return _too_large_label(facts, mmproj, machine, pc), None
    return fit_label(plan, facts.block_count, pc, with_pictures=mmproj is not None), plan.speed


def machine_memory(pc: Pc) -> MachineMemory:
    """Return the memory of this PC while no other program uses video memory."""
    return MachineMemory(
        devices=tuple(_without_usage(gpu) for gpu in pc.gpus),
        ram_total_bytes=pc.ram_bytes,
        ram_available_bytes=pc.ram_room_bytes,
        reserve_bytes=pc.reserve_bytes,
        gpu_factor=pc.gpu_factor,
        carve_outs=pc.carve_outs,
        drive=pc.drive,
        ram_bandwidth=pc.ram_bandwidth,
    )


def fit_label(plan: Plan, n_layers: int, pc: Pc, *, with_pictures: bool) -> FitLabel:
    """Return the label of a plan that fits."""
    kind, options, on_cpu = _KINDS[plan.kind], plan.options, 0
    if kind == "experts":
        on_cpu = plan.memory.cpu_expert_layers
    elif kind == "layers" and isinstance(options.n_gpu_layers, int):
        on_cpu = max(n_layers + 1 - options.n_gpu_layers, 0)
    return FitLabel(
        kind=kind,
        n_ctx=options.n_ctx,
        cache_type=options.type_k,
        gpu_bytes=sum(each.total_bytes for each in plan.memory.gpus),
        gpu_room_bytes=sum(each.budget_bytes or 0 for each in plan.memory.gpus),
        ram_bytes=plan.ram_bytes,
        ram_room_bytes=pc.ram_room_bytes,
        comfortable_ram_bytes=comfortable_ram_bytes(pc.ram_bytes, has_card=kind in ("experts", "layers")),
        on_cpu=on_cpu,
        of_layers=n_layers,
        with_pictures=with_pictures,
        has_vision_on_cpu=with_pictures and bool(plan.memory.gpus) and options.vision == "cpu",
        lazy_bytes=plan.memory.lazy_bytes,
        drive=pc.drive,
        is_unified=plan.memory.is_unified,
    )


def _first_fitting_plan(
    facts: ModelFacts,
    mmproj: ModelFacts | None,
    machine: MachineMemory,
    pc: Pc,
    options: LoadOptions = _AUTO_OPTIONS,
) -> Plan | None:
    """Return the plan that `hardware.planner.best_plan` finds, in fewer steps; None if nothing fits."""
    if facts.file_bytes - lazy_table_bytes(facts) > pc.room_bytes:
        return None
    for usable, asked in _attempts(machine, options):
        has_gpu = bool(usable.devices) and asked.devices != ("none",)
        start = LadderInput(
            facts=facts,
            options=asked,
            expert_layers=split_weights(facts, ()).expert_layers,
            has_gpu=has_gpu,
            has_vision=mmproj is not None,
            is_split=can_split(usable, asked),
            is_unified=has_gpu and usable.is_unified,
        )
        tight: Plan | None = None
        for _, run in itertools.groupby(candidates(start), key=_run_key):
            steps = tuple(run)
            if tight is not None and steps[0].n_ctx < LEAST_ROOMY_CONTEXT:
                break
            found = _bisect(facts, mmproj, usable, asked, steps)
            plan = fixed_plan(facts, mmproj, usable, found) if found is not None else None
            if plan is not None and leaves_room(asked, usable, plan.memory):
                return plan
            tight = tight or plan
        if tight is not None:
            return tight
    return None


def _attempts(machine: MachineMemory, options: LoadOptions) -> Iterator[tuple[MachineMemory, LoadOptions]]:
    """Yield what `best_plan` of the planner tries: the GPUs, with the headroom if they share the RAM, then the CPU."""
    yield machine, options
    if machine.is_unified:
        yield from closer_fits(machine, options)
    if machine.devices:
        yield machine, msgspec.structs.replace(options, devices=("none",))


def _run_key(options: LoadOptions) -> tuple[object, ...]:
    """Return what the steps of one run have in common. They differ only in how many layers are in RAM."""
    moves_experts = isinstance(options.n_cpu_moe, int) and options.n_cpu_moe > 0
    moves_layers = isinstance(options.n_gpu_layers, int)
    return options.n_ctx, options.type_k, options.type_v, options.vision, moves_experts, moves_layers


def _bisect(
    facts: ModelFacts,
    mmproj: ModelFacts | None,
    machine: MachineMemory,
    requested: LoadOptions,
    run: Sequence[LoadOptions],
) -> LoadOptions | None:
    """Return the first step of `run` that fits. Each needs less video memory and more RAM than the one before."""
    low, high = 0, len(run)
    found: dict[int, tuple[LoadOptions, MemoryUse]] = {}
    while low < high:
        middle = (low + high) // 2
        found[middle] = placed(facts, mmproj, machine, requested, run[middle])
        if any(gpu.missing_bytes for gpu in found[middle][1].gpus):
            low = middle + 1
        else:
            high = middle
    return found[low][0] if low < len(run) and found[low][1].fits else None


def _too_large_label(facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, pc: Pc) -> FitLabel:
    least = memory_use(facts, _SMALLEST_OPTIONS, machine, mmproj).ram
    return FitLabel(
        kind="too_large",
        n_ctx=_SMALLEST_OPTIONS.n_ctx,
        cache_type=_SMALLEST_OPTIONS.type_k,
        gpu_room_bytes=pc.vram_room_bytes,
        ram_bytes=least.total_bytes,
        ram_room_bytes=pc.ram_room_bytes,
        of_layers=facts.block_count,
        with_pictures=mmproj is not None,
        is_unified=pc.is_unified,
    )


def _without_usage(gpu: DeviceInfo) -> DeviceInfo:
    return DeviceInfo(gpu.name, gpu.description, gpu.kind, gpu.backend, gpu.total_bytes, gpu.total_bytes)
