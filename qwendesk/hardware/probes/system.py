"""RAM, swap and the CPU, on every system."""

import psutil

from qwendesk.hardware.probes.base import Ask, Found
from qwendesk.hardware.snapshot import SystemReading


class SystemProbe:
    def __init__(self) -> None:
        self._cores: int | None = psutil.cpu_count(logical=False)
        self._engine: psutil.Process | None = None

    def read(self, ask: Ask) -> Found:
        memory = psutil.virtual_memory()
        return Found(
            system=SystemReading(
                ram_total_bytes=memory.total,
                ram_available_bytes=memory.available,
                swap_used_bytes=_swap(),
                cpu_percent=psutil.cpu_percent(interval=None),
                cpu_cores=self._cores,
                engine_ram_bytes=self._engine_ram(ask.pid),
            )
        )

    def close(self) -> None:
        """Nothing stays open."""

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


def _swap() -> int | None:
    """Some containers and Windows editions cannot be asked."""
    try:
        return int(psutil.swap_memory().used)
    except (OSError, RuntimeError):
        return None
