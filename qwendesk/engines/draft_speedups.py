"""What drafts gained on this PC, measured during real answers, and saved in a small file."""

from pathlib import Path, PurePath

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile
from qwendesk.core.options import DecidedOptions

PAYS_OFF = 1.03
"""Drafts are worth their memory from this speedup on."""
_SAME = 0.02
"""A speedup that differs less from the saved one is not saved again."""
_MOST_KEPT = 200


class _SpeedupsFile(msgspec.Struct, frozen=True):
    speedups: dict[str, float] = {}


class DraftSpeedups:
    """Remembers speedups by model file, placement and context, the most recently measured last. Blocks on the disk."""

    def __init__(self, file: Path | None = None) -> None:
        path = file or paths.data_folder() / "draft-speedups.json"
        self._file = JsonFile(path, _SpeedupsFile, _SpeedupsFile, keep_unusable=False)

    def speedup(self, options: DecidedOptions) -> float | None:
        """Return how many times faster drafts were with these options; None if that was never measured."""
        return self._file.read().speedups.get(_key(options))

    def note(self, options: DecidedOptions, speedup: float) -> None:
        """Save a measurement. A file that can't be written is no problem: it is measured again."""
        known = self.speedup(options)
        if known is not None and abs(known - speedup) < _SAME:
            return
        kept = {key: value for key, value in self._file.read().speedups.items() if key != _key(options)}
        kept[_key(options)] = round(speedup, 3)
        self._file.try_write(_SpeedupsFile(dict(list(kept.items())[-_MOST_KEPT:])))


def _key(options: DecidedOptions) -> str:
    """Return what the speedup depends on. A file of the same name with other weights is rare, and measured again."""
    tensors, devices = ",".join(options.override_tensor), ",".join(options.devices)
    places = f"{options.n_gpu_layers}|{options.n_cpu_moe}|{tensors}|{devices}"
    return f"{PurePath(options.model).name}|{places}|{options.n_ctx}|{options.speculative}|{options.draft_n_max}"
