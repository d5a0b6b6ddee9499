"""What drafts gained on this PC, measured during real answers, and saved in a small file."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Self

import msgspec

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.json_file import JsonFile
from qwendesk.core.options import DecidedOptions
from qwendesk.hardware.snapshot import GpuReading

# Drafts are worth their memory from this speedup on.
PAYS_OFF = 1.03
# A speedup that differs less from the saved one is not saved again.
_SAME = 0.02
# After a month drafts are tried again: another program may have slowed them down.
_FRESH_S = 30 * 24 * 3600.0
_MOST_KEPT = 200


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
        self._file.try_write(_SpeedupsFile(dict(list(kept.items())[-_MOST_KEPT:])))


def _key(options: DecidedOptions, here: MeasuredOn) -> str:
    """Return what the speedup depends on. A file of the same name with other weights is rare, and measured again."""
    tensors, devices = ",".join(options.override_tensor), ",".join(options.devices)
    places = f"{options.n_gpu_layers}|{options.n_cpu_moe}|{tensors}|{devices}|{options.n_threads}"
    caches = f"{options.n_ctx}|{options.type_k}|{options.type_v}"
    drafts = f"{options.speculative}|{PurePath(options.draft_model).name}|{options.draft_n_max}"
    return f"{PurePath(options.model).name}|{places}|{caches}|{drafts}|{here.engine}|{','.join(here.gpus)}"
