"""How often each engine crashed at its start: kept on disk, so that it outlives what crashed."""

import logging
from pathlib import Path

import msgspec

from qwendesk import __version__
from qwendesk.core.files import decode_json, write_whole

_logger = logging.getLogger(__name__)


class _Kept(msgspec.Struct, frozen=True):
    """The file: an update of the app brings other engines, so what an older one counted says nothing of them."""

    version: str
    """Of the app that counted."""
    counts: dict[str, int]


class CrashCounts:
    """A file that cannot be read, or is of another release, counts as empty; one that cannot be written is logged."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def of(self, name: str) -> int:
        return self._read().get(name, 0)

    def put(self, name: str, count: int) -> None:
        self._write({**self._read(), name: count})

    def forget(self, name: str) -> None:
        counts = self._read()
        if name in counts:
            self._write({key: count for key, count in counts.items() if key != name})

    def forget_all(self) -> None:
        self._write({})

    def _read(self) -> dict[str, int]:
        try:
            kept = decode_json(self._file.read_bytes(), _Kept)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            _logger.warning("%s cannot be used, no engine counts as crashed: %s", self._file, error)
            return {}
        return kept.counts if kept.version == __version__ else {}

    def _write(self, counts: dict[str, int]) -> None:
        try:
            write_whole(self._file, msgspec.json.encode(_Kept(__version__, counts)))
        except OSError as error:
            _logger.warning("%s cannot be written: %s", self._file, error)
