"""Builds the services of the meters."""

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_measurements import MeasuredLoads
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.meters.answer_meter import AnswerMeter
from qwendesk.meters.load_comparer import LoadComparer
from qwendesk.meters.measured_speeds import MeasuredSpeeds
from qwendesk.meters.remedy_service import RemedyService
from qwendesk.meters.service import MeterService
from qwendesk.meters.spill_remedies import EstimateLoad, ReadHeaders, load_estimator


class MeterSource(msgspec.Struct, frozen=True):
    """Replacements for the sources of the meters, for tests and screenshots. None stands for the real source."""

    reader: SnapshotReader | None = None
    speeds: MeasuredSpeeds | None = None
    estimate_load: EstimateLoad | None = None
    read_headers: ReadHeaders | None = None
    platform: str = sys.platform


class MeterServices(msgspec.Struct):
    service: MeterService
    remedies: RemedyService
    comparer: LoadComparer
    platform: str


def build_services(
    engine: EngineService,
    answers: AnswerMeter,
    recorder: MeasuredLoads,
    closing: AsyncExitStack,
    *,
    read_headers: ReadHeaders,
    reserve_bytes: Callable[[], int],
    source: MeterSource,
) -> MeterServices:
    """Build the services; nothing is sampled before `service.start()`. Needs a running event loop."""
    estimate = source.estimate_load or load_estimator(
        read_headers, lambda: engine.state, lambda: answers.context_tokens
    )
    remedies = RemedyService(engine, answers, estimate)
    service = MeterService(
        engine,
        answers,
        remedies,
        reader=source.reader,
        speeds=source.speeds,
        reserve_bytes=reserve_bytes,
        estimate=estimate,
    )
    comparer = LoadComparer(engine, service, recorder, read_headers=source.read_headers or read_headers)
    closing.push_async_callback(comparer.close)
    closing.push_async_callback(service.close)
    return MeterServices(service, remedies, comparer, source.platform)
