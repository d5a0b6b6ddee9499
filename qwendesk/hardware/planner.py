"""Plans how to load a model on a machine. Pure functions; ladder.py decides the order of the configurations.

A plan uses no more of a GPU than its budget, min(total - reserve, free now + the engine's own - 512 MiB), and no more
RAM than is free. The first configuration that fits is taken, so one expert layer less on the CPU would not fit. In
memory that other programs need too, an automatic context is the longest that leaves some of it free (`leaves_room`).
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import DecidedOptions, LoadOptions, decided_options
from qwendesk.core.plan import MachineMemory, MemoryUse, Plan, PlanKind
from qwendesk.core.rope_scaling import with_rope_scaling
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.device_split import best_split, can_split
from qwendesk.hardware.ladder import (
    LadderInput,
    ModelShape,
    candidates,
    closer_fits,
    is_placed_by_hand,
    nearest_that_fits,
)
from qwendesk.hardware.layer_split import planned_gpus, shares_ram
from qwendesk.hardware.memory_estimate import memory_use
from qwendesk.hardware.model_memory import split_weights
from qwendesk.hardware.plan_text import explanations, nearest_text, warning
from qwendesk.hardware.speed_estimate import estimate_speed

# A model in RAM that leaves less of it free than this, or than this share of it, makes other programs slow. With a
# graphics card, a shorter context frees VRAM alone, so more of the RAM has to be free from the start.
_COMFORTABLE_RAM_BYTES, _COMFORTABLE_SHARE, _SHARE_BESIDE_A_CARD = 2 * GIB, 1 / 16, 1 / 8
# An automatic context isn't shortened below this to leave RAM free.
LEAST_ROOMY_CONTEXT = 32_768
# Up to this size, one thread is fastest, because several threads would mostly wait for each other.
#
# Measured with the demo model (3 MB): 5,000 tok/s with one thread on an idle PC, a hundredth of it with two threads on
# a busy PC.
TINY_MODEL_BYTES = 64 * MIB


def best_plan(facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, options: LoadOptions) -> Plan:
    """Return the best plan. It keeps the options that the user set, and chooses the others.

    If nothing fits, `fits` is False, and the plan is the one that lacks the least memory. If the GPUs can't help at
    all, `devices` becomes "none" and everything is in RAM; GPUs that share the RAM spend the headroom first. Raises
    re.error if a placement pattern is not a valid regular expression.
    """
    mmproj = None if options.vision == "off" else mmproj
    gpus = planned_gpus(machine, options)
    if options.n_gpu_layers == "auto" and any(gpu.budget_bytes is None for gpu in gpus):
        machine = msgspec.structs.replace(
            machine,
            devices=tuple(
                device
                for device in machine.devices
                if device.name not in {gpu.device.name for gpu in gpus if gpu.budget_bytes is None}
            ),
        )
        gpus = tuple(gpu for gpu in gpus if gpu.budget_bytes is not None)
    search = _Search(facts, mmproj, machine, options)
    found = search.first_that_fits(_ladder(facts, mmproj, machine, options, has_gpu=bool(gpus)))
    is_by_hand = is_placed_by_hand(options)
    if found is None and gpus and (is_by_hand or shares_ram(gpus)):
        plan = _without_headroom(facts, mmproj, machine, options)
        if plan.fits:
            return plan
        nearest = _nearest(facts, mmproj, machine, options) if is_by_hand else None
        if nearest is not None:
            return msgspec.structs.replace(plan, nearest=nearest, why=(*plan.why, nearest_text(options, nearest)))
    if found is None and gpus and options.n_gpu_layers == "auto" and not options.devices:
        without_gpu = msgspec.structs.replace(options, devices=("none",))
        found = search.first_that_fits(_ladder(facts, mmproj, machine, without_gpu, has_gpu=False))
    return found or search.nearest()


def _without_headroom(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, requested: LoadOptions
) -> Plan:
    """Return a plan on the GPUs that spends the headroom. If that isn't enough, it says what is missing."""
    search = _Search(facts, mmproj, machine, requested)
    for generous, options in closer_fits(machine, requested):
        search = _Search(facts, mmproj, generous, requested)
        found = search.first_that_fits(_ladder(facts, mmproj, generous, options, has_gpu=True))
        if found is not None:
            return found
    return search.nearest()


def _nearest(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, requested: LoadOptions
) -> LoadOptions | None:
    """Return the options of the user with the nearest value that fits; None if none does."""

    def fits(options: LoadOptions) -> bool:
        *_, (generous, smallest) = closer_fits(machine, options)
        ladder = _ladder(facts, mmproj, generous, smallest, has_gpu=True)
        return _Search(facts, mmproj, generous, options).first_that_fits(ladder) is not None

    expert_layers = split_weights(facts).expert_layers
    shape = ModelShape(facts.block_count - facts.nextn_layers, expert_layers, has_vision=mmproj is not None)
    return nearest_that_fits(requested, shape, fits)


def fixed_plan(facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, options: LoadOptions) -> Plan:
    """Return the plan for fixed options: calculate their memory, explain them, and check whether they fit."""
    memory = memory_use(facts, options, machine, mmproj)
    return _plan(facts, mmproj, machine, options, options, memory)


def _ladder(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, options: LoadOptions, *, has_gpu: bool
) -> Iterable[LoadOptions]:
    return candidates(
        LadderInput(
            facts=facts,
            options=options,
            expert_layers=split_weights(facts, options.override_tensor).expert_layers,
            has_gpu=has_gpu,
            has_vision=mmproj is not None,
            is_split=can_split(machine, options),
            is_unified=has_gpu and shares_ram(planned_gpus(machine, options)),
        )
    )


def placed(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, requested: LoadOptions, options: LoadOptions
) -> tuple[LoadOptions, MemoryUse]:
    """Return a configuration of the ladder with its layers dealt to the GPUs, and its memory.

    If no dealing fits on several GPUs, the layers are dealt as llama.cpp does it by default.
    """
    if can_split(machine, options):
        may_move_experts = requested.n_cpu_moe == "auto" and options.n_cpu_moe not in ("auto", 0)
        options = best_split(facts, mmproj, machine, options, may_move_experts=may_move_experts) or options
    return options, memory_use(facts, options, machine, mmproj)


class _Search:
    """Calculates the memory of configurations until one fits, and remembers the one that lacks the least."""

    def __init__(
        self, facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, requested: LoadOptions
    ) -> None:
        self._facts, self._mmproj, self._machine, self._asked = facts, mmproj, machine, requested
        self._nearest: tuple[tuple[bool, int], LoadOptions, MemoryUse] | None = None

    def first_that_fits(self, ladder: Iterable[LoadOptions]) -> Plan | None:
        """Return the first plan that fits and leaves room, else the first that fits; None if none does."""
        too_much: tuple[object, ...] | None = None
        tight: tuple[LoadOptions, MemoryUse] | None = None
        for candidate in ladder:
            if tight is not None and candidate.n_ctx < LEAST_ROOMY_CONTEXT:
                break
            if _memory_class(candidate) == too_much:
                continue  # moving a part of the model to the CPU frees nothing of the memory that both share
            options, memory = placed(self._facts, self._mmproj, self._machine, self._asked, candidate)
            missing = missing_bytes(memory, options)
            if not missing:
                if leaves_room(self._asked, self._machine, memory):
                    return self._plan(options, memory)
                tight = tight or (options, memory)
                continue
            if memory.is_unified and memory.ram.missing_bytes and options.load_mode != "mmap":
                too_much = _memory_class(candidate)
            rank = (any(not _within_limits(gpu.total_bytes, gpu.limit_bytes) for gpu in memory.gpus), missing)
            if self._nearest is None or rank < self._nearest[0]:
                self._nearest = (rank, options, memory)
        return self._plan(*tight) if tight is not None else None

    def nearest(self) -> Plan:
        assert self._nearest is not None, "a ladder has at least one step"
        return self._plan(*self._nearest[1:])

    def _plan(self, options: LoadOptions, memory: MemoryUse) -> Plan:
        return _plan(self._facts, self._mmproj, self._machine, self._asked, options, memory)


def comfortable_ram_bytes(ram_total_bytes: int, *, has_card: bool) -> int:
    """Return what should stay free of a PC's RAM for other programs."""
    share = _SHARE_BESIDE_A_CARD if has_card else _COMFORTABLE_SHARE
    return min(_COMFORTABLE_RAM_BYTES, int(ram_total_bytes * share))


def leaves_room(requested: LoadOptions, machine: MachineMemory, memory: MemoryUse) -> bool:
    """Return False if the plan leaves too little RAM for other programs, and a shorter context may leave more.

    That is so where the chat's memory is in RAM. A context that the user asked for isn't shortened.
    """
    is_wanted = requested.n_ctx or requested.aim == "long_context" or requested.load_mode == "mmap"
    if is_wanted or (memory.gpus and not memory.is_unified) or memory.ram.budget_bytes is None:
        return True
    free_bytes = memory.ram.budget_bytes - memory.ram.total_bytes
    return free_bytes >= comfortable_ram_bytes(machine.ram_total_bytes, has_card=False)


def _memory_class(options: LoadOptions) -> tuple[object, ...]:
    """Return what decides how much memory GPU and CPU need together: all that the steps change but the placement."""
    return options.n_ctx, options.type_k, options.type_v


def missing_bytes(memory: MemoryUse, options: LoadOptions) -> int:
    """Return the bytes beyond the budgets of all devices. With the load mode mmap, weights may stay on disk."""
    on_disk = memory.ram_weights_bytes if options.load_mode == "mmap" else 0
    ram = max(memory.ram.total_bytes - on_disk - (memory.ram.budget_bytes or 0), 0)
    return ram + sum(gpu.missing_bytes for gpu in memory.gpus)


def could_load(plan: Plan, requested: LoadOptions) -> bool:
    """Return whether a plan that exceeds its budget can load anyway, because it fits into all that is free."""
    on_disk = plan.memory.ram_weights_bytes if requested.load_mode == "mmap" else 0
    ram = plan.memory.ram
    return all(_within_limits(gpu.total_bytes, gpu.limit_bytes) for gpu in plan.memory.gpus) and _within_limits(
        ram.total_bytes - on_disk, ram.limit_bytes
    )


def _within_limits(n_bytes: int, limit_bytes: int | None) -> bool:
    return limit_bytes is None or n_bytes <= limit_bytes


def _plan(
    facts: ModelFacts,
    mmproj: ModelFacts | None,
    machine: MachineMemory,
    requested: LoadOptions,
    options: LoadOptions,
    memory: MemoryUse,
) -> Plan:
    kind = _kind(facts, options, memory)
    decided = _decided(facts, machine, options, memory)
    fits = not missing_bytes(memory, requested)
    return Plan(
        fits=fits,
        options=decided,
        memory=memory,
        kind=kind,
        speed=estimate_speed(facts, decided, memory, machine),
        why=explanations(
            facts,
            mmproj,
            requested,
            decided,
            memory,
            fits=fits,
            spends_headroom=machine.spends_headroom,
            drive=machine.drive,
        ),
        label=warning(kind, memory, fits=fits, drive=machine.drive),
    )


def _kind(facts: ModelFacts, options: LoadOptions, memory: MemoryUse) -> PlanKind:
    ram = memory.ram
    if ram.budget_bytes is not None and ram.total_bytes > ram.budget_bytes and options.load_mode == "mmap":
        return "disk"
    if not memory.gpus or options.n_gpu_layers == 0:
        return "cpu"
    if isinstance(options.n_gpu_layers, int) and options.n_gpu_layers < facts.block_count:
        return "layers_in_ram"
    if not memory.experts_in_ram:
        return "vram"
    n_expert_layers = split_weights(facts).expert_layers
    return "all_experts_in_ram" if memory.cpu_expert_layers >= n_expert_layers else "some_experts_in_ram"


def _decided(facts: ModelFacts, machine: MachineMemory, options: LoadOptions, memory: MemoryUse) -> DecidedOptions:
    """Return `options` with threads, load mode, YaRN and expert layers decided.

    Experts in RAM beside a GPU are copied, others mapped. For an integrated GPU everything is copied: it can't use a
    mapped file, which would fill the memory that both share a second time during the load. llama.cpp checks every
    tensor against a pattern for each expert layer on the CPU, so there are no more of them than layers.
    """
    load_mode = options.load_mode
    if load_mode == "auto":
        is_mapped = all(gpu.device.supports_mmap for gpu in planned_gpus(machine, options))
        is_copied = memory.gpus and options.n_gpu_layers != 0 and (memory.experts_in_ram or not is_mapped)
        load_mode = "none" if is_copied else "mmap"
    is_tiny = facts.file_bytes <= TINY_MODEL_BYTES
    n_threads = options.n_threads or (1 if is_tiny else machine.physical_cores)
    changes: dict[str, Any] = {"load_mode": load_mode, "n_threads": n_threads}
    if isinstance(options.n_cpu_moe, int) and facts.block_count:
        changes["n_cpu_moe"] = min(options.n_cpu_moe, facts.block_count)
    return decided_options(with_rope_scaling(options, facts), **changes)
