"""How the present model is to be loaded next: what the person changes, what it costs, whether it can be, and when.

Prices are made on another thread, the latest draft winning, so that a slider never waits for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.option_rules import Conflict, conflicts, linked
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Plan
from qwendesk.core.settings import check, table
from qwendesk.core.subscribers import Subscribers
from qwendesk.core.units import GIB
from qwendesk.engine.estimating import ask_engine
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.planner import judge
from qwendesk.services.engine.deciding import Drift, facts_for, machine_now, plan_of, refusal
from qwendesk.services.engine.exact import Ask, exact_plan, with_engine_numbers
from qwendesk.services.engine.service import EngineService
from qwendesk.services.profiles import ProfilesService
from qwendesk.services.settings import SettingsService

Files = tuple[ModelFacts, ModelFacts | None]


class Limits(msgspec.Struct, frozen=True):
    """What the model's header says that bounds its options."""

    n_ctx: int
    """Trained context length in tokens."""
    n_layers: int
    has_experts: bool
    can_see: bool
    """A picture file belongs to it."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the inspector shows of loading. All empty while there is no model."""

    asked: LoadOptions | None = None
    changed: frozenset[str] = frozenset()
    """Keys whose values are not the defaults."""
    limits: Limits | None = None
    plan: Plan | None = None
    """For `asked`; one before while a new price is made, or while it cannot be."""
    conflicts: tuple[Conflict, ...] = ()
    refusal: str = ""
    """Why `asked` would not be loaded; "" when it would."""
    is_loaded: bool = False
    needs_reload: bool = False
    """A model is loaded, and otherwise than `asked`."""
    is_waiting: bool = False
    """A reload waits for the end of the present answer."""
    is_asking: bool = False
    """The engine is being asked for its own numbers."""
    profiles: tuple[str, ...] = ()
    problem: str = ""
    """What could not be saved or taken in, in a sentence."""
    base_repo: str = ""

    @property
    def decided(self) -> LoadOptions | None:
        """What Auto chose, as far as it is known."""
        return self.plan.options if self.plan is not None else None


class LoadDraft:
    """Owns the Draft. Methods are called on the event loop's thread."""

    def __init__(
        self,
        engine: EngineService,
        settings: SettingsService,
        profiles: ProfilesService,
        *,
        idle: Callable[[], Awaitable[None]],
        drift: Callable[[], Drift] = tuple,
        ask: Ask = ask_engine,
        base_repo: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        """`idle` returns when no answer is being made."""
        self._engine, self._settings, self._profiles = engine, settings, profiles
        self._idle, self._drift, self._ask, self._base_repo = idle, drift, ask, base_repo
        self._draft = Draft()
        self._subscribers = Subscribers[Draft]()
        self._files: tuple[tuple[str, str], Files | LoadFailure] | None = None
        self._loaded_reserve_gb = settings.options.reserve_gb
        self._reserve_gb = settings.options.reserve_gb
        self._wanted: LoadOptions | None = None
        self._report: LoadReport | None = None
        self._is_stale = False
        self._pricing: asyncio.Task[None] | None = None
        self._naming: asyncio.Task[None] | None = None
        self._endings = (
            engine.subscribe(self._on_engine),
            settings.subscribe(self._on_settings),
            profiles.subscribe(self._on_profile),
        )

    @property
    def draft(self) -> Draft:
        return self._draft

    def subscribe(self, callback: Callable[[Draft], None]) -> Callable[[], None]:
        """Call `callback` with each new draft. Returns what ends it."""
        return self._subscribers.add(callback)

    def change(self, changes: Mapping[str, Any], *, keep: bool = True) -> None:
        """Change options by key, and what is linked to them. `keep` remembers them for this model; a slider that is
        still being moved does not. Raises BadOption for a value out of range; nothing changes then."""
        asked = self._draft.asked
        if asked is None:
            return
        rows = table(LoadOptions)
        for key, value in changes.items():
            if key not in rows or key == "model":
                raise BadOption("Unknown option", f'There is no option "{key}" to change.')
            check(rows[key], value)
        self._take(msgspec.structs.replace(asked, **linked(asked, changes)))
        if keep:
            self.keep()

    def keep(self) -> None:
        """Remember the draft for this model."""
        asked = self._draft.asked
        if asked is not None:
            base = self._base(asked)
            changes = {key: getattr(asked, key) for key in table(LoadOptions) if getattr(asked, key) != base[key]}
            self._try(lambda: self._profiles.keep(asked.model, changes))

    def reset(self, key: str) -> None:
        """Back to the default."""
        if self._draft.asked is not None:
            self.change({key: self._base(self._draft.asked)[key]})

    def reset_all(self) -> None:
        asked = self._draft.asked
        if asked is not None:
            self._take(LoadOptions(**self._base(asked)))
            self.keep()

    def save_as(self, name: str) -> None:
        self._with_model(lambda model: self._profiles.save_as(model, name))

    def use(self, name: str) -> None:
        self._with_model(lambda model: self._profiles.use(model, name))

    def delete(self, name: str) -> None:
        self._with_model(lambda model: self._profiles.delete(model, name))

    def export(self, file: Any) -> None:
        self._with_model(lambda model: self._profiles.export(model, file))

    def take_in(self, file: Any) -> None:
        self._with_model(lambda model: self._profiles.take_in(model, file))

    async def reload(self) -> LoadReport | LoadFailure | None:
        """Load the draft once no answer is being made; the chat stays. None when it cannot be, or is not wanted any
        more."""
        draft = self._draft
        if draft.is_waiting or draft.asked is None or draft.conflicts or draft.refusal:
            return None
        model = draft.asked.model
        self._change(is_waiting=True)
        try:
            await self._idle()
        finally:
            self._change(is_waiting=False)
        asked = self._draft.asked
        if asked is None or asked.model != model or self._draft.conflicts:
            return None  # the person has loaded something else meanwhile
        return await self._engine.load(asked)

    async def ask_engine(self) -> None:
        """Replace the estimates by the engine's own numbers; takes about a second."""
        asked = self._draft.asked
        if asked is None or self._draft.is_asking or self._draft.conflicts:
            return
        self._change(is_asking=True)
        try:
            files = await asyncio.to_thread(self._read, asked)
            if isinstance(files, LoadFailure):
                return
            plan = await exact_plan(*files, self._machine(), asked, self._ask)
            if asked == self._draft.asked and not isinstance(plan, LoadFailure):
                refused = refusal(plan, asked)
                self._change(plan=plan, refusal=refused.sentence if refused is not None else "")
        finally:
            self._change(is_asking=False)

    async def close(self) -> None:
        """Returns when nothing runs any more."""
        for end in self._endings:
            end()
        self._is_stale = False
        running = [task for task in (self._pricing, self._naming) if task is not None]
        await asyncio.gather(*running, return_exceptions=True)

    def _on_engine(self, state: EngineState) -> None:
        asked = self._engine.asked
        if state.phase is Phase.LOADING and asked is not None and asked is not self._wanted:
            is_other = self._wanted is None or asked.model != self._wanted.model
            self._wanted = asked
            self._loaded_reserve_gb = self._settings.options.reserve_gb
            self._follow(asked, is_other=is_other)
        if state.report is not self._report:
            self._report = state.report
            self._take(self._draft.asked)

    def _on_settings(self, options: AppOptions) -> None:
        if options.reserve_gb != self._reserve_gb:
            self._reserve_gb = options.reserve_gb
            self._reprice()

    def _on_profile(self, model: str) -> None:
        asked = self._draft.asked
        if asked is None or asked.model != model:
            return
        self._change(profiles=self._profiles.names(model))
        kept = self._profiles.applied(LoadOptions(**self._base(asked)))
        if kept != asked:
            self._take(kept)

    def _follow(self, wanted: LoadOptions, *, is_other: bool) -> None:
        """The draft of the model that is being loaded."""
        if is_other:
            self._draft = Draft(profiles=self._profiles.names(wanted.model))
            if self._base_repo is not None:
                self._naming = asyncio.get_running_loop().create_task(self._name(wanted.model))
        self._take(self._profiles.applied(LoadOptions(**self._base(wanted))))

    async def _name(self, model: str) -> None:
        if self._base_repo is not None:
            repo = await self._base_repo(model)
            if self._draft.asked is not None and self._draft.asked.model == model:
                self._change(base_repo=repo)

    def _take(self, asked: LoadOptions | None) -> None:
        if asked is None:
            return
        base = self._base(asked)
        facts = self._facts(asked)
        self._change(
            asked=asked,
            changed=frozenset(key for key in table(LoadOptions) if getattr(asked, key) != base[key]),
            conflicts=conflicts(asked, facts[0] if facts is not None else None),
            is_loaded=self._report is not None,
            problem="",
        )
        self._reprice()

    def _base(self, options: LoadOptions) -> dict[str, Any]:
        """The options of a model without anything changed; its own files are no change."""
        files = self._wanted if self._wanted is not None and self._wanted.model == options.model else options
        start = LoadOptions(model=options.model, mmproj=files.mmproj, chat_template_file=files.chat_template_file)
        return msgspec.structs.asdict(start)

    def _reprice(self) -> None:
        self._show_needs()
        self._is_stale = True
        if self._draft.asked is not None and (self._pricing is None or self._pricing.done()):
            self._pricing = asyncio.get_running_loop().create_task(self._price())

    async def _price(self) -> None:
        while self._is_stale:
            self._is_stale = False
            asked, report = self._draft.asked, self._report
            if asked is None:
                return
            is_theirs = report is not None and asked == self._wanted and self._reserve_gb == self._loaded_reserve_gb
            machine = self._machine()
            priced = await asyncio.to_thread(self._priced, asked, machine, report if is_theirs else None)
            if asked == self._draft.asked:
                self._change(**priced)
                self._show_needs()

    def _priced(self, asked: LoadOptions, machine: Machine, report: LoadReport | None) -> dict[str, Any]:
        """On another thread: what changes of the Draft."""
        files = self._read(asked)
        if isinstance(files, LoadFailure):
            return {"refusal": files.sentence, "plan": None}
        facts, mmproj = files
        limits = Limits(facts.context_length, facts.block_count, facts.expert_count > 0, bool(asked.mmproj))
        found = conflicts(asked, facts)
        if found:
            return {"limits": limits, "conflicts": found, "refusal": ""}
        if report is not None:
            plan = judge(facts, mmproj, machine, report.options)
            if report.allocations:
                plan = with_engine_numbers(plan, report.allocations, asked)
            return {"limits": limits, "conflicts": (), "refusal": "", "plan": plan}
        made = plan_of(facts, mmproj, machine, asked)
        if isinstance(made, LoadFailure):
            return {"limits": limits, "refusal": made.sentence}
        refused = refusal(made, asked)
        sentence = refused.sentence if refused is not None else ""
        return {"limits": limits, "conflicts": (), "refusal": sentence, "plan": made}

    def _read(self, asked: LoadOptions) -> Files | LoadFailure:
        """The headers; those of the last model are kept. Blocks the first time."""
        key = (asked.model, asked.mmproj if asked.vision != "off" else "")
        kept = self._files
        if kept is None or kept[0] != key:
            kept = (key, facts_for(asked))
            self._files = kept
        return kept[1]

    def _facts(self, asked: LoadOptions) -> Files | None:
        """The headers if they are known already."""
        kept = self._files
        if kept is None or kept[0][0] != asked.model or isinstance(kept[1], LoadFailure):
            return None
        return kept[1]

    def _machine(self) -> Machine:
        """This PC as if our model were not there: the engine told what was free before it was loaded."""
        devices = Devices(id=0, devices=self._engine.state.devices, cpu_features=())
        machine = machine_now(devices, reserve_bytes=round(self._reserve_gb * GIB), drift=self._drift())
        held = _ram_held(self._report)
        return msgspec.structs.replace(
            machine, ram_available_bytes=min(machine.ram_available_bytes + held, machine.ram_total_bytes)
        )

    def _show_needs(self) -> None:
        draft, report = self._draft, self._report
        other = draft.asked != self._wanted
        if not other and self._reserve_gb != self._loaded_reserve_gb and draft.plan is not None and report is not None:
            other = draft.plan.options != report.options
        self._change(needs_reload=report is not None and other)

    def _with_model(self, intent: Callable[[str], None]) -> None:
        asked = self._draft.asked
        if asked is not None:
            self._try(lambda: intent(asked.model))

    def _try(self, intent: Callable[[], None]) -> None:
        try:
            intent()
            self._change(problem="")
        except QwenDeskError as error:
            self._change(problem=error.sentence)

    def _change(self, **changes: object) -> None:
        draft = msgspec.structs.replace(self._draft, **changes)
        if draft != self._draft:
            self._draft = draft
            self._subscribers.notify(draft)


def _ram_held(report: LoadReport | None) -> int:
    """RAM that comes back with a reload: what the engine allocated there. Weights read through mmap were never ours."""
    if report is None:
        return 0
    mapped = report.options.load_mode in ("auto", "mmap")
    rows = [row for row in report.allocations if row.device == "CPU"]
    return sum(
        row.kv_bytes + row.recurrent_bytes + row.compute_bytes + row.vision_bytes + (0 if mapped else row.weights_bytes)
        for row in rows
    )
