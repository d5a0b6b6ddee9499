"""The services of the meters."""

import sys

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.owner import Owner
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.contract import EngineClient
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import MeasuredSpeeds, Measurements
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.meters.load_comparer import LoadComparer
from qwendesk.meters.remedy_service import RemedyService
from qwendesk.meters.service import MeterService
from qwendesk.meters.spill_remedies import EstimateLoad, ReadHeaders, load_estimator
from qwendesk.meters.why_service import WhyService


class MeterSource(msgspec.Struct, frozen=True):
    """Replacements for the sources of the meters, for tests and screenshots. None stands for the real source."""

    reader: SnapshotReader | None = None
    speeds: MeasuredSpeeds | None = None
    estimate_load: EstimateLoad | None = None
    read_headers: ReadHeaders | None = None
    platform: str = sys.platform


class MeterServices(Owner):
    """The services of this feature. Nothing is sampled before `service.start()`. Needs a running event loop."""

    def __init__(
        self,
        engine: EngineService,
        client: EngineClient,
        answers: AnswerMeter,
        measured: Measurements,
        *,
        app: Observed[AppOptions],
        measuring: Observed[str],
        source: MeterSource,
    ) -> None:
        """`measuring` has the name of the measurement that runs."""
        super().__init__()
        self.measuring = measuring
        estimate = source.estimate_load or load_estimator(engine, answers)
        self.remedies = RemedyService(engine, answers, estimate)
        self.service = MeterService(
            engine, answers, self.remedies, app=app, measured=measured, reader=source.reader, estimate=estimate
        )
        self.comparer = self.own(
            LoadComparer(engine, self.service, measured.loads, read_headers=source.read_headers or engine.read_files)
        )
        self.own(self.service)
        self.why = self.own(WhyService(engine, client, answers, measured))
        self.platform = source.platform
