"""Compares the memory that loads took on this PC with the plan, and keeps the difference to correct later plans.

Neither the estimate nor the engine's numbers include what the driver takes. If a probe can measure how much memory
of a device the worker uses, the difference is the drift of that device.
"""

import statistics
from collections.abc import Mapping
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_file import JsonFile
from qwendesk.core.plan import Comparison, Plan
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport

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
