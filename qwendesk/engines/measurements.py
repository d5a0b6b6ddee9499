"""Measurements: what was measured on this PC, which makes plans more accurate."""

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.protocol import Devices
from qwendesk.engine.state import EngineState
from qwendesk.engines.draft_speedups import DraftSpeedups, MeasuredOn
from qwendesk.engines.engine_choice import EngineChoiceService, package_version
from qwendesk.engines.load_decision import machine_now
from qwendesk.engines.load_measurements import MeasuredLoads
from qwendesk.engines.measured_speeds import MeasuredSpeeds
from qwendesk.hardware.snapshot import GpuReading, Snapshot


class Measurements:
    """Owns the files of what was measured. Plans read it on their threads."""

    def __init__(
        self,
        snapshot: Observed[Snapshot | None] | None = None,
        engines: EngineChoiceService | None = None,
        *,
        speeds: MeasuredSpeeds | None = None,
        drafts: DraftSpeedups | None = None,
    ) -> None:
        """`snapshot` is written by the meters. Without `drafts`, the option "auto" drafts nothing."""
        self.snapshot = snapshot or Observed[Snapshot | None](None)
        self.loads, self.speeds, self.drafts = MeasuredLoads(), speeds or MeasuredSpeeds(), drafts
        self._engines = engines

    @property
    def gpus(self) -> tuple[GpuReading, ...]:
        """The latest readings of the probes; empty before the first."""
        snapshot = self.snapshot.value
        return snapshot.gpus if snapshot is not None else ()

    def machine(self, devices: Devices, reserve_bytes: int) -> MachineMemory:
        """Return the memory that is free now. See `machine_now`."""
        return machine_now(
            devices,
            reserve_bytes=reserve_bytes,
            drift=self.loads.drift,
            gpu_factor=self.speeds.gpu_factor,
            readings=self.gpus,
        )

    def draft_speedup(self, options: DecidedOptions, devices: tuple[DeviceInfo, ...]) -> float | None:
        """Return how many times faster drafts were with these options; None if that was not measured lately."""
        return self.drafts.speedup(options, self._measured_on(devices)) if self.drafts is not None else None

    def note_answer(self, stats: AnswerStats, engine: EngineState) -> None:
        """Remember what drafts gained in an answer of the engine on this PC."""
        report = engine.local_report
        if self.drafts is not None and report is not None and stats.draft_speedup:
            self.drafts.note(report.options, stats.draft_speedup, self._measured_on(engine.devices))

    def _measured_on(self, devices: tuple[DeviceInfo, ...]) -> MeasuredOn:
        current = self._engines.engines.current if self._engines is not None else None
        name = current.name if current is not None else ""
        return MeasuredOn.of(f"{name} {package_version()}", devices, self.gpus)
