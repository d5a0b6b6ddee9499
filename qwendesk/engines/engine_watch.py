"""Watches the video memory of a model that another worker than the chat's has loaded."""

from collections.abc import Sequence

from qwendesk.core.app_options import AppOptions
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.observed import Observed
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.pc_trial.readings import SpillWatch, TrialMeter
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.hardware.spill import EXCESS_BYTES, SpillState


class EngineWatches:
    """Makes the watch of each loaded model. They share one reader of the probes, which is made with the first."""

    def __init__(self, app: Observed[AppOptions]) -> None:
        self._app = app
        self._meter: TrialMeter | None = None

    def watch(self, report: LoadReport, devices: Sequence[DeviceInfo], pid: int | None) -> "EngineWatch":
        self._meter = self._meter or TrialMeter(SnapshotReader())
        return EngineWatch(self._meter, report, devices, pid, self._app.value.reserve_bytes)

    def close(self) -> None:
        if self._meter is not None:
            self._meter.close()


class EngineWatch:
    """Tells whether the model has spilled since the first look, which is taken right after the load."""

    def __init__(
        self,
        meter: TrialMeter,
        report: LoadReport,
        devices: Sequence[DeviceInfo],
        pid: int | None,
        reserve_bytes: int,
    ) -> None:
        """`pid` is the process that has loaded the model."""
        self._meter, self._pid = meter, pid
        self._spill = SpillWatch(report, devices, reserve_bytes)

    @property
    def has_spilled(self) -> bool:
        """Whether any look found more in shared memory than is normal; one is enough, because runs are short."""
        return any(
            sign.excess_bytes > EXCESS_BYTES or sign.state == SpillState.SPILLING for sign in self._spill.signs()
        )

    async def look(self) -> None:
        """Take one reading."""
        self._spill.take(await self._meter.snapshot(self._pid), self._pid)
