"""Builds the services of the bench feature."""

from collections.abc import Callable

import msgspec

from qwendesk.bench.bench_engine import Decide
from qwendesk.bench.bench_runs import BenchRuns, ChatEngine
from qwendesk.bench.records import BenchRecords
from qwendesk.bench.speed_service import FindPublished, SpeedService
from qwendesk.core.options import LoadOptions
from qwendesk.engine.contract import BenchClient


class BenchServices(msgspec.Struct):
    """The services of the bench feature."""

    engine: ChatEngine
    runs: BenchRuns
    speed: SpeedService
    decode_tok_s: Callable[[LoadOptions], float]
    """The speed of a model's answers in tokens per second, measured or estimated; 0 if unknown."""


def build_bench_services(
    engine: ChatEngine,
    make_client: Callable[[], BenchClient],
    decide: Decide,
    find_published: FindPublished,
    decode_tok_s: Callable[[LoadOptions], float],
) -> BenchServices:
    runs = BenchRuns(engine, make_client, decide)
    return BenchServices(engine, runs, SpeedService(runs, BenchRecords(), find_published), decode_tok_s)
