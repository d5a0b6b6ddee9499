"""Compares the memory that the engine process really uses after a load with the plan."""

import asyncio
import logging

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.plan import Comparison, MachineMemory
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import MeasuredLoads
from qwendesk.hardware.engine_gpus import match_gpus
from qwendesk.hardware.planner import fixed_plan
from qwendesk.meters.meter_state import MeterState
from qwendesk.meters.service import MeterService
from qwendesk.meters.spill_remedies import ReadHeaders

# The first sample may be from before the end of the load. A spill, which would falsify the result, shows later.
_SAMPLES_UNTIL_SETTLED = 6
_logger = logging.getLogger(__name__)


class LoadComparer:
    """Compares each load once. Its methods are called on the event loop's thread."""

    def __init__(
        self, engine: EngineService, meters: MeterService, recorder: MeasuredLoads, *, read_headers: ReadHeaders
    ) -> None:
        """`read_headers` is called on another thread."""
        self._engine, self._recorder, self._read_headers = engine, recorder, read_headers
        self.comparisons = Observed[tuple[Comparison, ...]](())
        """One for each GPU of the loaded model, or one for the RAM; empty until it has been measured."""
        self._report: LoadReport | None = None
        self._samples, self._last_sample_s = 0, 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe = meters.state.subscribe(self._on_meters)

    async def close(self) -> None:
        self._unsubscribe()
        await asyncio.gather(*self._tasks)

    def _on_meters(self, meters: MeterState) -> None:
        report, snapshot = self._engine.state.local_report, meters.snapshot
        if report is not self._report:
            self._report, self._samples = report, 0
            self.comparisons.set(())
        # A spilling model isn't compared, because it uses less memory of the GPU than it needs.
        if report is None or snapshot is None or snapshot.at_s == self._last_sample_s or meters.spill is not None:
            return
        self._samples, self._last_sample_s = self._samples + 1, snapshot.at_s
        if self._samples != _SAMPLES_UNTIL_SETTLED:
            return
        task = asyncio.create_task(self._compare(report, self._held_bytes(meters)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _held_bytes(self, meters: MeterState) -> dict[str, int]:
        """Return the engine process's memory on each GPU in bytes, by device name, where a probe reports it.

        Of GPUs that use the RAM, probes report at most what lies in the carve-out.
        """
        state, snapshot = self._engine.state, meters.snapshot
        if snapshot is None or state.welcome is None:
            return {}
        held = {}
        shared = {device.name for device in state.devices if device.shares_ram}
        for name, gpu in match_gpus(state.devices, snapshot.gpus).items():
            process = gpu.process(state.welcome.pid or None)
            if process is not None and process.dedicated_bytes and name not in shared:
                held[name] = process.dedicated_bytes
        return held

    async def _compare(self, report: LoadReport, held: dict[str, int]) -> None:
        headers = await asyncio.to_thread(self._read_headers, report.options)
        if isinstance(headers, LoadFailure) or report is not self._report:
            return
        drift = self._recorder.drift
        machine = MachineMemory(
            devices=self._engine.state.devices, ram_total_bytes=0, ram_available_bytes=0, drift=drift
        )
        plan = fixed_plan(*headers, machine, report.options)
        try:
            self.comparisons.set(self._recorder.take(plan, report, held))
        except QwenDeskError as error:
            _logger.warning("%s", error.sentence)
