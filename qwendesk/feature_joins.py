"""Functions that join one feature to another. No Qt."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from qwendesk.bench.auto_tune import AutoTune, TuneRuns
from qwendesk.bench.comparison import ModelChoice
from qwendesk.chat.question_files import answer_options
from qwendesk.core.chats import ChatSettings
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_watch import EngineWatch
from qwendesk.engines.load_decision import ReadFiles
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.pc_trial.readings import TrialMeter
from qwendesk.games.rules import ProgramMemory, VramPressure, may_count
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.meter_state import MeterState
from qwendesk.server.question import Question
from qwendesk.settings.profiles import ProfilesService

if TYPE_CHECKING:
    from qwendesk.models.library_service import LibraryService


def build_tune(
    runs: TuneRuns,
    *,
    profiles: ProfilesService,
    planner: LoadPlanner,
    read_files: ReadFiles,
    reload: Callable[[str], Awaitable[None]],
    reserve_bytes: Callable[[], int],
    closing: AsyncExitStack,
) -> AutoTune:
    """Return auto-tune. `reload` loads a model again if a chat has it loaded; it takes the path."""
    meters: list[TrialMeter] = []

    def watch(report: LoadReport, devices: Sequence[DeviceInfo], pid: int | None) -> EngineWatch:
        if not meters:
            meters.append(TrialMeter(SnapshotReader()))
            closing.callback(meters[0].close)
        return EngineWatch(meters[0], report, devices, pid, reserve_bytes())

    def read_header(options: LoadOptions) -> ModelFacts | None:
        files = read_files(options)
        return None if isinstance(files, LoadFailure) else files[0]

    return AutoTune(runs, profiles, make_plan=planner.plan, read_facts=read_header, make_watch=watch, reload=reload)


def model_choices(library: "LibraryService") -> tuple[ModelChoice, ...]:
    """Return the models on this PC that have no known problem."""
    models = library.state.value.library.models
    return tuple(ModelChoice(model.path, model.name) for model in models if not model.problem)


def vram_pressure(meters: MeterState) -> VramPressure:
    """Return what the meters say of the video memory, as game mode takes it."""
    short = (SpillState.NEAR_LIMIT, SpillState.SPILLING, SpillState.SUSPECTED)
    return VramPressure(
        is_short=meters.state in short,
        programs=tuple(ProgramMemory(each.name, each.pid, each.n_bytes) for each in meters.consumers),
        free_bytes=sum(bar.total_bytes - bar.used_bytes for bar in meters.bars) if meters.bars else None,
        spilled_bytes=sum(bar.excess_bytes for bar in meters.bars),
    )


def served_options(question: Question, report: LoadReport) -> GenerationOptions:
    """Return the options of an answer for another program: with tools, the preset for code, if the model thinks."""
    thinks = question.thinking is not False and report.can_think
    preset = "precise" if question.tools_json and thinks else ""
    return answer_options(ChatSettings(preset=preset, thinking=question.thinking), report)


def programs_on_gpus(meters: MeterState) -> tuple[str, ...]:
    """Return the names of other programs that use a GPU now, those with the most memory first."""
    gpus = meters.snapshot.gpus if meters.snapshot is not None else ()
    used: dict[str, int] = {}
    for row in (row for gpu in gpus for row in gpu.processes or ()):
        used[row.name] = used.get(row.name, 0) + (row.dedicated_bytes or 0)
    return tuple(name for name in sorted(used, key=lambda name: -used[name]) if may_count(name))
