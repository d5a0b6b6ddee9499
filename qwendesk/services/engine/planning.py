"""The plan that a load is made by: the formulas' one, checked with the engine itself where that may change it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Plan
from qwendesk.core.units import GIB
from qwendesk.engine.estimating import ask_engine
from qwendesk.engine.protocol import Devices, Estimated
from qwendesk.hardware.planner import TINY_MODEL_BYTES
from qwendesk.services.engine.deciding import Drift, facts_for, machine_now, plan_of, refusal
from qwendesk.services.engine.exact import exact_plan

LONGEST_S = 8.0
"""A load waits no longer than this for the engine's own numbers. A question takes about a second; a card that sleeps
takes longer, and then the estimate stands."""
_TIGHT = 0.8
"""With less than this of the RAM in use, nothing the engine says about RAM changes the plan."""
Files = tuple[ModelFacts, ModelFacts | None]
AskEngine = Callable[[LoadOptions, Mapping[str, str]], Awaitable[Estimated]]


async def _ask(options: LoadOptions, environment: Mapping[str, str]) -> Estimated:
    return await ask_engine(options, environment=environment)


class LoadPlanner:
    """Decides loads, and keeps the plan of the latest."""

    def __init__(
        self,
        reserve_gb: Callable[[], float],
        drift: Callable[[], Drift],
        environment: Callable[[], Mapping[str, str]],
        *,
        ask: AskEngine = _ask,
        longest_s: float = LONGEST_S,
    ) -> None:
        """`environment` makes a worker use the chosen engine; asked anew for each load, as the others are."""
        self._reserve_gb, self._drift, self._environment = reserve_gb, drift, environment
        self._ask, self._longest_s = ask, longest_s
        self._latest: Plan | None = None

    @property
    def latest(self) -> Plan | None:
        """What the last load was planned to take, and why; None before the first."""
        return self._latest

    def decide(self, options: LoadOptions, devices: Devices) -> LoadOptions | LoadFailure:
        """`options` without an "auto" that the planner decides, or why they cannot be loaded. Called on another thread,
        as it reads headers and waits for the engine's answer; where none comes in time, the estimate stands."""
        files = facts_for(options)
        if isinstance(files, LoadFailure):
            return files
        machine = machine_now(devices, reserve_bytes=round(self._reserve_gb() * GIB), drift=self._drift())
        plan = plan_of(*files, machine, options)
        if isinstance(plan, LoadFailure):
            return plan
        if plan.fits and _may_change(plan, files):
            plan = self._checked(plan, files, machine, options)
        failure = refusal(plan, options)
        if failure is not None:
            return failure
        self._latest = plan
        return plan.options

    def _checked(self, plan: Plan, files: Files, machine: Machine, options: LoadOptions) -> Plan:
        """`plan` as the engine's own numbers would have it, if they can be had and still fit."""

        async def ask() -> Plan | LoadFailure:
            async with asyncio.timeout(self._longest_s):
                return await exact_plan(
                    *files, machine, options, lambda decided: self._ask(decided, self._environment())
                )

        try:
            exact = asyncio.run(ask())  # this thread has no loop, and the window's must not be waited for
        except TimeoutError:
            late = "These are estimates: the engine did not say in time what it would take."
            return msgspec.structs.replace(plan, why=(*plan.why, late))
        return exact if isinstance(exact, Plan) and exact.fits else plan


def _may_change(plan: Plan, files: Files) -> bool:
    """Whether the engine's numbers could lead to another plan: on a GPU, or where RAM is scarce."""
    if files[0].file_bytes <= TINY_MODEL_BYTES:
        return False
    ram = plan.prices.ram
    is_tight = ram.budget_bytes is not None and ram.total_bytes > _TIGHT * ram.budget_bytes
    return is_tight or any(gpu.total_bytes - gpu.drift_bytes for gpu in plan.prices.gpus)
