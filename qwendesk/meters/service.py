"""Samples the hardware once a second, judges whether the loaded model spills, and keeps five minutes of history."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.errors import FailureGuard
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.stats import AnswerStats
from qwendesk.core.units import MIB
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import Measurements
from qwendesk.hardware.engine_gpus import match_gpus, spill_sample
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.hardware.spill import GpuAllocation, SpillState, SpillTrack, slowdown, start, step, worst
from qwendesk.meters.meter_state import (
    MeterState,
    Spill,
    VramConsumer,
    gpu_allocation,
    gpu_bar,
    new_consumer,
    new_consumers,
    ram_memory,
    shared_memory,
    used_devices,
)
from qwendesk.meters.remedy_service import RemedyService
from qwendesk.meters.spill_remedies import EstimateLoad

_logger = logging.getLogger(__name__)

# Seconds between two samples: while the window is visible, and while it isn't.
EVERY_S, HIDDEN_EVERY_S = 1.0, 5.0
_SPILLING = (SpillState.SPILLING, SpillState.SUSPECTED)
# How much a spill must grow or shrink before remedies are searched again.
_NOTABLE_BYTES = 64 * MIB


class _WatchedGpu(msgspec.Struct):
    """A GPU with a part of the loaded model."""

    device: DeviceInfo
    allocation: GpuAllocation
    track: SpillTrack
    first: GpuReading
    """The first reading after the load. Its memory use of other programs is the baseline for finding consumers."""


class MeterService:
    """Owns the sampling. Its methods are called on the event loop's thread; the hardware is read on another."""

    def __init__(
        self,
        engine: EngineService,
        answers: AnswerMeter,
        remedies: RemedyService,
        *,
        reader: SnapshotReader | None,
        app: Observed[AppOptions],
        measured: Measurements,
        clock: Callable[[], float] = time.monotonic,
        estimate: EstimateLoad | None = None,
    ) -> None:
        """`estimate` tells what speed is estimated for a model; without it measured speeds correct no estimate."""
        self._estimate = estimate
        self._engine, self._answers, self.remedies = engine, answers, remedies
        self._reader = reader or SnapshotReader()
        self._speeds, self._snapshot = measured.speeds, measured.snapshot
        self._app, self._clock = app, clock
        self.state = Observed(MeterState())
        self._report: LoadReport | None = None
        self._watched: dict[str, _WatchedGpu] = {}
        self._reserve_at_load: int | None = None
        self._tok_s_before_spill: float | None = None
        self._sampling = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._guard = FailureGuard(_logger, "The meters couldn't be read")
        self._wake = asyncio.Event()
        self._is_visible = True
        self._closing = asyncio.Event()
        self._saves: set[asyncio.Task[None]] = set()
        self._unsubscribe = (engine.subscribe(self._on_engine), answers.subscribe(self._on_answer))

    def start(self) -> None:
        """Begin to sample regularly. Further calls do nothing."""
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())

    def set_visible(self, is_visible: bool) -> None:
        """Sample less often while the window is hidden."""
        if is_visible != self._is_visible:
            self._is_visible = is_visible
            self._wake.set()

    async def close(self) -> None:
        """Stop sampling, and wait until the measured speeds are saved."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self.remedies.close()
        self._closing.set()
        self._wake.set()
        try:
            if self._polling is not None:
                await self._polling
        finally:
            await asyncio.gather(*self._saves)
            async with self._sampling:
                self._reader.close()

    async def sample(self) -> MeterState:
        """Take one sample now and return the new state."""
        async with self._sampling:
            welcome = self._engine.state.welcome
            is_running = self._engine.state.phase is not Phase.OFF
            pid = welcome.pid or None if welcome is not None and is_running else None
            snapshot = await asyncio.to_thread(self._reader.read, pid, self._clock())
            before = self.state.value.spill
            self._take(snapshot, pid)
            state = self.state.value
            if _is_notable(before, state.spill):
                await self.remedies.offer(state, self.device_names())
            await self.remedies.update(state)
        return self.state.value

    def device_names(self) -> Mapping[str, str]:
        """Return the engine's device name of each watched GPU, by the GPU's key."""
        return {key: watched.device.name for key, watched in self._watched.items()}

    async def _poll(self) -> None:
        while True:
            self._wake.clear()
            with self._guard:
                await self.sample()
            if self._closing.is_set():
                return
            try:
                await asyncio.wait_for(self._wake.wait(), EVERY_S if self._is_visible else HIDDEN_EVERY_S)
            except TimeoutError:
                continue

    def _take(self, snapshot: Snapshot, pid: int | None) -> None:
        report = self._engine.state.local_report
        if report is not self._report:
            self._begin(report)
        gpus = {gpu.key: gpu for gpu in snapshot.gpus}
        if report is not None:
            self._watch(report, snapshot)
        for key, watched in self._watched.items():
            if key in gpus:
                sample = spill_sample(gpus[key], pid, self._answers.decode_tok_s, self._best_tok_s())
                watched.track = step(watched.track, sample, watched.allocation)
        self._publish(snapshot, pid)

    def _begin(self, report: LoadReport | None) -> None:
        """Forget the previous model. `report` is about the new one, if any."""
        self._report = report
        self._watched = {}
        self._tok_s_before_spill = None
        self._reserve_at_load = self._app.value.reserve_bytes
        self._answers.reset()
        self.state.set(self.state.value.without_speeds())

    def _watch(self, report: LoadReport, snapshot: Snapshot) -> None:
        """Start to watch each GPU of the model at its first reading."""
        gpus = match_gpus(self._engine.state.devices, snapshot.gpus)
        for device in used_devices(report, self._engine.state.devices):
            gpu = gpus.get(device.name)
            if gpu is not None and gpu.key not in self._watched:
                allocation = gpu_allocation(report, device, gpu, self._reserve_at_load)
                self._watched[gpu.key] = _WatchedGpu(device, allocation, start(allocation), gpu)

    def _publish(self, snapshot: Snapshot, pid: int | None) -> None:
        spill_state, report = self._spill_state(), self._report
        if spill_state not in _SPILLING and self._answers.last_tok_s is not None:
            self._tok_s_before_spill = self._answers.last_tok_s
        rows = {row.device: row for row in report.allocations} if report is not None else {}
        bars = []
        for gpu in sorted(snapshot.gpus, key=lambda gpu: gpu.key not in self._watched):
            watched = self._watched.get(gpu.key)
            row = rows.get(watched.device.name) if watched is not None else None
            bars.append(gpu_bar(gpu, row, pid, watched.track.excess_bytes if watched is not None else 0))
        state = MeterState(
            snapshot=snapshot,
            state=spill_state,
            bars=tuple(bar for bar in bars if bar is not None),
            shared=shared_memory(snapshot, report) if spill_state is SpillState.UNIFIED else (),
            spill=self._spill(snapshot, pid, spill_state),
            consumers=tuple(
                consumer
                for gpu in snapshot.gpus
                if gpu.key in self._watched
                for consumer in new_consumers(self._watched[gpu.key].first, gpu, pid)
            ),
            answering=self._answers.is_answering,
            tok_s=self._answers.decode_tok_s,
            ram=ram_memory(snapshot, report),
            threads=report.options.n_threads or snapshot.system.cpu_cores if report is not None else None,
        )
        self.state.set(state.with_history(self.state.value.history, snapshot))
        self._snapshot.set(snapshot)

    def _spill_state(self) -> SpillState | None:
        if self._report is None:
            return None
        if not self._watched and used_devices(self._report, self._engine.state.devices):
            return None  # the model is on a GPU that no probe reads
        return worst(watched.track.state for watched in self._watched.values())

    def _spill(self, snapshot: Snapshot, pid: int | None, state: SpillState | None) -> Spill | None:
        if state is None or state not in _SPILLING:
            return None
        gpus = {gpu.key: gpu for gpu in snapshot.gpus}
        present = {key: watched for key, watched in self._watched.items() if key in gpus}
        excess = sum(watched.track.excess_bytes for watched in present.values())
        total = sum(gpus[key].total_bytes or 0 for key in present)
        consumers = [new_consumer(watched.first, gpus[key], pid) for key, watched in present.items()]
        now = self._answers.decode_tok_s or self._tok_s_during_spill()
        best = self._best_tok_s() or self._tok_s_before_spill
        return Spill(
            state=state,
            excess_bytes=excess,
            best_tok_s=best,
            now_tok_s=now if best is not None and now is not None and now < best else None,
            slowdown=slowdown(excess, total) if total and excess else None,
            consumer=max((each for each in consumers if each is not None), key=_size, default=None),
        )

    def _tok_s_during_spill(self) -> float | None:
        """Return the speed of the last answer if it was generated while the model spilled."""
        last = self._answers.last_tok_s
        return last if last != self._tok_s_before_spill else None

    def _best_tok_s(self) -> float | None:
        report = self._report
        speed = self._speeds.speed(report.options, self._answers.context_tokens) if report is not None else None
        return None if speed is None else speed.best

    def _on_engine(self, state: EngineState) -> None:
        """Update the state at once when the model is ejected, and take a sample at once when one is loaded."""
        if state.local_report is self._report:
            return
        snapshot = self.state.value.snapshot
        if state.local_report is not None:
            self._wake.set()
        elif snapshot is not None:
            self._begin(None)
            self._publish(snapshot, None)

    def _on_answer(self, stats: AnswerStats) -> None:
        report = self._engine.state.local_report
        if report is None or self._answers.last_tok_s is None or stats.decode_tok_s != self._answers.last_tok_s:
            return
        save = asyncio.create_task(self._note_speed(report.options, self._answers.context_tokens, stats.decode_tok_s))
        self._saves.add(save)
        save.add_done_callback(self._saves.discard)

    async def _note_speed(self, options: LoadOptions, context_tokens: int, tok_s: float) -> None:
        """Remember and save the speed of an answer, and what was estimated for it."""
        self._speeds.note(options, context_tokens, tok_s)
        if self._estimate is not None and not self._is_spilling():
            found = await asyncio.to_thread(self._estimate, options)
            if found is not None and found.expected_tok_s is not None:
                self._speeds.note(options, context_tokens, tok_s, math.sqrt(math.prod(found.expected_tok_s)))
        await self._speeds.save()

    def _is_spilling(self) -> bool:
        return self.state.value.state in _SPILLING


def _is_notable(before: Spill | None, after: Spill | None) -> bool:
    """Return whether the remedies may have changed, because the state, size or cause of the spill is different."""
    if after is None or before is None:
        return after is not before
    has_grown = abs(after.excess_bytes - before.excess_bytes) >= _NOTABLE_BYTES
    return has_grown or after.state != before.state or _name(after.consumer) != _name(before.consumer)


def _name(consumer: VramConsumer | None) -> str | None:
    return None if consumer is None else consumer.name


def _size(consumer: VramConsumer) -> int:
    return consumer.n_bytes
