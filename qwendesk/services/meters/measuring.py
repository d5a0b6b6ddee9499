"""After each load: what the worker really holds of each GPU, beside what was planned; kept, so that plans improve."""

import asyncio
import logging
from collections.abc import Callable

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.protocol import LoadReport
from qwendesk.hardware.planner import judge
from qwendesk.services.engine.deciding import facts_for
from qwendesk.services.engine.measured import Comparison, MeasuredLoads
from qwendesk.services.engine.service import EngineService
from qwendesk.services.meters.bars import Meters, match_devices
from qwendesk.services.meters.meters import MeterService

_LOOKS_UNTIL_SETTLED = 6
"""The first may be from before the load's end; and a spill, which would falsify it, is known after a few more."""
FilesOf = Callable[[LoadOptions], tuple[ModelFacts, ModelFacts | None] | LoadFailure]
_logger = logging.getLogger(__name__)


class LoadMeasuring:
    """Compares each load once. Methods are called on the event loop's thread."""

    def __init__(
        self, engine: EngineService, meters: MeterService, measured: MeasuredLoads, *, files_of: FilesOf = facts_for
    ) -> None:
        """`files_of` reads what the headers of a model and its picture file say; called on another thread."""
        self._engine, self._measured, self._files_of = engine, measured, files_of
        self._report: LoadReport | None = None
        self._looks, self._seen_s = 0, 0.0
        self._latest: tuple[Comparison, ...] = ()
        self._subscribers = Subscribers[tuple[Comparison, ...]]()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe = meters.subscribe(self._on_meters)

    @property
    def latest(self) -> tuple[Comparison, ...]:
        """One row a GPU for the model that is loaded, or one for the RAM; empty before it was measured."""
        return self._latest

    def subscribe(self, callback: Callable[[tuple[Comparison, ...]], None]) -> Callable[[], None]:
        """Call `callback` after each measured load, and with nothing when another begins. Returns what ends it."""
        return self._subscribers.add(callback)

    async def close(self) -> None:
        self._unsubscribe()
        await asyncio.gather(*self._tasks)

    def _on_meters(self, meters: Meters) -> None:
        report = self._engine.state.report
        if report is not self._report:
            was_known = bool(self._latest)
            self._report, self._looks, self._latest = report, 0, ()
            if was_known:
                self._subscribers.notify(())
        if (
            report is None
            or meters.snapshot is None
            or meters.snapshot.at_s == self._seen_s
            or meters.spill is not None
        ):
            return  # what spills over lies elsewhere, so the card would seem to need less than it does
        self._looks, self._seen_s = self._looks + 1, meters.snapshot.at_s
        if self._looks != _LOOKS_UNTIL_SETTLED:
            return
        task = asyncio.create_task(self._compare(report, self._held(meters)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _held(self, meters: Meters) -> dict[str, int]:
        """Bytes of each GPU that the worker holds, by device name, where a probe tells."""
        state, snapshot = self._engine.state, meters.snapshot
        if snapshot is None or state.welcome is None:
            return {}
        held = {}
        for name, gpu in match_devices(state.devices, snapshot.gpus).items():
            process = gpu.process(state.welcome.pid or None)
            if process is not None and process.dedicated_bytes:
                held[name] = process.dedicated_bytes
        return held

    async def _compare(self, report: LoadReport, held: dict[str, int]) -> None:
        files = await asyncio.to_thread(self._files_of, report.options)
        if isinstance(files, LoadFailure) or report is not self._report:
            return
        drift = self._measured.drift
        machine = Machine(devices=self._engine.state.devices, ram_total_bytes=0, ram_available_bytes=0, drift=drift)
        plan = judge(*files, machine, report.options)
        try:
            self._latest = self._measured.take(plan, report, held)
        except QwenDeskError as error:
            _logger.warning("%s", error.sentence)
        self._subscribers.notify(self._latest)
