"""NVIDIA GPUs through NVML (module pynvml of nvidia-ml-py), on every system that has its driver."""

import importlib
from collections.abc import Callable
from typing import Any

import msgspec

from qwendesk.hardware.probes.base import NOTHING, Ask, Found, pci_address
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, Throttle

PCIE_EVERY_S = 5.0
"""NVML measures PCIe throughput over 20 ms while the call waits: asked so seldom that most looks are without it."""
_AGAIN_S = 60.0
"""A driver that is not there is looked for again after this."""
_THROTTLE: tuple[tuple[int, Throttle], ...] = (
    (0x01, "idle"),
    (0x04, "power cap"),
    (0x08 | 0x80, "hardware"),
    (0x20 | 0x40, "thermal"),
)
"""Bits of nvmlClocksThrottleReasons: gpu idle; software power cap; hardware slowdown and its power brake; software
and hardware thermal slowdown."""


def throttle_reasons(bits: int) -> tuple[Throttle, ...]:
    """The reasons that are set, in a fixed order; empty when the clocks are free."""
    return tuple(name for mask, name in _THROTTLE if bits & mask)


def process_rows(rows: list[Any]) -> tuple[ProcessMemory, ...]:
    """One row a process (it may be listed for graphics and for computing). Windows gives no bytes: None."""
    found: dict[int, int | None] = {}
    for row in rows:
        used = getattr(row, "usedGpuMemory", None)
        found[row.pid] = max(found.get(row.pid) or 0, used) if used else found.get(row.pid)
    return tuple(ProcessMemory(pid=pid, dedicated_bytes=used) for pid, used in found.items())


def memory_of(memory: Any) -> tuple[int, int]:
    """Total bytes, and bytes that cannot be had: version 2 keeps the driver's own part beside `used`."""
    return int(memory.total), int(memory.total) - int(memory.free)


class NvidiaProbe:
    """Reads through `library` (a module with pynvml's functions), which is started when it is first asked."""

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._started = False
        self._not_before_s: float | None = None
        self._note = ""
        self._pcie: dict[str, tuple[float, int | None, int | None]] = {}

    def read(self, ask: Ask) -> Found:
        if not self._started and not self._start(ask.now_s):
            return msgspec.structs.replace(NOTHING, notes=(self._note,)) if self._note else NOTHING
        count = self._ask("nvmlDeviceGetCount")
        if count is None:  # the driver was replaced or stopped under us
            self._stop(ask.now_s)
            return NOTHING
        driver = self._text(self._ask("nvmlSystemGetDriverVersion"))
        readings = (self._reading(index, driver, ask.now_s) for index in range(count))
        return Found(gpus=tuple(each for each in readings if each is not None))

    def close(self) -> None:
        if self._started:
            self._ask("nvmlShutdown")
            self._started = False

    def _start(self, now_s: float) -> bool:
        if self._not_before_s is not None and now_s < self._not_before_s:
            return False
        try:
            self._library = self._library or importlib.import_module("pynvml")
            self._library.nvmlInit()
        except ImportError:
            self._not_before_s = float("inf")
            self._note = "The module pynvml is not installed: NVIDIA GPUs are not read."
            return False
        except self._library.NVMLError as error:
            self._not_before_s = now_s + _AGAIN_S
            missing = type(error).__name__.endswith("LibraryNotFound")
            self._note = "" if missing else f"NVIDIA's driver does not answer: {error}."
            return False
        self._started, self._note = True, ""
        return True

    def _stop(self, now_s: float) -> None:
        self.close()
        self._not_before_s = now_s

    def _reading(self, index: int, driver: str | None, now_s: float) -> GpuReading | None:
        """None when the GPU was taken out, or fell off the bus."""
        handle = self._ask("nvmlDeviceGetHandleByIndex", index)
        if handle is None:
            return None
        bus = self._ask("nvmlDeviceGetPciInfo", handle)
        pci = pci_address(self._text(getattr(bus, "busId", None)) or "")
        memory = self._memory(handle)
        use = self._ask("nvmlDeviceGetUtilizationRates", handle)
        power, limit = (
            self._ask("nvmlDeviceGetPowerUsage", handle),
            self._ask("nvmlDeviceGetEnforcedPowerLimit", handle),
        )
        bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        sent, received = self._throughput(pci or str(index), handle, now_s)
        total, used = memory or (None, None)
        name = self._text(self._ask("nvmlDeviceGetName", handle))
        return GpuReading(
            pci=pci,
            name=name,
            vendor="nvidia",
            driver=driver,
            # A GPU that answers by name but has no memory of its own shares the PC's (DGX Spark, Jetson).
            unified=True if memory is None and name is not None else None,
            total_bytes=total,
            used_bytes=used,
            busy_percent=None if use is None else float(use.gpu),
            power_w=None if power is None else power / 1000,
            power_limit_w=None if limit is None else limit / 1000,
            temperature_c=self._ask("nvmlDeviceGetTemperature", handle, 0),
            core_mhz=self._ask("nvmlDeviceGetClockInfo", handle, 0),
            memory_mhz=self._ask("nvmlDeviceGetClockInfo", handle, 2),
            throttle=None if bits is None else throttle_reasons(bits),
            pcie_generation=self._ask("nvmlDeviceGetCurrPcieLinkGeneration", handle),
            pcie_width=self._ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
            pcie_sent_bytes_s=sent,
            pcie_received_bytes_s=received,
            processes=self._processes(handle),
        )

    def _memory(self, handle: Any) -> tuple[int, int] | None:
        version = getattr(self._library, "nvmlMemory_v2", None)
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle, version) if version is not None else None
        if memory is None:  # a driver before 510
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        return None if memory is None else memory_of(memory)

    def _processes(self, handle: Any) -> tuple[ProcessMemory, ...] | None:
        lists = [self._ask(f"nvmlDeviceGet{kind}RunningProcesses", handle) for kind in ("Compute", "Graphics")]
        known = [rows for rows in lists if rows is not None]
        return process_rows([row for rows in known for row in rows]) if known else None

    def _throughput(self, key: str, handle: Any, now_s: float) -> tuple[int | None, int | None]:
        last = self._pcie.get(key)
        if last is None or now_s - last[0] >= PCIE_EVERY_S:
            sent, received = (self._ask("nvmlDeviceGetPcieThroughput", handle, counter) for counter in (1, 0))
            last = (now_s, None if sent is None else sent * 1024, None if received is None else received * 1024)
            self._pcie[key] = last
        return last[1], last[2]

    def _ask(self, function: str, *arguments: Any) -> Any:
        """What NVML answers; None when this GPU, driver or account cannot be asked that."""
        call: Callable[..., Any] | None = getattr(self._library, function, None)
        if call is None:
            return None
        try:
            return call(*arguments)
        except self._library.NVMLError:
            return None

    @staticmethod
    def _text(value: Any) -> str | None:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return str(value).rstrip("\0") if value else None
