"""Reads graphics adapters on Windows through D3DKMT: name, memory size, PCI address of a LUID, and memory budget."""

import ctypes
import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from qwendesk.hardware.probes.base import EMPTY_RESULT, ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading, Vendor

# Interval for listing the adapters, which rarely change. The budget is read every time.
LIST_EVERY_S = 30.0
# Values of KMTQUERYADAPTERINFOTYPE.
_SEGMENT_SIZE, _ADDRESS, _REGISTRY, _TYPE = 3, 6, 8, 15
_NEEDED = ("D3DKMTEnumAdapters2", "D3DKMTQueryAdapterInfo", "D3DKMTCloseAdapter")
_SOFTWARE, _HYBRID_INTEGRATED, _RENDER = 1 << 2, 1 << 5, 1
# Integrated GPUs reserve at most this much RAM as dedicated memory; the rest that they use is shared.
_MAX_INTEGRATED_BYTES = 512 * 1024**2
# Integrated GPUs of AMD by name in lower case, without "(TM)": the firmware often reserves several GB for them.
_OF_AMD_PROCESSOR = re.compile(r"radeon (?:(?:r\d |(?:rx )?vega \d+ )?graphics|[6-8]\d0m|80\d0s)")


class Luid(ctypes.Structure):
    _fields_ = (("low", ctypes.c_uint32), ("high", ctypes.c_int32))


class AdapterInfo(ctypes.Structure):
    """D3DKMT_ADAPTERINFO."""

    _fields_ = (
        ("handle", ctypes.c_uint32),
        ("luid", Luid),
        ("sources", ctypes.c_uint32),
        ("precise", ctypes.c_int32),
    )


class EnumAdapters2(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint32), ("adapters", ctypes.POINTER(AdapterInfo)))


class QueryAdapterInfo(ctypes.Structure):
    _fields_ = (
        ("handle", ctypes.c_uint32),
        ("type", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_uint32),
    )


class SegmentSize(ctypes.Structure):
    _fields_ = (("dedicated", ctypes.c_uint64), ("system", ctypes.c_uint64), ("shared", ctypes.c_uint64))


class Address(ctypes.Structure):
    _fields_ = (("bus", ctypes.c_uint32), ("device", ctypes.c_uint32), ("function", ctypes.c_uint32))


class Registry(ctypes.Structure):
    _fields_ = (
        ("adapter", ctypes.c_wchar * 260),
        ("bios", ctypes.c_wchar * 260),
        ("dac", ctypes.c_wchar * 260),
        ("chip", ctypes.c_wchar * 260),
    )


class CloseAdapter(ctypes.Structure):
    _fields_ = (("handle", ctypes.c_uint32),)


class VideoMemoryInfo(ctypes.Structure):
    """D3DKMT_QUERYVIDEOMEMORYINFO; group 0 is the adapter's own memory."""

    _fields_ = (
        ("process", ctypes.c_void_p),
        ("handle", ctypes.c_uint32),
        ("group", ctypes.c_int32),
        ("budget", ctypes.c_uint64),
        ("usage", ctypes.c_uint64),
        ("reservation", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("physical", ctypes.c_uint32),
    )


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of one adapter."""

    high: int
    low: int
    flags: int | None = None
    bus: tuple[int, int, int] | None = None
    name: str = ""
    dedicated_bytes: int | None = None
    shared_bytes: int | None = None


def reading_of(adapter: Adapter, budget_bytes: int | None) -> GpuReading | None:
    """Return the reading of an adapter; None for software renderers and adapters that only drive displays."""
    flags = adapter.flags
    if flags is not None and (flags & _SOFTWARE or not flags & _RENDER):
        return None
    unified: bool | None = None
    if adapter.dedicated_bytes is not None:
        unified = (
            bool(flags and flags & _HYBRID_INTEGRATED)
            or adapter.dedicated_bytes <= _MAX_INTEGRATED_BYTES
            or _OF_AMD_PROCESSOR.search(adapter.name.lower().replace("(tm)", "")) is not None
        )
    return GpuReading(
        luid=f"0x{adapter.high & 0xFFFFFFFF:08x}_0x{adapter.low:08x}",
        pci="{:04x}:{:02x}:{:02x}.{:x}".format(0, *adapter.bus) if adapter.bus is not None else None,
        name=adapter.name or None,
        vendor=vendor_of(adapter.name),
        unified=unified,
        total_bytes=adapter.dedicated_bytes or None,
        shared_total_bytes=adapter.shared_bytes or None,
        budget_bytes=budget_bytes or None,
    )


def vendor_of(name: str) -> Vendor | None:
    """Return the vendor according to the adapter's name; None if unknown."""
    words = name.lower()
    if "nvidia" in words or "geforce" in words:
        return "nvidia"
    if "amd" in words or "radeon" in words:
        return "amd"
    return "intel" if "intel" in words else None


class WindowsD3dkmtProbe:
    """Reads through `library`, which has the D3DKMT functions of gdi32.dll.

    `kernel` has OpenProcess and CloseHandle. If `library` is None, Windows' own DLLs are loaded for both.
    """

    def __init__(self, library: Any = None, kernel: Any = None) -> None:
        self._library, self._kernel = library, kernel
        self._listed_at_s: float | None = None
        self._adapters: list[tuple[int, Adapter]] = []
        self._pid: int | None = None
        self._process: int | None = None

    def read(self, request: ProbeRequest) -> ProbeResult:
        if not self._open():
            return EMPTY_RESULT
        if self._listed_at_s is None or request.now_s - self._listed_at_s >= LIST_EVERY_S:
            self._release()
            self._adapters = list(self._list_adapters())
            self._listed_at_s = request.now_s
        self._open_process(request.pid)
        found = (reading_of(adapter, self._budget(handle)) for handle, adapter in self._adapters)
        return ProbeResult(gpus=tuple(each for each in found if each is not None))

    def close(self) -> None:
        self._open_process(None)
        self._release()

    def _open(self) -> bool:
        if self._library is None and sys.platform == "win32":
            try:
                self._library, self._kernel = ctypes.WinDLL("gdi32.dll"), ctypes.WinDLL("kernel32.dll")
                self._kernel.OpenProcess.restype = ctypes.c_void_p
                self._kernel.OpenProcess.argtypes = [ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32]
                self._kernel.CloseHandle.argtypes = [ctypes.c_void_p]
            except OSError:
                self._library = None
        return self._library is not None and all(hasattr(self._library, name) for name in _NEEDED)

    def _list_adapters(self) -> Iterator[tuple[int, Adapter]]:
        # Without a buffer the function returns how many adapters there can be.
        request = EnumAdapters2(0, None)
        if self._library.D3DKMTEnumAdapters2(ctypes.byref(request)) or not request.count:
            return
        buffer = (AdapterInfo * request.count)()
        request.adapters = buffer
        if self._library.D3DKMTEnumAdapters2(ctypes.byref(request)):
            return
        for info in buffer[: request.count]:
            yield info.handle, self._read_adapter(info)

    def _read_adapter(self, info: AdapterInfo) -> Adapter:
        flags = self._query(info.handle, _TYPE, ctypes.c_uint32())
        address = self._query(info.handle, _ADDRESS, Address())
        registry = self._query(info.handle, _REGISTRY, Registry())
        size = self._query(info.handle, _SEGMENT_SIZE, SegmentSize())
        # A virtual adapter is on no bus and reports 0xFFFFFFFF.
        on_bus = address is not None and address.bus < 256 and address.device < 32 and address.function < 8
        return Adapter(
            high=info.luid.high,
            low=info.luid.low,
            flags=None if flags is None else flags.value,
            bus=(address.bus, address.device, address.function) if on_bus else None,
            name="" if registry is None else str(registry.adapter),
            dedicated_bytes=None if size is None else int(size.dedicated),
            shared_bytes=None if size is None else int(size.shared),
        )

    def _query(self, handle: int, kind: int, answer: Any) -> Any:
        request = QueryAdapterInfo(
            handle, kind, ctypes.cast(ctypes.byref(answer), ctypes.c_void_p), ctypes.sizeof(answer)
        )
        return None if self._library.D3DKMTQueryAdapterInfo(ctypes.byref(request)) else answer

    def _budget(self, handle: int) -> int | None:
        """Return how much of the adapter's dedicated memory Windows lets the engine use; None without an engine."""
        if self._process is None or not hasattr(self._library, "D3DKMTQueryVideoMemoryInfo"):
            return None
        request = VideoMemoryInfo(process=self._process, handle=handle, group=0)
        failed = self._library.D3DKMTQueryVideoMemoryInfo(ctypes.byref(request))
        return None if failed else int(request.budget)

    def _open_process(self, pid: int | None) -> None:
        """Open a handle to the engine's process (PROCESS_QUERY_INFORMATION), and close the previous one."""
        if pid == self._pid:
            return
        if self._process:
            self._kernel.CloseHandle(self._process)
        self._pid = pid
        self._process = (self._kernel.OpenProcess(0x400, 0, pid) or None) if pid and self._kernel is not None else None

    def _release(self) -> None:
        for handle, _ in self._adapters:
            self._library.D3DKMTCloseAdapter(ctypes.byref(CloseAdapter(handle)))
        self._adapters = []
