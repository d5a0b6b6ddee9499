"""The pending load options: the user's changes for one model, the memory they need, and whether they can load.

The model is the one that is loaded, or one whose options the user sets before its first load. Plans are made on
another thread, and only for the latest options, so a slider never waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.option_rules import CACHE_BLOCK, conflicts, with_changes
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.presets import preset_of_file
from qwendesk.core.rope_scaling import longest_context
from qwendesk.core.served_model import is_served
from qwendesk.core.settings import table
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.exact_plan import Ask, exact_plan, with_engine_numbers
from qwendesk.engines.load_decision import (
    ModelFiles,
    ReadFiles,
    files_of,
    plan_of,
    ram_freed_by_reload,
    refusal,
    with_drive,
)
from qwendesk.engines.measurements import Measurements
from qwendesk.engines.pending_load import OptionLimits, PendingLoad
from qwendesk.hardware.drives import drive_of
from qwendesk.hardware.gpu_links import gpu_links
from qwendesk.hardware.model_memory import lazy_table_bytes
from qwendesk.hardware.planner import fixed_plan
from qwendesk.settings.profiles import ProfilesService
from qwendesk.settings.service import SettingsService


class PendingLoadService:
    """Owns the PendingLoad. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engine: EngineService,
        settings: SettingsService,
        profiles: ProfilesService,
        *,
        idle: Callable[[], Awaitable[None]],
        measured: Measurements,
        ask: Ask,
        base_repo: Callable[[str], Awaitable[str]] | None,
    ) -> None:
        """`idle` waits until no answer is being generated."""
        self._engine, self._settings, self._profiles = engine, settings, profiles
        self._idle, self._ask, self._base_repo = idle, ask, base_repo
        self._measured = measured
        self.state = Observed(PendingLoad())
        self.of_loaded = Observed(PendingLoad())
        """The latest state for the loaded model, also while the options of another one are shown."""
        self.state.subscribe(lambda pending: self.of_loaded.set(pending) if pending.is_loaded else None)
        self._headers = LatestHeaders(engine.read_files)
        self._loaded_reserve_gb = settings.options.reserve_gb
        self._reserve_gb = settings.options.reserve_gb
        self._loaded: LoadOptions | None = None
        self._automatic: dict[str, LoadOptions] = {}
        """Options with the vision file and chat template that each model has without the user's changes."""
        self._report: LoadReport | None = None
        self._reloading = ""
        """Path of the model that `reload` is loading; "" while it isn't."""
        self._is_plan_stale = False
        self._plan_task: asyncio.Task[None] | None = None
        self._repo_task: asyncio.Task[None] | None = None
        self._subscriptions = (
            engine.observed.subscribe(self._on_engine),
            settings.subscribe(self._on_settings),
            profiles.subscribe(self._on_profile),
            profiles.problem.subscribe(lambda sentence: self._change(problem=sentence)),
            measured.speeds.by_file.subscribe(lambda _speeds: self.show_measured()),
        )

    @property
    def pending(self) -> PendingLoad:
        return self.state.value

    async def prepare(self, options: LoadOptions) -> None:
        """Show the options of a model that need not be loaded. `options` are those that it would be loaded with."""
        await self._find_devices()
        self._prepare(options)

    async def preview(self, options: LoadOptions) -> PendingLoad:
        """Return whether `options` can be loaded and what they take, without changing the pending options."""
        await self._find_devices()
        made = await asyncio.to_thread(self._make_plan, options, self._memory_without_model(), None)
        return PendingLoad(requested=options, devices=self._engine.state.devices, **made)

    async def _find_devices(self) -> None:
        if not self._engine.state.devices:
            await self._engine.probe()

    def _prepare(self, options: LoadOptions) -> None:
        pending = self.pending
        if pending.requested is None or pending.requested.model != options.model:
            self._adopt_model(options, is_other=True)

    def show_loaded(self) -> None:
        """Show the options of the loaded model again."""
        if self._loaded is not None and self._report is not None:
            self._prepare(self._loaded)

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change options and those linked to them, and save them for this model.

        Raises BadOption without changing anything if a key is unknown or a value is out of range.
        """
        requested = self.pending.requested
        if requested is None:
            return
        self._set_options(with_changes(requested, changes))
        self.keep()

    def keep(self) -> None:
        """Save the pending options for this model."""
        requested = self.pending.requested
        if requested is not None:
            base = self._default_values(requested)
            changes = {
                key: getattr(requested, key) for key in table(LoadOptions) if getattr(requested, key) != base[key]
            }
            self._run(lambda: self._profiles.save_changes(requested.model, changes))

    def reset(self, key: str) -> None:
        """Set an option to its default."""
        if self.pending.requested is not None:
            self.change({key: self._default_values(self.pending.requested)[key]})

    def undo(self) -> None:
        """Set every option, and the reserve, to what the loaded model was loaded with."""
        if self._loaded is not None and self.pending.is_loaded:
            self._settings.change({"reserve_gb": self._loaded_reserve_gb})
            self._set_options(self._loaded)
            self.keep()

    def reset_all(self) -> None:
        requested = self.pending.requested
        if requested is not None:
            self._set_options(LoadOptions(**self._default_values(requested)))
            self.keep()

    def save_as(self, name: str) -> None:
        self._run_for_model(lambda model: self._profiles.save_as(model, name))

    def use(self, name: str) -> None:
        self._run_for_model(lambda model: self._profiles.use(model, name))

    def delete(self, name: str) -> None:
        self._run_for_model(lambda model: self._profiles.delete(model, name))

    async def export(self, file: Path) -> None:
        await self._run_with_file(self._profiles.export, file)

    async def import_file(self, file: Path) -> None:
        await self._run_with_file(self._profiles.import_file, file)

    async def reload(self) -> LoadReport | LoadFailure | None:
        """Load with the pending options after any answer, and keep the chat. None: impossible, or the model changed."""
        pending = self.pending
        if pending.is_waiting or pending.requested is None or pending.conflicts or pending.refusal:
            return None
        model = pending.requested.model
        self._change(is_waiting=True)
        try:
            await self._idle()
            requested = self.pending.requested
            if requested is None or requested.model != model or self.pending.conflicts:
                return None  # the user has loaded another model or caused a conflict meanwhile
            self._reloading = model
            self._change(is_waiting=False, is_loading=True)
            return await self._engine.load(requested)
        finally:
            self._reloading = ""
            self._change(is_waiting=False)
            self._show_loading()

    async def ask_engine(self) -> None:
        """Replace the estimates with exact numbers from an engine dry run, which takes about a second."""
        requested = self.pending.requested
        if requested is None or self.pending.is_asking or self.pending.conflicts:
            return
        self._change(is_asking=True)
        try:
            files = await asyncio.to_thread(self._headers.read, requested)
            if isinstance(files, LoadFailure):
                return
            machine = await asyncio.to_thread(
                with_drive, self._memory_without_model(), files[0], Path(requested.model), drive_of
            )
            plan = await exact_plan(*files, machine, requested, self._ask)
            if requested == self.pending.requested and not isinstance(plan, LoadFailure):
                refused = refusal(plan, requested)
                self._change(plan=plan, planned_for=requested, refusal=refused.sentence if refused is not None else "")
        finally:
            self._change(is_asking=False)

    async def close(self) -> None:
        """Unsubscribe, and wait until no task is running."""
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._is_plan_stale = False
        running = [task for task in (self._plan_task, self._repo_task) if task is not None]
        await asyncio.gather(*running, return_exceptions=True)

    def _on_engine(self, state: EngineState) -> None:
        requested = state.requested
        if requested is not None and is_served(requested.model):
            self._show_served(state)
            return
        if state.phase is Phase.LOADING and requested is not None and requested is not self._loaded:
            shown = self.pending.requested
            is_other = shown is None or requested.model != shown.model
            self._loaded = requested
            self._loaded_reserve_gb = self._settings.options.reserve_gb
            self._adopt_model(requested, is_other=is_other)
        if state.report is not self._report:
            self._report = state.report
            self._set_options(self.pending.requested)
        self._show_loading()
        if state.devices != self.pending.devices:
            self._change(devices=state.devices)
            if state.devices:
                self._schedule_plan()

    def _show_loading(self) -> None:
        requested = self.pending.requested
        is_loading = requested is not None and self._is_being_loaded(requested.model)
        if is_loading != self.pending.is_loading:
            self._change(is_loading=is_loading)

    def _is_being_loaded(self, model: str) -> bool:
        """Return whether a model is being loaded. Between the unload and the load, only `reload` knows it."""
        state = self._engine.state
        return model == self._reloading or (state.is_loading and model == state.model)

    def _show_served(self, state: EngineState) -> None:
        """Show nothing but the server of a model that isn't on this PC."""
        if state.report is not self._report or self._loaded is not None:
            self._report, self._loaded = state.report, None
            served = state.report.served_by if state.report is not None else None
            self.state.set(PendingLoad(devices=state.devices, served_by=served.name if served is not None else ""))

    def _on_settings(self, options: AppOptions) -> None:
        if options.reserve_gb != self._reserve_gb:
            self._reserve_gb = options.reserve_gb
            self._schedule_plan()

    def _on_profile(self, model: str) -> None:
        requested = self.pending.requested
        if requested is None or requested.model != model:
            return
        self._change(profiles=self._profiles.names(model))
        kept = self._profiles.applied(LoadOptions(**self._default_values(requested)))
        if kept != requested:
            self._set_options(kept)

    def _adopt_model(self, requested: LoadOptions, *, is_other: bool) -> None:
        """Take over the options of a model that is being loaded or prepared."""
        self._remember_files(requested)
        if is_other:
            self.state.set(PendingLoad(profiles=self._profiles.names(requested.model), devices=self.pending.devices))
            if self._base_repo is not None:
                self._repo_task = asyncio.get_running_loop().create_task(self._find_base_repo(requested.model))
        self._set_options(self._profiles.applied(LoadOptions(**self._default_values(requested))))

    async def _find_base_repo(self, model: str) -> None:
        if self._base_repo is not None:
            repo = await self._base_repo(model)
            if self.pending.requested is not None and self.pending.requested.model == model:
                self._change(base_repo=repo)

    def _set_options(self, requested: LoadOptions | None) -> None:
        if requested is None:
            return
        base = self._default_values(requested)
        facts = self._headers.cached(requested)
        report = self._report
        loaded = self._loaded.model if self._loaded is not None and report is not None else ""
        self._change(
            loaded_tok_s=self._loaded_tok_s(),
            last_load_s=report.load_s if report is not None else 0.0,
            requested=requested,
            changed=frozenset(key for key in table(LoadOptions) if getattr(requested, key) != base[key]),
            conflicts=conflicts(requested, facts[0] if facts is not None else None),
            is_loaded=loaded == requested.model,
            is_loading=self._is_being_loaded(requested.model),
            other_loaded=loaded if loaded != requested.model else "",
            problem="",
        )
        self._schedule_plan()

    def _default_values(self, options: LoadOptions) -> dict[str, Any]:
        """Return the default options of a model. Its own files don't count as changes."""
        return msgspec.structs.asdict(self._automatic.get(options.model, LoadOptions(model=options.model)))

    def _remember_files(self, requested: LoadOptions) -> None:
        """Remember the vision file, draft head and chat template of a model, unless the user set them."""
        saved = self._profiles.applied(LoadOptions(model=requested.model))
        before = self._automatic.get(requested.model, LoadOptions(model=requested.model))
        self._automatic[requested.model] = LoadOptions(
            model=requested.model,
            mmproj=before.mmproj if saved.mmproj else requested.mmproj,
            draft_model=before.draft_model if saved.draft_model else requested.draft_model,
            chat_template_file=before.chat_template_file if saved.chat_template_file else requested.chat_template_file,
        )

    def _schedule_plan(self) -> None:
        self._update_needs_reload()
        self._is_plan_stale = True
        if self.pending.requested is not None and (self._plan_task is None or self._plan_task.done()):
            self._plan_task = asyncio.get_running_loop().create_task(self._update_plan())

    async def _update_plan(self) -> None:
        while self._is_plan_stale:
            self._is_plan_stale = False
            requested, report = self.pending.requested, self._report
            if requested is None:
                return
            is_as_loaded = (
                report is not None and requested == self._loaded and self._reserve_gb == self._loaded_reserve_gb
            )
            machine = self._memory_without_model()
            changes = await asyncio.to_thread(self._make_plan, requested, machine, report if is_as_loaded else None)
            if requested == self.pending.requested:
                self._change(**changes, links=gpu_links(self.pending.devices, self._measured.gpus))
                self._update_needs_reload()

    def _make_plan(self, requested: LoadOptions, machine: MachineMemory, report: LoadReport | None) -> dict[str, Any]:
        """Return the changes of the PendingLoad. Runs on another thread."""
        files = self._headers.read(requested)
        if isinstance(files, LoadFailure):
            return {"refusal": files.sentence, "plan": None}
        facts, mmproj = files
        longest = longest_context(facts.architecture, facts.context_length)
        limits = OptionLimits(
            facts.context_length, longest, facts.block_count, facts.expert_count > 0, facts.head_count,
            facts.head_count_kv, facts.sliding_window > 0, lazy_table_bytes(facts) > 0,
            all(length % CACHE_BLOCK == 0 for length in (facts.key_length, facts.value_length)),
        )  # fmt: skip
        of_model = {"limits": limits, "presets": tuple(preset_of_file(facts, thinking=each) for each in (False, True))}
        machine = with_drive(machine, facts, Path(requested.model), drive_of)
        found = conflicts(requested, facts)
        if found:
            return {**of_model, "conflicts": found, "refusal": ""}
        if report is not None:
            plan = fixed_plan(facts, mmproj, machine, report.options)
            if report.allocations:
                plan = with_engine_numbers(plan, report.allocations, requested)
            return {**of_model, "conflicts": (), "refusal": "", "plan": plan, "planned_for": requested}
        made = plan_of(facts, mmproj, machine, requested)
        if isinstance(made, LoadFailure):
            return {**of_model, "refusal": made.sentence}
        refused = refusal(made, requested)
        sentence = refused.sentence if refused is not None else ""
        return {**of_model, "conflicts": (), "refusal": sentence, "plan": made, "planned_for": requested}

    def _memory_without_model(self) -> MachineMemory:
        """Return the memory without the loaded model: video memory as reported before the load, its RAM added here."""
        devices = Devices(id=0, devices=self._engine.state.devices, cpu_features=())
        machine = self._measured.machine(devices, round(self._reserve_gb * GIB))
        free = machine.ram_available_bytes + ram_freed_by_reload(self._report, machine)
        return msgspec.structs.replace(machine, ram_available_bytes=min(free, machine.ram_total_bytes))

    def _update_needs_reload(self) -> None:
        pending, report = self.pending, self._report
        other = pending.requested != self._loaded
        has_new_reserve = self._reserve_gb != self._loaded_reserve_gb
        if not other and has_new_reserve and pending.plan is not None and report is not None:
            other = pending.plan.options != report.options
        self._change(needs_reload=pending.is_loaded and other)

    def _run_for_model(self, action: Callable[[str], None]) -> None:
        if (requested := self.pending.requested) is not None:
            self._run(lambda: action(requested.model))

    def _run(self, action: Callable[[], None]) -> None:
        try:
            action()
            self._change(problem="")
        except QwenDeskError as error:
            self._change(problem=error.sentence)

    async def _run_with_file(self, action: Callable[[str, Path], Awaitable[None]], file: Path) -> None:
        if (requested := self.pending.requested) is None:
            return
        try:
            await action(requested.model, file)
            self._change(problem="")
        except QwenDeskError as error:
            self._change(problem=error.sentence)

    def show_measured(self) -> None:
        """Show speeds that were measured since."""
        self._change(plan=self.pending.plan, loaded_tok_s=self._loaded_tok_s())

    def _loaded_tok_s(self) -> float | None:
        return self._measured.speeds.in_short_chats(self._report.options) if self._report is not None else None

    def _change(self, **changes: Any) -> None:
        plan = changes.get("plan")
        if plan is not None:
            speeds = self._measured.speeds
            measured = changes["measured_tok_s"] = speeds.in_short_chats(plan.options)
            is_new = measured is None and plan.speed is not None
            changes["expected"] = speeds.with_other_options(plan.options, plan.speed) if is_new else None
        self.state.update(**changes)


class LatestHeaders:
    """Keeps the headers that were read last. May be used on several threads: at worst, they are read twice."""

    def __init__(self, read_files: ReadFiles) -> None:
        self._read_files = read_files
        self._kept: tuple[tuple[str, ...], ModelFiles | LoadFailure] | None = None

    def read(self, options: LoadOptions) -> ModelFiles | LoadFailure:
        """Return the headers of the files that `options` name. Blocks, unless they were read last."""
        key, kept = files_of(options), self._kept
        if kept is None or kept[0] != key:
            kept = self._kept = (key, self._read_files(options))
        return kept[1]

    def cached(self, options: LoadOptions) -> ModelFiles | None:
        """Return the headers of this model if they were read last; else None."""
        kept = self._kept
        if kept is None or kept[0][0] != options.model or isinstance(kept[1], LoadFailure):
            return None
        return kept[1]
