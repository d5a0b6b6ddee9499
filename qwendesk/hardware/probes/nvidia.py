"""Reads NVIDIA GPUs through NVML (module pynvml of nvidia-ml-py), on every system with NVIDIA's driver."""

import importlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from qwendesk.core.translation import tr
from qwendesk.hardware.probes.base import EMPTY_RESULT, ProbeRequest, ProbeResult, pci_address
from qwendesk.hardware.snapshot import GpuReading, NvLink, ProcessMemory, Throttle

# Interval of PCIe throughput measurements. Each blocks for 20 ms, so most readings do without.
PCIE_EVERY_S = 5.0
# Interval in which NVLink is read. A bridge isn't plugged in while the PC runs, but a link may fail.
NVLINK_EVERY_S = 60.0
# Links of a GPU if the library doesn't say how many there can be.
_MOST_NVLINKS = 18
# NVML_NVLINK_DEVICE_TYPE_GPU.
_NVLINK_TO_GPU = 0
# After this time, a missing driver is searched again.
_RETRY_AFTER_S = 60.0
# Bits of nvmlClocksThrottleReasons: GPU idle; software power cap; hardware slowdown and hardware power brake; software
# and hardware thermal slowdown.
_THROTTLE: tuple[tuple[int, Throttle], ...] = (
    (0x01, "idle"),
    (0x04, "power cap"),
    (0x08 | 0x80, "hardware"),
    (0x20 | 0x40, "thermal"),
)


def throttle_reasons(bits: int) -> tuple[Throttle, ...]:
    """Return the throttle reasons that are set, in a fixed order; empty if the clocks aren't throttled."""
    return tuple(name for mask, name in _THROTTLE if bits & mask)


def process_rows(rows: list[Any]) -> tuple[ProcessMemory, ...]:
    """Return one row per process, even if NVML lists it for both graphics and compute. On Windows, bytes are None."""
    found: dict[int, int | None] = {}
    for row in rows:
        used = getattr(row, "usedGpuMemory", None)
        found[row.pid] = max(found.get(row.pid) or 0, used) if used else found.get(row.pid)
    return tuple(ProcessMemory(pid=pid, dedicated_bytes=used) for pid, used in found.items())


def memory_of(memory: Any) -> tuple[int, int]:
    """Return the total and the unavailable bytes. `used` is too small, because version 2 excludes the driver's part."""
    return int(memory.total), int(memory.total) - int(memory.free)


class NvidiaProbe:
    """Reads through `library`, a module with pynvml's functions, which is initialized by the first reading."""

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._started = False
        self._not_before_s: float | None = None
        self._note = ""
        self._pcie: dict[str, tuple[float, int | None, int | None]] = {}
        self._nvlinks: dict[str, tuple[float, tuple[NvLink, ...] | None]] = {}

    def read(self, request: ProbeRequest) -> ProbeResult:
        if not self._started and not self._start(request.now_s):
            return msgspec.structs.replace(EMPTY_RESULT, notes=(self._note,)) if self._note else EMPTY_RESULT
        count = self._call("nvmlDeviceGetCount")
        if count is None:  # the driver was replaced or stopped meanwhile
            self._stop(request.now_s)
            return EMPTY_RESULT
        driver = self._text(self._call("nvmlSystemGetDriverVersion"))
        readings = (self._read_gpu(index, driver, request.now_s) for index in range(count))
        return ProbeResult(gpus=tuple(each for each in readings if each is not None))

    def close(self) -> None:
        if self._started:
            self._call("nvmlShutdown")
            self._started = False

    def _start(self, now_s: float) -> bool:
        if self._not_before_s is not None and now_s < self._not_before_s:
            return False
        try:
            self._library = self._library or importlib.import_module("pynvml")
            self._library.nvmlInit()
        except ImportError:
            self._not_before_s = float("inf")
            self._note = tr("NVIDIA GPUs can't be read: the Python package nvidia-ml-py is missing.")
            return False
        except self._library.NVMLError as error:
            self._not_before_s = now_s + _RETRY_AFTER_S
            missing = type(error).__name__.endswith("LibraryNotFound")
            self._note = "" if missing else tr("The NVIDIA driver doesn't respond: {0}.", error)
            return False
        self._started, self._note = True, ""
        return True

    def _stop(self, now_s: float) -> None:
        self.close()
        self._not_before_s = now_s

    def _read_gpu(self, index: int, driver: str | None, now_s: float) -> GpuReading | None:
        """Return the reading of a GPU; None if it was removed or is lost."""
        handle = self._call("nvmlDeviceGetHandleByIndex", index)
        if handle is None:
            return None
        bus = self._call("nvmlDeviceGetPciInfo", handle)
        pci = pci_address(self._text(getattr(bus, "busId", None)) or "")
        memory = self._read_memory(handle)
        use = self._call("nvmlDeviceGetUtilizationRates", handle)
        power, limit = (
            self._call("nvmlDeviceGetPowerUsage", handle),
            self._call("nvmlDeviceGetEnforcedPowerLimit", handle),
        )
        bits = self._call("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        sent, received = self._read_throughput(pci or str(index), handle, now_s)
        total, used = memory or (None, None)
        name = self._text(self._call("nvmlDeviceGetName", handle))
        capability = self._call("nvmlDeviceGetCudaComputeCapability", handle)
        return GpuReading(
            pci=pci,
            name=name,
            vendor="nvidia",
            driver=driver,
            compute_capability=None if capability is None else (capability[0], capability[1]),
            # A GPU that reports its name but no memory shares the PC's memory (DGX Spark, Jetson).
            unified=True if memory is None and name is not None else None,
            total_bytes=total,
            used_bytes=used,
            busy_percent=None if use is None else float(use.gpu),
            power_w=None if power is None else power / 1000,
            power_limit_w=None if limit is None else limit / 1000,
            temperature_c=self._call("nvmlDeviceGetTemperature", handle, 0),
            core_mhz=self._call("nvmlDeviceGetClockInfo", handle, 0),
            memory_mhz=self._call("nvmlDeviceGetClockInfo", handle, 2),
            throttle=None if bits is None else throttle_reasons(bits),
            pcie_generation=self._call("nvmlDeviceGetCurrPcieLinkGeneration", handle),
            pcie_max_generation=self._call("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            pcie_width=self._call("nvmlDeviceGetCurrPcieLinkWidth", handle),
            pcie_sent_bytes_s=sent,
            pcie_received_bytes_s=received,
            nvlinks=self._known_nvlinks(pci or str(index), handle, now_s),
            processes=self._read_processes(handle),
        )

    def _read_memory(self, handle: Any) -> tuple[int, int] | None:
        version = getattr(self._library, "nvmlMemory_v2", None)
        memory = self._call("nvmlDeviceGetMemoryInfo", handle, version) if version is not None else None
        if memory is None:  # a driver before 510
            memory = self._call("nvmlDeviceGetMemoryInfo", handle)
        return None if memory is None else memory_of(memory)

    def _read_processes(self, handle: Any) -> tuple[ProcessMemory, ...] | None:
        lists = [self._call(f"nvmlDeviceGet{kind}RunningProcesses", handle) for kind in ("Compute", "Graphics")]
        known = [rows for rows in lists if rows is not None]
        return process_rows([row for rows in known for row in rows]) if known else None

    def _read_throughput(self, key: str, handle: Any, now_s: float) -> tuple[int | None, int | None]:
        last = self._pcie.get(key)
        if last is None or now_s - last[0] >= PCIE_EVERY_S:
            sent, received = (self._call("nvmlDeviceGetPcieThroughput", handle, counter) for counter in (1, 0))
            last = (now_s, None if sent is None else sent * 1024, None if received is None else received * 1024)
            self._pcie[key] = last
        return last[1], last[2]

    def _known_nvlinks(self, key: str, handle: Any, now_s: float) -> tuple[NvLink, ...] | None:
        last = self._nvlinks.get(key)
        if last is None or now_s - last[0] >= NVLINK_EVERY_S:
            last = (now_s, self._read_nvlinks(handle))
            self._nvlinks[key] = last
        return last[1]

    def _read_nvlinks(self, handle: Any) -> tuple[NvLink, ...] | None:
        """Return the active links by the device at their other end; None for a GPU or driver without NVLink."""
        ends: Counter[str | None] = Counter()
        for link in range(getattr(self._library, "NVML_NVLINK_MAX_LINKS", _MOST_NVLINKS)):
            is_active = self._call("nvmlDeviceGetNvLinkState", handle, link)
            if is_active is None:  # there is no such link
                if link == 0:
                    return None
                break
            if is_active:
                ends[self._nvlink_end(handle, link)] += 1
        return tuple(NvLink(n_links, pci) for pci, n_links in ends.items())

    def _nvlink_end(self, handle: Any, link: int) -> str | None:
        """Return the PCI address of the GPU at the other end of a link; None if it is a switch."""
        if self._call("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link) not in (None, _NVLINK_TO_GPU):
            return None
        # pynvml's function without a suffix calls version 2 of NVML's.
        remote = self._call("nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
        return pci_address(self._text(getattr(remote, "busId", None)) or "")

    def _call(self, function: str, *arguments: Any) -> Any:
        """Return what an NVML function returns; None if this GPU, driver or account doesn't support it."""
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
