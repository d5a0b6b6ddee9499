"""The best and the latest decode speed of each model on this PC, saved in a small file."""

import asyncio
import statistics
from collections.abc import Mapping
from pathlib import Path, PurePath
from types import MappingProxyType

import msgspec

from qwendesk.core import paths
from qwendesk.core.files import is_utf8
from qwendesk.core.json_file import JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.hardware.expert_layers import count_cpu_expert_layers

# Upper limits of chat lengths in tokens. Longer chats are slower, so speeds are stored separately for each range.
_DEPTHS = (8_192, 32_768, 65_536, 131_072)
_MOST_KEPT = 200
# No correction is larger: beyond it something else was wrong, such as a game on the same GPU.
_LARGEST_FACTOR = 2.5


class MeasuredSpeed(msgspec.Struct, frozen=True):
    """Tokens per second."""

    best: float
    last: float
    estimated: float = 0.0
    """Estimate of the planner for this model in chats of this length, without any correction; 0 if unknown."""


class _SpeedsFile(msgspec.Struct, frozen=True):
    speeds: dict[str, MeasuredSpeed] = {}


def speeds_file() -> Path:
    return paths.data_folder() / "speeds.json"


def key_of(options: LoadOptions, context_tokens: int) -> str:
    """Return the key of comparable speeds: model file, placement of layers and experts, and length of the chat."""
    depth = next((str(limit) for limit in _DEPTHS if context_tokens <= limit), "longer")
    name = PurePath(options.model).name
    return f"{name}|layers {options.n_gpu_layers}|experts {count_cpu_expert_layers(options)}|{depth}"


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
        """Return the last speed with these options in the shortest chats they were used in; None before the first."""
        depths = (0, *(limit + 1 for limit in _DEPTHS))
        found = (self.speed(options, depth) for depth in depths)
        return next((speed.last for speed in found if speed is not None), None)

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
        self._speeds[key] = MeasuredSpeed(best=best, last=tok_s, estimated=known)
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
