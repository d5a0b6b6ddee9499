"""Reads RAM, swap and CPU load on every system."""

import psutil

from qwendesk.hardware.probes.base import ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import SystemReading


class SystemProbe:
    def __init__(self) -> None:
        self._cores: int | None = psutil.cpu_count(logical=False)
        self._engine: psutil.Process | None = None

    def read(self, request: ProbeRequest) -> ProbeResult:
        memory = psutil.virtual_memory()
        return ProbeResult(
            system=SystemReading(
                ram_total_bytes=memory.total,
                ram_available_bytes=memory.available,
                swap_used_bytes=_swap(),
                cpu_percent=_cpu_percent(),
                cpu_cores=self._cores,
                engine_ram_bytes=self._engine_ram(request.pid),
            )
        )

    def close(self) -> None:
        """Do nothing: no resource stays open."""

    def _engine_ram(self, pid: int | None) -> int | None:
        if pid is None:
            return None
        try:
            if self._engine is None or self._engine.pid != pid:
                self._engine = psutil.Process(pid)
            return int(self._engine.memory_info().rss)
        except psutil.Error:
            self._engine = None
            return None


def _cpu_percent() -> float | None:
    """Return the CPU load in percent; None where the system doesn't report it."""
    try:
        return psutil.cpu_percent(interval=None)
    except OSError:
        return None


def _swap() -> int | None:
    """Return the used swap in bytes; None in containers and Windows editions that don't report it."""
    try:
        return int(psutil.swap_memory().used)
    except (OSError, RuntimeError):
        return None
