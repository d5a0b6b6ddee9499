"""How often each engine crashed at its start: kept on disk, so that it outlives what crashed."""

import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec

from qwendesk.core.files import write_whole

_logger = logging.getLogger(__name__)


class CrashCounts:
    """A file that cannot be read counts as empty, one that cannot be written is logged."""

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
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, int])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            _logger.warning("%s cannot be used, no engine counts as crashed: %s", self._file, error)
            return {}

    def _write(self, counts: Mapping[str, int]) -> None:
        try:
            write_whole(self._file, msgspec.json.encode(counts))
        except OSError as error:
            _logger.warning("%s cannot be written: %s", self._file, error)
