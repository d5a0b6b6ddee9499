"""The best and the latest decode speed of each model on this PC, kept in a small file."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path, PurePath

import msgspec

from qwendesk.core import paths
from qwendesk.core.files import decode_json, write_whole
from qwendesk.core.options import LoadOptions

_logger = logging.getLogger(__name__)
_DEPTHS = (8_192, 32_768, 65_536, 131_072)
"""Long chats are slower by nature, so a speed counts for chats up to one of these lengths, or longer than all."""
_MOST_KEPT = 200


class Speed(msgspec.Struct, frozen=True):
    """Tokens per second."""

    best: float
    last: float


class _Kept(msgspec.Struct, frozen=True):
    speeds: dict[str, Speed] = {}


def speeds_file() -> Path:
    return paths.data_folder() / "speeds.json"


def key_of(options: LoadOptions, context_tokens: int) -> str:
    """Model file, where its layers and experts are, and how long the chat is: speeds compare only within one key."""
    depth = next((str(limit) for limit in _DEPTHS if context_tokens <= limit), "longer")
    name = PurePath(options.model).name
    return f"{name}|layers {options.n_gpu_layers}|experts {options.n_cpu_moe}|{depth}"


class SpeedBook:
    """All methods but `save` are quick; they are called on the event loop's thread."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or speeds_file()
        self._speeds = dict(_read(self._file))
        self._saving = asyncio.Lock()

    def speed(self, options: LoadOptions, context_tokens: int) -> Speed | None:
        """What was measured in chats about as long; None before the first answer."""
        return self._speeds.get(key_of(options, context_tokens))

    def note(self, options: LoadOptions, context_tokens: int, tok_s: float) -> None:
        """Remember one answer's speed."""
        key = key_of(options, context_tokens)
        before = self._speeds.pop(key, None)
        self._speeds[key] = Speed(best=max(tok_s, before.best if before else 0.0), last=tok_s)
        while len(self._speeds) > _MOST_KEPT:
            del self._speeds[next(iter(self._speeds))]

    async def save(self) -> None:
        """Write the file; a disk that refuses is logged, for these numbers come again."""
        content = msgspec.json.encode(_Kept(dict(self._speeds)))
        async with self._saving:
            try:
                await asyncio.to_thread(write_whole, self._file, content)
            except OSError as error:
                _logger.warning("Speeds could not be kept: %s", error)


def _read(file: Path) -> Mapping[str, Speed]:
    try:
        return decode_json(file.read_bytes(), _Kept).speeds
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used: %s", file, error)
        return {}
