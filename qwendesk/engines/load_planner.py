"""Makes the plan for a load: an estimate, checked with an engine dry run where that may change it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.number_format import show_decimal
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.protocol import Devices
from qwendesk.engines.draft_speedups import PAYS_OFF
from qwendesk.engines.exact_plan import exact_plan
from qwendesk.engines.load_decision import (
    Drift,
    FindDrive,
    ModelFiles,
    ReadFiles,
    draft_head_problem,
    facts_for,
    machine_now,
    plan_of,
    refusal,
    with_drive,
)
from qwendesk.hardware.drives import drive_of
from qwendesk.hardware.planner import TINY_MODEL_BYTES
from qwendesk.hardware.snapshot import GpuReading

LONGEST_S = 8.0
"""How long a load waits for the engine's dry run.

It takes about a second, but longer while the graphics card is asleep; the estimate is used then.
"""
_TIGHT = 0.8
"""If a plan needs less than this share of the RAM budget, the engine's numbers for RAM can't change it."""
DraftSpeedup = Callable[[DecidedOptions], float | None]
AskEngine = Callable[[DecidedOptions, Mapping[str, str]], Awaitable[Estimated]]


async def _ask(options: DecidedOptions, environment: Mapping[str, str]) -> Estimated:
    return await ask_engine(options, environment=environment)


class LoadPlanner:
    """Decides the options of each load, and keeps the latest plan."""

    def __init__(
        self,
        reserve_gb: Callable[[], float],
        drift: Callable[[], Drift],
        environment: Callable[[], Mapping[str, str]],
        *,
        ask: AskEngine = _ask,
        read_files: ReadFiles = facts_for,
        longest_s: float = LONGEST_S,
        gpu_factor: Callable[[], float] = lambda: 1.0,
        readings: Callable[[], Sequence[GpuReading]] = tuple,
        find_drive: FindDrive = drive_of,
        draft_speedup: DraftSpeedup | None = None,
    ) -> None:
        """`environment` returns the variables that make a worker use the chosen engine.

        `draft_speedup` returns how much faster drafts were measured with these options, None if they never were.
        Without it, "auto" drafts nothing.

        The functions are called for each load.
        """
        self._reserve_gb, self._drift, self._environment = reserve_gb, drift, environment
        self._gpu_factor, self._readings, self._find_drive = gpu_factor, readings, find_drive
        self._draft_speedup = draft_speedup
        self._ask, self._longest_s, self._read_files = ask, longest_s, read_files
        self._latest: Plan | None = None

    @property
    def latest(self) -> Plan | None:
        """The plan of the latest load that was allowed; None before the first."""
        return self._latest

    def decide(self, options: LoadOptions, devices: Devices) -> DecidedOptions | LoadFailure:
        """Return the options to load with, or why loading is impossible. `latest` is then the plan of this load.

        Blocks: reads headers and waits for the engine's own numbers. If they don't come in time, the estimate is used.
        """
        plan = self.plan(options, devices)
        if isinstance(plan, LoadFailure):
            return plan
        self._latest = plan
        return plan.options

    def check(self, options: LoadOptions, devices: Devices, *, leave_bytes: int = 0) -> DecidedOptions | LoadFailure:
        """Return what `decide` would return for a load that isn't made: `latest` stays as it is. Blocks.

        `leave_bytes` stay free on each GPU beyond the reserve, for what is needed beside the model.
        """
        plan = self.plan(options, devices, leave_bytes=leave_bytes)
        return plan if isinstance(plan, LoadFailure) else plan.options

    def plan(self, options: LoadOptions, devices: Devices, *, leave_bytes: int = 0) -> Plan | LoadFailure:
        """Return the plan of a load, or why it is impossible. `latest` stays as it is. Blocks. See `check`."""
        files = self._read_files(options)
        if isinstance(files, LoadFailure):
            return files
        machine = machine_now(
            devices,
            reserve_bytes=round(self._reserve_gb() * GIB) + leave_bytes,
            drift=self._drift(),
            gpu_factor=self._gpu_factor(),
            readings=self._readings(),
        )
        machine = with_drive(machine, files[0], Path(options.model), self._find_drive)
        no_head = draft_head_problem(files[0], options)
        if no_head:
            options = msgspec.structs.replace(options, draft_model="")
        plan = plan_of(*files, machine, options)
        if isinstance(plan, LoadFailure):
            return plan
        plan, options, why = self._with_drafts(plan, files, machine, options)
        if plan.fits and _may_change(plan, files):
            plan = self._checked(plan, files, machine, options)
        return refusal(plan, options) or msgspec.structs.replace(plan, why=(*plan.why, *why, *_without_head(no_head)))

    def _with_drafts(
        self, plan: Plan, files: ModelFiles, machine: MachineMemory, options: LoadOptions
    ) -> tuple[Plan, LoadOptions, tuple[str, ...]]:
        """Return the plan with the model's draft head and options that ask for it, or both unchanged, and why.

        With `speculative` auto, the head is used where it may pay off and where its memory changes nothing else.
        """
        if options.speculative != "auto" or not files[0].can_draft or self._draft_speedup is None:
            return plan, options, ()
        asked = msgspec.structs.replace(options, speculative="mtp")
        drafting = plan_of(*files, machine, asked)
        if isinstance(drafting, LoadFailure):
            return plan, options, ()
        if not drafting.fits or msgspec.structs.replace(drafting.options, speculative="off") != plan.options:
            return plan, options, (tr("Token drafts are off: their memory would leave less for the model."),)
        speedup = self._draft_speedup(drafting.options)
        if speedup is None:
            tried = tr("The model's draft head is tried in your answers, and stays on if that is faster.")
            return drafting, asked, (tried,)
        times = show_decimal(speedup, 2)
        if speedup < PAYS_OFF:
            return (
                plan,
                options,
                (tr("Token drafts are off: answers were measured {0} times as fast with them.", times),),
            )
        return drafting, asked, (tr("Token drafts are on: answers were measured {0} times as fast.", times),)

    def _checked(self, plan: Plan, files: ModelFiles, machine: MachineMemory, options: LoadOptions) -> Plan:
        """Return a plan made with the engine's numbers if they arrive in time and fit, else `plan`."""

        async def ask() -> Plan | LoadFailure:
            async with asyncio.timeout(self._longest_s):
                return await exact_plan(
                    *files, machine, options, lambda decided: self._ask(decided, self._environment())
                )

        try:
            exact = asyncio.run(ask())  # this thread has no event loop, and must not wait for the window's
        except TimeoutError:
            late = tr("These are estimates: the engine didn't give exact numbers in time.")
            return msgspec.structs.replace(plan, accuracy=late)
        return exact if isinstance(exact, Plan) and exact.fits else plan


def _without_head(problem: str) -> tuple[str, ...]:
    return (tr("{0} The model is loaded without it.", problem),) if problem else ()


def _may_change(plan: Plan, files: ModelFiles) -> bool:
    """Return whether the engine's numbers could change the plan: it uses a GPU or nearly all RAM."""
    if files[0].file_bytes <= TINY_MODEL_BYTES:
        return False
    ram = plan.memory.ram
    is_tight = ram.budget_bytes is not None and ram.total_bytes > _TIGHT * ram.budget_bytes
    return is_tight or any(gpu.total_bytes - gpu.other_bytes for gpu in plan.memory.gpus)
