"""Makes plans for models on disk with numbers from an engine dry run in place of estimates.

A dry run takes about a second, so it is for a plan that is about to be used, not for every move of a slider.
"""

from collections.abc import Awaitable, Callable

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import DevicePlan, MachineMemory, Plan, shared_bytes
from qwendesk.core.translation import mark, tr
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.protocol import Allocation
from qwendesk.engines.load_decision import plan_of
from qwendesk.hardware.planner import missing_bytes

Ask = Callable[[DecidedOptions], Awaitable[Estimated]]
# How many plans are made at most: if the engine's numbers don't fit, the next plan allows for the missing bytes.
_MOST_ROUNDS = 3

_ALL_BUT_VISION = mark(
    "Weights, caches, states and buffers are the engine's own numbers. The vision encoder and the driver's share are "
    "estimates."
)
_ALL_BUT_DRIVER = mark(
    "All numbers are the engine's own, except for the share of the driver and the program, which is an estimate."
)
_STATES_AND_BUFFERS = mark("States and buffers are the engine's own numbers. Everything else is an estimate.")


async def exact_plan(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, options: LoadOptions, ask: Ask = ask_engine
) -> Plan | LoadFailure:
    """Return the plan for `options` with the engine's numbers and `source` "engine".

    If the engine has no numbers, return the estimate, and its `accuracy` says why.
    """
    lacking: dict[str, int] = {}
    for rounds_left in reversed(range(_MOST_ROUNDS)):
        plan = plan_of(facts, mmproj, _with_less(machine, lacking), options)
        if isinstance(plan, LoadFailure):
            return plan
        answer = await ask(plan.options)
        if answer.problem:
            estimates = tr("These are estimates: the engine has no exact numbers. {0}", answer.problem)
            return msgspec.structs.replace(plan, accuracy=estimates)
        allocations = _without_table(plan, answer.allocations)
        exact = with_engine_numbers(plan, allocations, options, lacking, with_head=not plan.options.draft_model)
        over = _missing(exact)
        if not over or not plan.fits or not rounds_left:
            return exact
        lacking = {name: lacking.get(name, 0) + over.get(name, 0) for name in {*lacking, *over}}
    raise AssertionError("the last round returns")


def _missing(plan: Plan) -> dict[str, int]:
    """Return the bytes that the GPUs lack, by name. With unified memory, what both need too much counts for the GPU."""
    memory = plan.memory
    shared = memory.ram.missing_bytes if memory.is_unified else 0
    lacking = {gpu.name: max(gpu.missing_bytes, 0 if number else shared) for number, gpu in enumerate(memory.gpus)}
    return {name: n_bytes for name, n_bytes in lacking.items() if n_bytes}


def with_engine_numbers(
    plan: Plan,
    allocations: tuple[Allocation, ...],
    requested: LoadOptions,
    lacking: dict[str, int] | None = None,
    *,
    with_head: bool = True,
) -> Plan:
    """Return `plan` with the engine's numbers for weights, caches, states and buffers; drift stays an estimate.

    So do the vision encoder and a draft head in a file of its own before a load: the engine's dry run leaves them out.
    `with_head` says whether a head is in the engine's numbers.

    `lacking` are the bytes by device that were added to the drift to get a smaller plan. They are subtracted again.
    """
    rows = {row.device: row for row in allocations}
    knows_weights = any(row.weights_bytes for row in allocations)
    has_vision = any(device.vision_bytes for device in (*plan.memory.gpus, plan.memory.ram))
    knows_vision = any(row.vision_bytes for row in allocations) or not has_vision
    memory = plan.memory
    gpus = tuple(
        _joined(gpu, rows.get(gpu.name), knows_weights, (lacking or {}).get(gpu.name, 0), with_head=with_head)
        for gpu in memory.gpus
    )
    ram = _joined(memory.ram, rows.get("CPU"), knows_weights, 0, with_head=with_head)
    ram = msgspec.structs.replace(ram, gpu_bytes=shared_bytes(gpus))
    weights = memory.ram_weights_bytes + ram.weights_bytes - memory.ram.weights_bytes
    memory = msgspec.structs.replace(memory, gpus=gpus, ram=ram, ram_weights_bytes=weights)
    with_weights = _ALL_BUT_DRIVER if knows_vision else _ALL_BUT_VISION
    return msgspec.structs.replace(
        plan,
        memory=memory,
        fits=not missing_bytes(memory, requested),
        accuracy=tr(with_weights if knows_weights else _STATES_AND_BUFFERS),
        source="engine",
    )


def _joined(
    device: DevicePlan, row: Allocation | None, knows_weights: bool, lacking: int, *, with_head: bool
) -> DevicePlan:
    drift = device.other_bytes - lacking
    if row is None:
        return msgspec.structs.replace(device, other_bytes=drift)
    return msgspec.structs.replace(
        device,
        weights_bytes=row.weights_bytes if knows_weights else device.weights_bytes,
        kv_bytes=row.kv_bytes if knows_weights else device.kv_bytes,
        recurrent_bytes=row.recurrent_bytes,
        compute_bytes=row.compute_bytes,
        vision_bytes=row.vision_bytes or device.vision_bytes,
        draft_bytes=0 if knows_weights and with_head else device.draft_bytes,
        other_bytes=drift,
    )


def _without_table(plan: Plan, allocations: tuple[Allocation, ...]) -> tuple[Allocation, ...]:
    """Return what a dry run says, without a table that stays on the drive: the engine counts it as in RAM."""
    return tuple(
        msgspec.structs.replace(row, weights_bytes=max(row.weights_bytes - plan.memory.lazy_bytes, 0))
        if row.device == "CPU"
        else row
        for row in allocations
    )


def _with_less(machine: MachineMemory, lacking: dict[str, int]) -> MachineMemory:
    """Return `machine` with the missing bytes of each device as additional need."""
    if not lacking:
        return machine
    return msgspec.structs.replace(machine, unplanned_bytes=tuple(lacking.items()))
