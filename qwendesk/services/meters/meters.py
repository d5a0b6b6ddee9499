"""Looks at the hardware once a second, judges whether the loaded model spills, and remembers five minutes."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.stats import AnswerStats
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.looking import Looking
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.hardware.spill import Loaded, SpillState, Track, slowdown, start, step, worst
from qwendesk.services.engine.service import EngineService
from qwendesk.services.meters.answers import AnswerMeter
from qwendesk.services.meters.bars import (
    HistoryPoint,
    Meters,
    Spill,
    Taker,
    bar_of,
    loaded_on,
    match_devices,
    sample_of,
    taker_since,
    used_devices,
)
from qwendesk.services.meters.relief import ReliefService
from qwendesk.services.meters.speeds import SpeedBook

EVERY_S, HIDDEN_EVERY_S = 1.0, 5.0
HISTORY_S = 300.0
_TROUBLE = (SpillState.SPILLING, SpillState.SUSPECTED)


class _Watched(msgspec.Struct):
    """One GPU of the loaded model."""

    device: DeviceInfo
    loaded: Loaded
    track: Track
    first: GpuReading
    """The reading right after the load: what others held then."""


class MeterService:
    """Owns the polling. Its methods are called on the event loop's thread; the looking happens on another."""

    def __init__(
        self,
        engine: EngineService,
        answers: AnswerMeter,
        relief: ReliefService,
        *,
        looking: Looking | None = None,
        speeds: SpeedBook | None = None,
        reserve_bytes: Callable[[], int | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._answers, self.relief = engine, answers, relief
        self._looking = looking or Looking()
        self._speeds = speeds or SpeedBook()
        self._reserve_bytes, self._clock = reserve_bytes, clock
        self._meters = Meters()
        self._subscribers = Subscribers[Meters]()
        self._history: deque[HistoryPoint] = deque()
        self._report: LoadReport | None = None
        self._watched: dict[str, _Watched] = {}
        self._reserve_at_load: int | None = None
        self._tok_s_before: float | None = None
        self._one_look = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._visible = True
        self._closing = asyncio.Event()
        self._saves: set[asyncio.Task[None]] = set()
        self._unsubscribe = (engine.subscribe(self._on_engine), answers.subscribe(self._on_answer))

    @property
    def meters(self) -> Meters:
        return self._meters

    @property
    def history(self) -> tuple[HistoryPoint, ...]:
        """The last five minutes, oldest first."""
        return tuple(self._history)

    def subscribe(self, callback: Callable[[Meters], None]) -> Callable[[], None]:
        """Call `callback` with the meters after each look and each load. Returns what ends it."""
        return self._subscribers.add(callback)

    def start(self) -> None:
        """Begin to look; once is enough."""
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())

    def set_visible(self, visible: bool) -> None:
        """A hidden window looks less often."""
        if visible != self._visible:
            self._visible = visible
            self._wake.set()

    async def close(self) -> None:
        """Wait for the look that runs, then end."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self.relief.close()
        self._closing.set()
        self._wake.set()
        if self._polling is not None:
            await self._polling
        await asyncio.gather(*self._saves)
        async with self._one_look:
            self._looking.close()

    async def look(self) -> Meters:
        """Look once, now."""
        async with self._one_look:
            welcome = self._engine.state.welcome
            running = self._engine.state.phase is not Phase.OFF
            pid = welcome.pid or None if welcome is not None and running else None
            snapshot = await asyncio.to_thread(self._looking.look, pid, self._clock())
            before = self._meters
            self._take(snapshot, pid)
            await self._relieve(before)
        return self._meters

    async def _poll(self) -> None:
        while True:
            self._wake.clear()
            await self.look()
            if self._closing.is_set():
                return
            try:
                await asyncio.wait_for(self._wake.wait(), EVERY_S if self._visible else HIDDEN_EVERY_S)
            except TimeoutError:
                continue

    async def _relieve(self, before: Meters) -> None:
        """New fixes when the state, the missing amount or the program behind it changed enough to matter."""
        spill, earlier = self._meters.spill, before.spill
        if _matters(spill, earlier):
            await self.relief.offer(self._meters, self.device_names())
        await self.relief.look(self._meters)

    def device_names(self) -> Mapping[str, str]:
        """The engine's device name of each watched GPU, by the GPU's key."""
        return {key: watched.device.name for key, watched in self._watched.items()}

    def _take(self, snapshot: Snapshot, pid: int | None) -> None:
        report = self._engine.state.report
        if report is not self._report:
            self._begin(report)
        gpus = {gpu.key: gpu for gpu in snapshot.gpus}
        if report is not None:
            self._watch(report, snapshot)
        for key, watched in self._watched.items():
            if key in gpus:
                sample = sample_of(gpus[key], pid, self._answers.decode_tok_s, self._best(report))
                watched.track = step(watched.track, sample, watched.loaded)
        self._publish(snapshot, pid)

    def _begin(self, report: LoadReport | None) -> None:
        """Another model, or none: what was known of the last one no longer holds."""
        self._report = report
        self._watched = {}
        self._tok_s_before = None
        self._reserve_at_load = self._reserve_bytes()
        self._answers.reset()

    def _watch(self, report: LoadReport, snapshot: Snapshot) -> None:
        """Watch each GPU of the model from its first reading on."""
        places = match_devices(self._engine.state.devices, snapshot.gpus)
        for device in used_devices(report, self._engine.state.devices):
            gpu = places.get(device.name)
            if gpu is not None and gpu.key not in self._watched:
                loaded = loaded_on(report, device, gpu, self._reserve_at_load)
                self._watched[gpu.key] = _Watched(device, loaded, start(loaded), gpu)

    def _publish(self, snapshot: Snapshot, pid: int | None) -> None:
        state = self._state()
        if state not in _TROUBLE and self._answers.last_tok_s is not None:
            self._tok_s_before = self._answers.last_tok_s
        report = self._report
        rows = {row.device: row for row in report.allocations} if report is not None else {}
        bars = []
        for gpu in sorted(snapshot.gpus, key=lambda gpu: gpu.key not in self._watched):
            watched = self._watched.get(gpu.key)
            row = rows.get(watched.device.name) if watched is not None else None
            bars.append(bar_of(gpu, row, pid, watched.track.excess_bytes if watched is not None else 0))
        self._meters = Meters(
            snapshot=snapshot,
            state=state,
            bars=tuple(bar for bar in bars if bar is not None),
            spill=self._spill(snapshot, pid, state),
            answering=self._answers.answering,
            tok_s=self._answers.decode_tok_s,
            threads=report.options.n_threads or snapshot.system.cpu_cores if report is not None else None,
        )
        self._remember(snapshot)
        self._subscribers.notify(self._meters)

    def _state(self) -> SpillState | None:
        if self._report is None:
            return None
        if not self._watched and used_devices(self._report, self._engine.state.devices):
            return None  # on a GPU that no probe sees: nothing is claimed
        return worst(watched.track.state for watched in self._watched.values())

    def _spill(self, snapshot: Snapshot, pid: int | None, state: SpillState | None) -> Spill | None:
        if state not in _TROUBLE or state is None:
            return None
        gpus = {gpu.key: gpu for gpu in snapshot.gpus}
        present = {key: watched for key, watched in self._watched.items() if key in gpus}
        excess = sum(watched.track.excess_bytes for watched in present.values())
        total = sum(gpus[key].total_bytes or 0 for key in present)
        takers = [taker_since(watched.first, gpus[key], pid) for key, watched in present.items()]
        now = self._answers.decode_tok_s or self._since_spill()
        best = self._best(self._report) or self._tok_s_before
        return Spill(
            state=state,
            excess_bytes=excess,
            best_tok_s=best,
            now_tok_s=now if best is not None and now is not None and now < best else None,
            slowdown=slowdown(excess, total) if total and excess else None,
            taker=max((each for each in takers if each is not None), key=_size, default=None),
        )

    def _since_spill(self) -> float | None:
        """The last answer's speed, if it was written while the model spilled."""
        last = self._answers.last_tok_s
        return last if last != self._tok_s_before else None

    def _best(self, report: LoadReport | None) -> float | None:
        speed = self._speeds.speed(report.options, self._answers.context_tokens) if report is not None else None
        return None if speed is None else speed.best

    def _remember(self, snapshot: Snapshot) -> None:
        first = self._meters.bars[0] if self._meters.bars else None
        gpu = first.gpu if first is not None else (snapshot.gpus[0] if snapshot.gpus else None)
        self._history.append(
            HistoryPoint(
                at_s=snapshot.at_s,
                used_bytes=first.used_bytes if first is not None else snapshot.system.ram_used_bytes,
                total_bytes=first.total_bytes if first is not None else snapshot.system.ram_total_bytes,
                excess_bytes=sum(bar.excess_bytes for bar in self._meters.bars),
                busy_percent=gpu.busy_percent if gpu is not None else snapshot.system.cpu_percent,
                tok_s=self._meters.tok_s,
                state=self._meters.state,
            )
        )
        while self._history and snapshot.at_s - self._history[0].at_s > HISTORY_S:
            self._history.popleft()

    def _on_engine(self, state: EngineState) -> None:
        """An ejected model shows at once; a loaded one is looked at at once, for its baseline."""
        if state.report is self._report:
            return
        if state.report is not None:
            self._wake.set()
        elif self._meters.snapshot is not None:
            self._begin(None)
            self._publish(self._meters.snapshot, None)

    def _on_answer(self, stats: AnswerStats) -> None:
        report = self._engine.state.report
        if report is None or self._answers.last_tok_s is None or stats.decode_tok_s != self._answers.last_tok_s:
            return
        self._speeds.note(report.options, self._answers.context_tokens, stats.decode_tok_s)
        save = asyncio.create_task(self._speeds.save())
        self._saves.add(save)
        save.add_done_callback(self._saves.discard)


def _matters(spill: Spill | None, before: Spill | None) -> bool:
    if spill is None or before is None:
        return spill is not before
    grown = abs(spill.excess_bytes - before.excess_bytes) >= 64 * 1024**2
    return grown or spill.state != before.state or _name(spill.taker) != _name(before.taker)


def _name(taker: Taker | None) -> str | None:
    return None if taker is None else taker.name


def _size(taker: Taker) -> int:
    return taker.n_bytes
