"""Makes the plan for a load: an estimate, checked with an engine dry run where that may change it."""

import asyncio
from pathlib import Path, PurePath

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.number_format import show_decimal
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.translation import tr
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engine.protocol import Devices
from qwendesk.engines.exact_plan import Ask, exact_plan
from qwendesk.engines.load_decision import (
    FindDrive,
    ModelFiles,
    ReadFiles,
    draft_head_problem,
    facts_for,
    plan_of,
    refusal,
    with_drive,
)
from qwendesk.engines.measurements import PAYS_OFF, Measurements
from qwendesk.hardware.drives import drive_of
from qwendesk.hardware.planner import TINY_MODEL_BYTES

# How long a load waits for the engine's dry run.
#
# It takes about a second, but longer while the graphics card is asleep; the estimate is used then.
LONGEST_S = 8.0
# If a plan needs less than this share of the RAM budget, the engine's numbers for RAM can't change it.
_TIGHT = 0.8


class LoadPlanner:
    """Decides the options of each load, and keeps the latest plan."""

    def __init__(
        self,
        app: Observed[AppOptions],
        measured: Measurements,
        ask: Ask = ask_engine,
        *,
        read_files: ReadFiles = facts_for,
        longest_s: float = LONGEST_S,
        find_drive: FindDrive = drive_of,
    ) -> None:
        """`ask` has the chosen engine make a dry run."""
        self.app, self.measured, self._find_drive = app, measured, find_drive
        self._ask, self._longest_s, self._read_files = ask, longest_s, read_files
        self._latest: Plan | None = None

    @property
    def latest(self) -> Plan | None:
        """The plan of the latest load that was allowed; None before the first."""
        return self._latest

    def decode_tok_s(self, options: LoadOptions) -> float:
        """Return the speed of a model's answers in tokens per second, measured or estimated; 0 if unknown."""
        plan, measured = self._latest, self.measured.speeds.by_file.value.get(PurePath(options.model).name)
        if measured is not None or plan is None or plan.options.model != options.model or plan.speed is None:
            return measured or 0.0
        return sum(plan.speed.start) / 2

    def facts(self, options: LoadOptions) -> ModelFacts | None:
        """Return what the header of the model says; None if it can't be read. Blocks."""
        files = self._read_files(options)
        return None if isinstance(files, LoadFailure) else files[0]

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
        machine = self.measured.machine(devices, self.app.value.reserve_bytes + leave_bytes)
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
        if options.speculative != "auto" or not files[0].can_draft or self.measured.drafts is None:
            return plan, options, ()
        asked = msgspec.structs.replace(options, speculative="mtp")
        drafting = plan_of(*files, machine, asked)
        if isinstance(drafting, LoadFailure):
            return plan, options, ()
        if not drafting.fits or msgspec.structs.replace(drafting.options, speculative="off") != plan.options:
            return plan, options, (tr("Token drafts are off: their memory would leave less for the model."),)
        speedup = self.measured.draft_speedup(drafting.options, machine.devices)
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
                return await exact_plan(*files, machine, options, self._ask)

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
