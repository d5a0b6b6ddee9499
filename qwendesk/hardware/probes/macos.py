"""Reads Apple's GPUs. They use the RAM, and Metal recommends how much of it one program should use."""

import ctypes
import ctypes.util
import struct
import sys
from collections.abc import Callable
from typing import Any

from qwendesk.hardware.probes.base import EMPTY_RESULT, ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading, SystemReading

# Divisor of two thirds of the RAM, for an unknown limit. Metal recommends two thirds to three quarters.
_NORMAL_SHARE = 3


def swap_used(usage: bytes) -> int | None:
    """Return the used bytes in sysctl's vm.swapusage: struct xsw_usage {u64 total, available, used; ...}."""
    return int(struct.unpack_from("=QQQ", usage)[2]) if len(usage) >= 24 else None


def working_set(ram_bytes: int | None, wired_limit_mb: int | None, metal_bytes: int | None) -> int | None:
    """Return the most bytes that one program should use.

    It is the limit that the user set (iogpu.wired_limit_mb), else Metal's, else a share of the RAM.
    """
    if wired_limit_mb:
        return wired_limit_mb * 1024**2
    if metal_bytes:
        return metal_bytes
    return None if ram_bytes is None else ram_bytes * 2 // _NORMAL_SHARE


def chip_reading(brand: str, ram_bytes: int | None, set_bytes: int | None) -> GpuReading:
    """Return the reading of an Apple GPU. Its memory is the RAM, and its budget the working set."""
    return GpuReading(
        name=brand or "Apple GPU", vendor="apple", unified=True, total_bytes=ram_bytes, budget_bytes=set_bytes
    )


class MacosProbe:
    """`sysctl` returns the raw bytes of a name, or None. `metal` returns the bytes that Metal recommends, or None."""

    def __init__(
        self, sysctl: Callable[[str], bytes | None] | None = None, metal: Callable[[], int | None] | None = None
    ) -> None:
        on_mac = sys.platform == "darwin"
        self._sysctl = sysctl or (_sysctl if on_mac else None)
        self._metal = metal or (_metal_working_set if on_mac else None)
        self._gpu: GpuReading | None = None

    def read(self, _request: ProbeRequest) -> ProbeResult:
        if self._sysctl is None:
            return EMPTY_RESULT
        if self._gpu is None:
            self._gpu = self._read_gpu()
        usage = self._sysctl("vm.swapusage")
        system = SystemReading(swap_used_bytes=None if usage is None else swap_used(usage))
        return ProbeResult(gpus=() if self._gpu.name == "" else (self._gpu,), system=system)

    def close(self) -> None:
        """Do nothing: no resource stays open."""

    def _read_gpu(self) -> GpuReading:
        """Return what doesn't change while the app runs.

        The name is "" on an Intel Mac: there is no reading then, because the GPU has no unified memory.
        """
        brand = (self._sysctl("machdep.cpu.brand_string") or b"") if self._sysctl else b""
        text = brand.rstrip(b"\0").decode("utf-8", "replace")
        if not text.startswith("Apple"):
            return GpuReading(name="")
        ram = self._number("hw.memsize")
        metal = self._metal() if self._metal is not None else None
        return chip_reading(text, ram, working_set(ram, self._number("iogpu.wired_limit_mb"), metal))

    def _number(self, name: str) -> int | None:
        raw = self._sysctl(name) if self._sysctl is not None else None
        return int.from_bytes(raw, sys.byteorder) if raw else None


def _sysctl(name: str) -> bytes | None:
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    size = ctypes.c_size_t(0)
    if library.sysctlbyname(name.encode(), None, ctypes.byref(size), None, 0):
        return None
    buffer = ctypes.create_string_buffer(size.value)
    if library.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0):
        return None
    return buffer.raw[: size.value]


def _metal_working_set() -> int | None:
    """Return recommendedMaxWorkingSetSize of the default Metal device, read through the Objective-C runtime."""
    try:
        metal: Any = ctypes.CDLL("/System/Library/Frameworks/Metal.framework/Metal")
        runtime: Any = ctypes.CDLL(ctypes.util.find_library("objc"))
    except OSError:
        return None
    metal.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p
    device = metal.MTLCreateSystemDefaultDevice()
    if not device:
        return None
    runtime.sel_registerName.restype = ctypes.c_void_p
    runtime.sel_registerName.argtypes = [ctypes.c_char_p]
    send = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)(("objc_msgSend", runtime))
    return int(send(device, runtime.sel_registerName(b"recommendedMaxWorkingSetSize"))) or None
