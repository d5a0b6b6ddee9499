"""What was measured on this PC, saved in small files: speeds, the memory of loads, and the gains of drafts.

Neither the estimate nor the engine's numbers include what the driver takes. If a probe can measure how much memory
of a device the worker uses, the difference is the drift of that device.
"""

import asyncio
import math
import statistics
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Self

import msgspec

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import is_utf8
from qwendesk.core.json_file import JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import Comparison, MachineMemory, Plan, SpeedEstimate
from qwendesk.core.stats import AnswerStats
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_choice import EngineChoiceService, package_version
from qwendesk.engines.load_decision import machine_now
from qwendesk.hardware.expert_layers import count_cpu_expert_layers
from qwendesk.hardware.snapshot import GpuReading, Snapshot

# Drafts are worth their memory from this speedup on.
PAYS_OFF = 1.03
# A speedup that differs less from the saved one is not saved again.
_SAME = 0.02
# After a month drafts are tried again: another program may have slowed them down.
_FRESH_S = 30 * 24 * 3600.0
_MOST_SPEEDUPS = 200


class MeasuredOn(msgspec.Struct, frozen=True):
    """The engine and the GPUs on which drafts are measured."""

    engine: str = ""
    """Name and version of the engine: "cuda-12 0.3.36"."""
    gpus: tuple[str, ...] = ()
    """Backend and name of each GPU that the engine sees."""
    drivers: tuple[str, ...] = ()
    """Versions of the graphics drivers; empty while no probe has read them."""

    @classmethod
    def of(cls, engine: str, devices: Sequence[DeviceInfo], readings: Sequence[GpuReading]) -> Self:
        gpus = [f"{each.backend} {each.description}" for each in devices if each.kind in ("gpu", "igpu")]
        drivers = sorted({each.driver for each in readings if each.driver})
        return cls(engine, tuple(gpus), tuple(drivers) if gpus else ())


class _MeasuredSpeedup(msgspec.Struct, frozen=True):
    speedup: float
    at_s: float
    """Time of the measurement, in seconds since 1970."""
    drivers: tuple[str, ...] = ()


class _SpeedupsFile(msgspec.Struct, frozen=True):
    speedups: dict[str, _MeasuredSpeedup] = {}


class DraftSpeedups:
    """Remembers speedups by model, placement, context, engine and GPUs, the latest last. Blocks on the disk."""

    def __init__(
        self,
        file: Path | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        path = file or paths.data_folder() / "draft-speedups.json"
        self._file = JsonFile(path, _SpeedupsFile, _SpeedupsFile, keep_unusable=False)

    def speedup(self, options: DecidedOptions, here: MeasuredOn) -> float | None:
        """Return how many times faster drafts were with these options; None if that was not measured lately.

        `here` are the engine and the GPUs of now.
        """
        measured = self._file.read().speedups.get(_key(options, here))
        if measured is None or abs(self._now() - measured.at_s) >= _FRESH_S:
            return None
        other_driver = measured.drivers and here.drivers and measured.drivers != here.drivers
        return None if other_driver else measured.speedup

    def note(self, options: DecidedOptions, speedup: float, here: MeasuredOn) -> None:
        """Save a measurement. A file that can't be written is no problem: it is measured again."""
        known = self.speedup(options, here)
        if known is not None and abs(known - speedup) < _SAME:
            return
        own = _key(options, here)
        kept = {key: value for key, value in self._file.read().speedups.items() if key != own}
        kept[own] = _MeasuredSpeedup(round(speedup, 3), self._now(), here.drivers)
        self._file.try_write(_SpeedupsFile(dict(list(kept.items())[-_MOST_SPEEDUPS:])))


def _key(options: DecidedOptions, here: MeasuredOn) -> str:
    """Return what the speedup depends on. A file of the same name with other weights is rare, and measured again."""
    tensors, devices = ",".join(options.override_tensor), ",".join(options.devices)
    places = f"{options.n_gpu_layers}|{options.n_cpu_moe}|{tensors}|{devices}|{options.n_threads}"
    caches = f"{options.n_ctx}|{options.type_k}|{options.type_v}"
    drafts = f"{options.speculative}|{PurePath(options.draft_model).name}|{options.draft_n_max}"
    return f"{PurePath(options.model).name}|{places}|{caches}|{drafts}|{here.engine}|{','.join(here.gpus)}"


# Upper limits of chat lengths in tokens. Longer chats are slower, so speeds are stored separately for each range.
_DEPTHS = (8_192, 32_768, 65_536, 131_072)
_BEYOND = tuple(limit + 1 for limit in _DEPTHS)
_MOST_KEPT = 200
# No correction is larger: beyond it something else was wrong, such as a game on the same GPU.
_LARGEST_FACTOR = 2.5


class MeasuredSpeed(msgspec.Struct, frozen=True):
    """Tokens per second."""

    best: float
    last: float
    estimated: float = 0.0
    """Estimate of the planner for this model in chats of this length, without any correction; 0 if unknown."""
    options: str = ""
    """The options that `last` was measured with, as `_options_key` writes them; "" if unknown."""
    without_context: str = ""
    """The same without those of the context."""


class _SpeedsFile(msgspec.Struct, frozen=True):
    speeds: dict[str, MeasuredSpeed] = {}


def speeds_file() -> Path:
    return paths.data_folder() / "speeds.json"


def key_of(options: LoadOptions, context_tokens: int) -> str:
    """Return the key of comparable speeds: model file, placement of layers and experts, and length of the chat."""
    depth = next((str(limit) for limit in _DEPTHS if context_tokens <= limit), "longer")
    name = PurePath(options.model).name
    return f"{name}|layers {options.n_gpu_layers}|experts {count_cpu_expert_layers(options)}|{depth}"


# Options that don't change how fast an answer is written.
_WITHOUT_SPEED = frozenset(
    {"model", "mmproj", "chat_template_file", "check_tensors", "image_min_tokens", "image_max_tokens",
     "cache_budget_mib", "chat_states_mib"}
)  # fmt: skip


# Options that change how fast an answer is written in a long chat, but hardly at the start of one.
_OF_CONTEXT = frozenset(
    {"n_ctx", "n_batch", "n_ubatch", "type_k", "type_v", "flash_attn", "swa_full", "rope_scaling", "rope_freq_base",
     "rope_freq_scale", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow", "yarn_orig_ctx"}
)  # fmt: skip


def _options_key(options: LoadOptions, without: frozenset[str] = frozenset()) -> str:
    """Return a short text that is the same for options with the same speed, as far as options decide it."""
    left_out = _WITHOUT_SPEED | without
    values = {key: value for key, value in msgspec.structs.asdict(options).items() if key not in left_out}
    return f"{zlib.crc32(repr(values).encode()):08x}"


class MeasuredSpeeds:
    """Owns the file of measured speeds. Methods are called on the event loop's thread."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = JsonFile(file or speeds_file(), _SpeedsFile, _SpeedsFile, keep_unusable=False)
        self._speeds = dict(self._file.read().speeds)
        self.by_file: Observed[Mapping[str, float]] = Observed(_by_file(self._speeds))
        """The last speed of each model file in the shortest chats it was used in, in tokens per second."""
        self._saving = asyncio.Lock()

    def speed(self, options: LoadOptions, context_tokens: int) -> MeasuredSpeed | None:
        """Return what was measured in chats of about this length; None before the first answer."""
        return self._speeds.get(key_of(options, context_tokens))

    def in_short_chats(self, options: LoadOptions) -> float | None:
        """Return the last speed with exactly these options in the shortest chats they were used in; else None."""
        wanted = _options_key(options)
        found = (self.speed(options, depth) for depth in (0, *_BEYOND))
        return next((speed.last for speed in found if speed is not None and speed.options == wanted), None)

    def with_other_options(self, options: LoadOptions, estimate: SpeedEstimate) -> SpeedEstimate | None:
        """Return the speed to expect by what was measured of this file in this placement with other options; else None.

        Where only the context differs, a chat begins as fast as it was measured. Otherwise `estimate`, the planner's
        for `options`, keeps its relative width around that.
        """
        measured = next((speed for each in (0, *_BEYOND) if (speed := self.speed(options, each)) is not None), None)
        if measured is None:
            return None
        middle = math.sqrt(math.prod(estimate.start))
        by_s = measured.last / middle
        start, long = ((low * by_s, high * by_s) for low, high in (estimate.start, estimate.long))
        if measured.without_context == _options_key(options, _OF_CONTEXT):
            start, long = ((math.sqrt(low * high),) * 2 for low, high in (start, long))
        return SpeedEstimate(start=start, long=long, long_tokens=estimate.long_tokens)

    @property
    def gpu_factor(self) -> float:
        """By how much this PC's GPUs are faster than estimated: the median of all models that ran; 1 before any.

        Models that ran on the CPU alone don't count: their speed says nothing about a GPU.
        """
        ratios = [
            speed.best / speed.estimated
            for key, speed in self._speeds.items()
            if speed.estimated > 0 and "|layers 0|" not in key
        ]
        return min(max(statistics.median(ratios), 1 / _LARGEST_FACTOR), _LARGEST_FACTOR) if ratios else 1.0

    def note(self, options: LoadOptions, context_tokens: int, tok_s: float, estimated: float = 0.0) -> None:
        """Remember the speed of one answer, in tokens per second, and what the planner estimated without correction."""
        key = key_of(options, context_tokens)
        before = self._speeds.pop(key, None)
        best = max(tok_s, before.best if before else 0.0)
        known = estimated or (before.estimated if before else 0.0)
        self._speeds[key] = MeasuredSpeed(best, tok_s, known, _options_key(options), _options_key(options, _OF_CONTEXT))
        while len(self._speeds) > _MOST_KEPT:
            del self._speeds[next(iter(self._speeds))]
        self.by_file.set(_by_file(self._speeds))

    async def save(self) -> None:
        """Write the file. An error is only logged, because the speeds are measured again."""
        speeds = _SpeedsFile({key: speed for key, speed in self._speeds.items() if is_utf8(key)})
        async with self._saving:
            await asyncio.to_thread(self._file.try_write, speeds)


def _by_file(speeds: Mapping[str, MeasuredSpeed]) -> Mapping[str, float]:
    longest_first = sorted(speeds.items(), key=lambda item: _depth_rank(item[0]), reverse=True)
    return MappingProxyType({key.rsplit("|", 3)[0]: speed.last for key, speed in longest_first})


def _depth_rank(key: str) -> int:
    """Return the place of a key's range of chat lengths; the shortest is 0."""
    depth = key.rpartition("|")[2]
    return next((place for place, limit in enumerate(_DEPTHS) if depth == str(limit)), len(_DEPTHS))


# Measurements kept for each device. Older ones may be from another driver.
_KEPT = 8


class LoadMeasurement(msgspec.Struct, frozen=True):
    """Memory of one load on one device: without drift, as predicted, and as measured."""

    model: str
    predicted_bytes: int
    real_bytes: int

    @property
    def drift_bytes(self) -> int:
        return max(self.real_bytes - self.predicted_bytes, 0)


class MeasuredLoads:
    """Owns the file, which is small enough to be read and written on the event loop's thread."""

    def __init__(self, file: Path | None = None) -> None:
        path = file or paths.data_folder() / "measured_loads.json"
        self._file = JsonFile(path, dict[str, tuple[LoadMeasurement, ...]], dict, keep_unusable=False)
        self._loads = self._file.read()

    @property
    def drift(self) -> tuple[tuple[str, int], ...]:
        """For each device its name and the median of the bytes that recent loads took beyond the prediction."""
        return tuple(
            (device, round(statistics.median(load.drift_bytes for load in loads)))
            for device, loads in self._loads.items()
            if loads
        )

    def take(self, plan: Plan, report: LoadReport, held: Mapping[str, int]) -> tuple[Comparison, ...]:
        """Save the measurement of a finished load, and return the comparison with its plan.

        `held` are the bytes that the worker uses of each device, as measured by a probe. Devices without a probe are
        compared with the engine's own allocations, and these are not saved.

        Raises QwenDeskError if the file can't be written. The measurement is then used until the app closes.
        """
        allocated = {row.device: row.total_bytes for row in report.allocations}
        compared = []
        for gpu in plan.memory.gpus:
            real = held.get(gpu.name)
            if real:
                known = allocated.get(gpu.name, gpu.total_bytes - gpu.other_bytes)
                load = LoadMeasurement(report.name, known, real)
                self._loads[gpu.name] = (*self._loads.get(gpu.name, ()), load)[-_KEPT:]
                compared.append(Comparison(gpu.name, gpu.total_bytes, real))
            elif gpu.name in allocated:
                compared.append(Comparison(gpu.name, gpu.total_bytes - gpu.other_bytes, allocated[gpu.name]))
        if not compared and "CPU" in allocated:
            ram = plan.memory.ram
            compared.append(Comparison("CPU", ram.total_bytes - ram.other_bytes, allocated["CPU"]))
        if any(held.get(gpu.name) for gpu in plan.memory.gpus):
            self._save()
        return tuple(compared)

    def _save(self) -> None:
        try:
            self._file.write(self._loads)
        except OSError as error:
            sentence = tr("The memory this load used could not be saved: {0}.", error.strerror or error)
            raise QwenDeskError(tr("Measurement not saved"), sentence) from error


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
        if report is not None and stats.draft_speedup:
            self.note_drafts(report.options, stats.draft_speedup, engine.devices)

    def note_drafts(self, options: DecidedOptions, speedup: float, devices: tuple[DeviceInfo, ...]) -> None:
        """Remember how many times faster drafts were with these options. Blocks."""
        if self.drafts is not None:
            self.drafts.note(options, speedup, self._measured_on(devices))

    def _measured_on(self, devices: tuple[DeviceInfo, ...]) -> MeasuredOn:
        current = self._engines.engines.current if self._engines is not None else None
        name = current.name if current is not None else ""
        return MeasuredOn.of(f"{name} {package_version()}", devices, self.gpus)
