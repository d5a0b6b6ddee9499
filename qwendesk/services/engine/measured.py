"""What loads really took on this PC, beside what was planned: kept in a small file, and correcting later plans.

Formulas and the engine's own numbers leave out what the driver takes. Where a probe tells how much memory of a device
our worker really holds, the difference is that device's drift.
"""

import logging
import statistics
from collections.abc import Mapping
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import decode_json, write_whole
from qwendesk.core.plan import Plan
from qwendesk.engine.protocol import LoadReport

_KEPT = 8
"""Measurements kept for each device: the latest speak for the present driver."""
_logger = logging.getLogger(__name__)


class Measured(msgspec.Struct, frozen=True):
    """One load on one device, in bytes: what the plan said without its drift, and what the worker really held."""

    model: str
    predicted_bytes: int
    real_bytes: int

    @property
    def drift_bytes(self) -> int:
        return max(self.real_bytes - self.predicted_bytes, 0)


class Comparison(msgspec.Struct, frozen=True):
    """One device after a load: "predicted 21.4, real 21.6 GB"."""

    device: str
    predicted_bytes: int
    real_bytes: int


class MeasuredLoads:
    """Owns the file. Small enough to be read and written on the event loop's thread."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or paths.data_folder() / "measured_loads.json"
        self._loads = _read(self._file)

    @property
    def drift(self) -> tuple[tuple[str, int], ...]:
        """Device name and bytes a load takes there beyond the formulas: the median of the latest loads."""
        return tuple(
            (device, round(statistics.median(load.drift_bytes for load in loads)))
            for device, loads in self._loads.items()
            if loads
        )

    def take(self, plan: Plan, report: LoadReport, held: Mapping[str, int]) -> tuple[Comparison, ...]:
        """Remembers a finished load and compares. `held`: bytes of each device that our worker holds now, as a probe
        says; devices that no probe tells of are compared by the engine's own allocations and not remembered.

        Raises QwenDeskError when the file cannot be written; the comparison then holds until the app ends.
        """
        allocated = {
            row.device: row.weights_bytes + row.kv_bytes + row.recurrent_bytes + row.compute_bytes + row.vision_bytes
            for row in report.allocations
        }
        compared = []
        for gpu in plan.prices.gpus:
            real = held.get(gpu.name)
            if real:
                known = allocated.get(gpu.name, gpu.total_bytes - gpu.drift_bytes)
                load = Measured(report.name, known, real)
                self._loads[gpu.name] = (*self._loads.get(gpu.name, ()), load)[-_KEPT:]
                compared.append(Comparison(gpu.name, gpu.total_bytes, real))
            elif gpu.name in allocated:
                compared.append(Comparison(gpu.name, gpu.total_bytes - gpu.drift_bytes, allocated[gpu.name]))
        if not compared and "CPU" in allocated:
            ram = plan.prices.ram
            compared.append(Comparison("CPU", ram.total_bytes - ram.drift_bytes, allocated["CPU"]))
        if any(held.get(gpu.name) for gpu in plan.prices.gpus):
            self._save()
        return tuple(compared)

    def _save(self) -> None:
        try:
            write_whole(self._file, msgspec.json.format(msgspec.json.encode(self._loads), indent=2))
        except OSError as error:
            sentence = f"What this load took could not be remembered: {error.strerror or error}."
            raise QwenDeskError("Measurement not saved", sentence) from error


def _read(file: Path) -> dict[str, tuple[Measured, ...]]:
    """What is kept there; nothing, and a line in the log, for a file that cannot be used."""
    try:
        return decode_json(file.read_bytes(), dict[str, tuple[Measured, ...]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used, earlier measurements are lost: %s", file, error)
        return {}
