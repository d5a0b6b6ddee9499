"""Builds the services of the bench feature."""

from collections.abc import Callable, Sequence

import msgspec

from qwendesk.bench.auto_tune import AutoTune
from qwendesk.bench.bench_engine import Decide
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.compare import CompareService
from qwendesk.bench.comparison import ModelChoice, PresetChoice
from qwendesk.bench.quality_service import QualityService, guide_text
from qwendesk.bench.records import BenchRecords
from qwendesk.bench.speed_service import FindPublished, SpeedService
from qwendesk.core.options import LoadOptions
from qwendesk.engine.contract import BenchClient
from qwendesk.engines.engine_service import EngineService


class CompareChoices(msgspec.Struct, frozen=True):
    """What the columns of a comparison may be chosen from. The functions return what there is now."""

    models: Callable[[], Sequence[ModelChoice]]
    presets: Callable[[], Sequence[PresetChoice]]


class BenchServices(msgspec.Struct):
    """The services of the bench feature."""

    engine: EngineService
    runs: BenchRuns
    speed: SpeedService
    quality: QualityService
    decode_tok_s: Callable[[LoadOptions], float]
    """The speed of a model's answers in tokens per second, measured or estimated; 0 if unknown."""
    tune: AutoTune
    compare: CompareService
    choices: CompareChoices


def build_bench_services(
    engine: EngineService,
    make_client: Callable[[], BenchClient],
    decide: Decide,
    decide_scoring: Decide,
    find_published: FindPublished,
    decode_tok_s: Callable[[LoadOptions], float],
    make_tune: Callable[[BenchRuns], AutoTune],
    make_compare: Callable[[BenchRuns], CompareService],
    choices: CompareChoices,
) -> BenchServices:
    """Build the services. `decide_scoring` is the planner for scoring texts, which leaves SCORING_BYTES free."""
    runs = BenchRuns(engine, make_client, decide)
    speed = SpeedService(runs, BenchRecords(), find_published)
    quality = QualityService(runs, decide_scoring, guide_text)
    return BenchServices(engine, runs, speed, quality, decode_tok_s, make_tune(runs), make_compare(runs), choices)
