"""What drafts gained on this PC, measured during real answers, and saved in a small file."""

import time
from collections.abc import Callable
from pathlib import Path, PurePath

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile
from qwendesk.core.options import DecidedOptions

PAYS_OFF = 1.03
"""Drafts are worth their memory from this speedup on."""
_SAME = 0.02
"""A speedup that differs less from the saved one is not saved again."""
_FRESH_S = 30 * 24 * 3600.0
"""After a month drafts are tried again: another program may have slowed them down, and engines and drivers change."""
_MOST_KEPT = 200


class _Measured(msgspec.Struct, frozen=True):
    speedup: float
    at_s: float
    """When it was measured, in seconds since 1970."""


class _SpeedupsFile(msgspec.Struct, frozen=True):
    speedups: dict[str, _Measured] = {}


class DraftSpeedups:
    """Remembers speedups by model file, placement and context, the most recently measured last. Blocks on the disk."""

    def __init__(self, file: Path | None = None, now: Callable[[], float] = time.time) -> None:
        self._now = now
        path = file or paths.data_folder() / "draft-speedups.json"
        self._file = JsonFile(path, _SpeedupsFile, _SpeedupsFile, keep_unusable=False)

    def speedup(self, options: DecidedOptions) -> float | None:
        """Return how many times faster drafts were with these options; None if that was not measured lately."""
        measured = self._file.read().speedups.get(_key(options))
        is_fresh = measured is not None and abs(self._now() - measured.at_s) < _FRESH_S
        return measured.speedup if measured is not None and is_fresh else None

    def note(self, options: DecidedOptions, speedup: float) -> None:
        """Save a measurement. A file that can't be written is no problem: it is measured again."""
        known = self.speedup(options)
        if known is not None and abs(known - speedup) < _SAME:
            return
        kept = {key: value for key, value in self._file.read().speedups.items() if key != _key(options)}
        kept[_key(options)] = _Measured(round(speedup, 3), self._now())
        self._file.try_write(_SpeedupsFile(dict(list(kept.items())[-_MOST_KEPT:])))


def _key(options: DecidedOptions) -> str:
    """Return what the speedup depends on. A file of the same name with other weights is rare, and measured again."""
    tensors, devices = ",".join(options.override_tensor), ",".join(options.devices)
    places = f"{options.n_gpu_layers}|{options.n_cpu_moe}|{tensors}|{devices}|{options.n_threads}"
    caches = f"{options.n_ctx}|{options.type_k}|{options.type_v}"
    return f"{PurePath(options.model).name}|{places}|{caches}|{options.speculative}|{options.draft_n_max}"
