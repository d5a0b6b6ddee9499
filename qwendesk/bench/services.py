"""The services of the bench feature."""

from collections.abc import Callable
from functools import partial

from qwendesk.bench.auto_tune import AutoTune
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.compare import CompareService
from qwendesk.bench.comparison import ModelChoice, PresetChoice
from qwendesk.bench.memory_watch import SpillWatches
from qwendesk.bench.pc_trial import PcTrial
from qwendesk.bench.quality_service import SCORING_BYTES, QualityService
from qwendesk.bench.records import BenchRecords, card_texts
from qwendesk.bench.speed_service import SpeedService, find_published
from qwendesk.bench.speeds import SpeedPlan, expected_duration_s
from qwendesk.chat.presets import PresetsService
from qwendesk.core.devices import default_gpus
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.owner import Owner
from qwendesk.engine.contract import BenchClient, EngineClient
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.models.services import ModelServices
from qwendesk.settings.profiles import ProfilesService


class BenchServices(Owner):
    """The services of this feature. `decide` replaces the planner."""

    def __init__(
        self,
        engine: EngineService,
        client: EngineClient,
        planner: LoadPlanner,
        *,
        make_client: Callable[[], BenchClient],
        profiles: ProfilesService,
        models: ModelServices,
        presets: PresetsService,
        decide: Decide | None,
        running: Observed[str],
        make_pc_trial: Callable[[BenchRuns], PcTrial] | None,
    ) -> None:
        """`client` is that of `engine`; `make_client` makes those of measurements.

        `running` has the name of the measurement that runs. `make_pc_trial` makes a trial of a made-up PC.
        """
        super().__init__()
        self.engine, self._models, self._presets = engine, models, presets
        self.catalog = models.catalog
        self.decode_tok_s, self._planner = planner.decode_tok_s, planner
        self.runs = BenchRuns(engine, make_client, decide or planner.check, running)
        published = partial(find_published, engine=engine, catalog=models.catalog)
        self.speed = SpeedService(
            self.runs, BenchRecords(), published, models.checks.sha256_of, planner.measured.note_drafts
        )
        make_trial = make_pc_trial or partial(PcTrial, find_models=models.library.largest_first, app=planner.app)
        self.pc = make_trial(self.runs)
        scoring = decide or partial(planner.check, leave_bytes=SCORING_BYTES)
        self.quality = QualityService(self.runs, scoring)
        watches = self.own(SpillWatches(planner.app))
        self.tune = AutoTune(
            self.runs,
            profiles,
            make_plan=planner.plan,
            read_facts=planner.facts,
            make_watch=watches.watch,
            reload=engine.reload_if_loaded,
            note_speed=self._note_speed,
        )
        self.compare = CompareService(engine, client, self.runs)

    async def _note_speed(self, options: LoadOptions, tok_s: float) -> None:
        """Save a speed that was measured with a short text, so that it is shown as measured here."""
        speeds = self._planner.measured.speeds
        speeds.note(options, 0, tok_s)
        await speeds.save()

    def cards_here(self) -> str:
        """Return this PC's GPUs with their memory, such as "RTX 3090 24 GB"; "" if there are none."""
        return " + ".join(card_texts(default_gpus(self.engine.state.devices)))

    def estimated_tok_s(self, options: LoadOptions) -> tuple[float, float] | None:
        """Return the lowest and highest speed that the planner expects in a new chat; None if it made no plan."""
        plan = self._planner.latest
        if plan is None or plan.speed is None or plan.options.model != options.model:
            return None
        return plan.speed.start

    def expected_run_s(self, plan: SpeedPlan) -> float | None:
        """Return the seconds that measuring the chosen model takes; None without one, or if its speed isn't known."""
        state = self.speed.state.value
        if state.options is None:
            return None
        last = next(iter(state.own_records), None)
        rows, n_ctx = (last.rows, last.options.n_ctx) if last is not None else ((), 0)
        return expected_duration_s(plan, rows, n_ctx, self.decode_tok_s(state.options))

    def models(self) -> tuple[ModelChoice, ...]:
        """Return the models on this PC that have no known problem."""
        models = self._models.library.state.value.library.models
        return tuple(
            ModelChoice(model.path, model.name, can_think=model.facts is None or model.facts.has_think_token)
            for model in models
            if not model.problem
        )

    def presets(self) -> tuple[PresetChoice, ...]:
        return tuple(PresetChoice(preset.name, preset.values) for preset in self._presets.all)
