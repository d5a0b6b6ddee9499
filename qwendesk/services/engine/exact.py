"""Plans with the engine's own numbers, for models that are on disk: what the formulas guessed is checked and replaced.

Asking takes about a second, so it is for the plan that is about to be used, not for every move of a slider.
"""

from collections.abc import Awaitable, Callable

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DevicePlan, Machine, Plan
from qwendesk.engine.estimating import ask_engine
from qwendesk.engine.protocol import Allocation, Estimated
from qwendesk.hardware.planner import missing_bytes
from qwendesk.services.engine.deciding import plan_of

Ask = Callable[[LoadOptions], Awaitable[Estimated]]
_MOST_ROUNDS = 3
"""A plan that the engine's numbers do not fit is made again, with what was missing counted in."""

_WHOSE = (
    "Weights, caches, states and buffers are the engine's own numbers; pictures and what the driver takes are "
    "estimates."
)
_WHOSE_BUFFERS = "States and buffers are the engine's own numbers; everything else is an estimate."


async def exact_plan(
    facts: ModelFacts, mmproj: ModelFacts | None, machine: Machine, options: LoadOptions, ask: Ask = ask_engine
) -> Plan | LoadFailure:
    """The plan for `options` with the engine's numbers, `source` "engine". Where the engine cannot answer, the estimate
    with one sentence more that says why."""
    lacking: dict[str, int] = {}
    for rounds_left in reversed(range(_MOST_ROUNDS)):
        plan = plan_of(facts, mmproj, _with_less(machine, lacking), options)
        if isinstance(plan, LoadFailure):
            return plan
        answer = await ask(plan.options)
        if answer.problem:
            return msgspec.structs.replace(
                plan, why=(*plan.why, f"These are estimates: the engine was asked and said: {answer.problem}")
            )
        exact = with_engine_numbers(plan, answer.allocations, options, lacking)
        over = {gpu.name: gpu.missing_bytes for gpu in exact.prices.gpus if gpu.missing_bytes}
        if not over or not plan.fits or not rounds_left:
            return exact
        lacking = {name: lacking.get(name, 0) + over.get(name, 0) for name in {*lacking, *over}}
    raise AssertionError("the last round returns")


def with_engine_numbers(
    plan: Plan, allocations: tuple[Allocation, ...], asked: LoadOptions, lacking: dict[str, int] | None = None
) -> Plan:
    """`plan` with weights, caches, states and buffers as the engine gave them; pictures and drift stay estimates.

    `lacking`: bytes by device that were counted as drift on the way, and are none.
    """
    rows = {row.device: row for row in allocations}
    knows_weights = any(row.weights_bytes for row in allocations)
    prices = plan.prices
    gpus = tuple(
        _joined(gpu, rows.get(gpu.name), knows_weights, (lacking or {}).get(gpu.name, 0)) for gpu in prices.gpus
    )
    ram = _joined(prices.ram, rows.get("CPU"), knows_weights, 0)
    weights = prices.ram_weights_bytes + ram.weights_bytes - prices.ram.weights_bytes
    prices = msgspec.structs.replace(prices, gpus=gpus, ram=ram, ram_weights_bytes=weights)
    return msgspec.structs.replace(
        plan,
        prices=prices,
        fits=not missing_bytes(prices, asked),
        why=(*plan.why, _WHOSE if knows_weights else _WHOSE_BUFFERS),
        source="engine",
    )


def _joined(device: DevicePlan, row: Allocation | None, knows_weights: bool, lacking: int) -> DevicePlan:
    drift = device.drift_bytes - lacking
    if row is None:
        return msgspec.structs.replace(device, drift_bytes=drift)
    return msgspec.structs.replace(
        device,
        weights_bytes=row.weights_bytes if knows_weights else device.weights_bytes,
        kv_bytes=row.kv_bytes if knows_weights else device.kv_bytes,
        recurrent_bytes=row.recurrent_bytes,
        compute_bytes=row.compute_bytes,
        drift_bytes=drift,
    )


def _with_less(machine: Machine, lacking: dict[str, int]) -> Machine:
    """`machine` with the bytes that were missing counted as drift of their devices."""
    if not lacking:
        return machine
    return msgspec.structs.replace(machine, extra=tuple(lacking.items()))
