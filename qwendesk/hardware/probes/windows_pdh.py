"""Reads GPU memory and load on Windows from performance counters (PDH), with one query that stays open."""

import ctypes
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from qwendesk.core.translation import tr
from qwendesk.hardware.probes.base import EMPTY_RESULT, ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory

COUNTERS: Mapping[str, str] = {
    "process_dedicated": r"\GPU Process Memory(*)\Dedicated Usage",
    "process_shared": r"\GPU Process Memory(*)\Shared Usage",
    "adapter_dedicated": r"\GPU Adapter Memory(*)\Dedicated Usage",
    "adapter_shared": r"\GPU Adapter Memory(*)\Shared Usage",
    "busy": r"\GPU Engine(*)\Utilization Percentage",
}
_INSTANCE = re.compile(
    r"^(?:pid_(?P<pid>\d+)_)?luid_(?P<high>0x[0-9a-f]+)_(?P<low>0x[0-9a-f]+)_phys_\d+", re.IGNORECASE
)
# Instance of "\GPU Engine": a row for each process on each engine (3D, compute, copy, video) of an adapter.
_ENGINE = re.compile(r"^pid_\d+_luid_(0x[0-9a-f]+_0x[0-9a-f]+)_phys_(\d+_eng_\d+)", re.IGNORECASE)
_FORMAT_LARGE = 0x400
_OK, _MORE_DATA, _NO_DATA = 0, 0x800007D2, 0x800007D5
# PDH_CSTATUS_VALID_DATA and PDH_CSTATUS_NEW_DATA.
_VALID = (0, 1)
# Processes may start between asking for the size and reading.
_ATTEMPTS = 3
_RETRY_AFTER_S = 60.0
_HANDLE = _POINTER = ctypes.c_void_p
# Functions of pdh.dll with the types of their arguments. The English one, because Windows translates counters.
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "PdhOpenQueryW": (ctypes.c_wchar_p, ctypes.c_size_t, _POINTER),
    "PdhAddEnglishCounterW": (_HANDLE, ctypes.c_wchar_p, ctypes.c_size_t, _POINTER),
    "PdhCollectQueryData": (_HANDLE,),
    "PdhGetFormattedCounterArrayW": (_HANDLE, ctypes.c_uint32, _POINTER, _POINTER, _POINTER),
    "PdhCloseQuery": (_HANDLE,),
}


def instance_of(name: str) -> tuple[int | None, str] | None:
    """Return the process ID and the LUID of an instance such as "pid_4711_luid_0x00000000_0x0000D3F2_phys_0".

    The process ID is None for an adapter's instance. Return None for other names.
    """
    found = _INSTANCE.match(name)
    if found is None:
        return None
    luid = f"{found['high']}_{found['low']}".lower()
    return (int(found["pid"]) if found["pid"] else None), luid


def readings(values: Mapping[str, Iterable[tuple[str, int]]]) -> tuple[GpuReading, ...]:
    """Return one reading per LUID, from the (instance, value) rows of each counter in `COUNTERS`.

    Linked adapters of one LUID are added up. Values of a process are limited to those of its adapter, because its
    counters include memory that the driver has moved out.
    """
    adapters: dict[str, dict[str, int]] = {}
    processes: dict[tuple[str, int], dict[str, int]] = {}
    busy = busy_percents(values.get("busy", ()))
    for luid in busy:
        adapters.setdefault(luid, {})
    for counter, rows in values.items():
        if counter == "busy":
            continue
        for name, n_bytes in rows:
            parsed = instance_of(name)
            if parsed is None:
                continue
            pid, luid = parsed
            sums = adapters.setdefault(luid, {})
            if pid is not None:
                sums = processes.setdefault((luid, pid), {})
            sums[counter] = sums.get(counter, 0) + n_bytes
    return tuple(_reading(luid, totals, processes, busy.get(luid)) for luid, totals in adapters.items())


def busy_percents(rows: Iterable[tuple[str, int]]) -> dict[str, float]:
    """Return the load of each adapter in percent by LUID, calculated as in Task Manager.

    The processes on one engine are added up. The busiest engine counts, because the engines work in parallel.
    """
    engines: dict[tuple[str, str], int] = {}
    for name, percent in rows:
        found = _ENGINE.match(name)
        if found is not None:
            key = (found[1].lower(), found[2].lower())
            engines[key] = engines.get(key, 0) + percent
    busiest: dict[str, float] = {}
    for (luid, _), percent in engines.items():
        busiest[luid] = max(busiest.get(luid, 0.0), min(float(percent), 100.0))
    return busiest


def _reading(
    luid: str,
    totals: Mapping[str, int],
    processes: Mapping[tuple[str, int], dict[str, int]],
    busy_percent: float | None,
) -> GpuReading:
    dedicated, shared = totals.get("adapter_dedicated"), totals.get("adapter_shared")
    rows = tuple(
        ProcessMemory(
            pid=pid,
            dedicated_bytes=_capped(found.get("process_dedicated"), dedicated),
            shared_bytes=_capped(found.get("process_shared"), shared),
        )
        for (where, pid), found in processes.items()
        if where == luid
    )
    return GpuReading(
        luid=luid, used_bytes=dedicated, shared_used_bytes=shared, busy_percent=busy_percent, processes=rows
    )


def _capped(n_bytes: int | None, most: int | None) -> int | None:
    return n_bytes if n_bytes is None or most is None else min(n_bytes, most)


class CounterValue(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE with its 64-bit member."""

    _fields_ = (("status", ctypes.c_uint32), ("large", ctypes.c_int64))


class CounterItem(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE_ITEM_W."""

    _fields_ = (("name", ctypes.c_wchar_p), ("value", CounterValue))


class WindowsPdhProbe:
    """Reads through `library`, which has the functions of pdh.dll. None loads pdh.dll, which only Windows has."""

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._query = ctypes.c_void_p()
        self._counters: dict[str, ctypes.c_void_p] = {}
        self._not_before_s: float | None = None
        self._note = ""

    def read(self, request: ProbeRequest) -> ProbeResult:
        if not self._counters and not self._open(request.now_s):
            return ProbeResult(notes=(self._note,)) if self._note else EMPTY_RESULT
        status = self._library.PdhCollectQueryData(self._query) & 0xFFFFFFFF
        if status == _NO_DATA:  # no process uses a GPU at the moment
            return EMPTY_RESULT
        if status != _OK:
            self.close()
            self._not_before_s = request.now_s + _RETRY_AFTER_S
            return EMPTY_RESULT
        return ProbeResult(
            gpus=readings({name: self._counter_values(handle) for name, handle in self._counters.items()})
        )

    def close(self) -> None:
        if self._query.value:
            self._library.PdhCloseQuery(self._query)
            self._query = ctypes.c_void_p()
        self._counters.clear()

    def _open(self, now_s: float) -> bool:
        if self._not_before_s is not None and now_s < self._not_before_s:
            return False
        self._not_before_s = now_s + _RETRY_AFTER_S
        if self._library is None and sys.platform == "win32":
            try:
                self._library = ctypes.WinDLL("pdh.dll")
            except OSError as error:
                self._note = tr("Windows performance counters can't be opened: {0}.", error)
            else:
                for name, types in _FUNCTIONS.items():
                    if hasattr(self._library, name):
                        getattr(self._library, name).argtypes = types
        if self._library is None or not all(hasattr(self._library, name) for name in _FUNCTIONS):
            return False
        if self._library.PdhOpenQueryW(None, 0, ctypes.byref(self._query)) & 0xFFFFFFFF != _OK:
            self._note = tr("Windows performance counters don't respond.")
            return False
        for name, path in COUNTERS.items():
            handle = ctypes.c_void_p()
            if self._library.PdhAddEnglishCounterW(self._query, path, 0, ctypes.byref(handle)) & 0xFFFFFFFF == _OK:
                self._counters[name] = handle
        if not self._counters:
            self.close()
            self._note = tr(
                "Windows' performance counters for GPUs are missing, so the used GPU memory can't be read. "
                "An administrator can rebuild them with the command lodctr /R."
            )
        else:
            self._note = ""
        return bool(self._counters)

    def _counter_values(self, counter: ctypes.c_void_p) -> list[tuple[str, int]]:
        """Return the instances of a counter with values; empty if it has no data or grows too fast to be read."""
        for _ in range(_ATTEMPTS):
            # Only a call with size 0 returns the size that is needed.
            size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
            if self._read_array(counter, size, count, None) != _MORE_DATA:
                return []
            buffer = ctypes.create_string_buffer(size.value)
            status = self._read_array(counter, size, count, buffer)
            if status == _OK:
                items = ctypes.cast(buffer, ctypes.POINTER(CounterItem))
                valid = (items[index] for index in range(count.value))
                return [(str(item.name), int(item.value.large)) for item in valid if item.value.status in _VALID]
            if status != _MORE_DATA:
                return []
        return []

    def _read_array(self, counter: ctypes.c_void_p, size: ctypes.c_uint32, count: ctypes.c_uint32, buffer: Any) -> int:
        sizes = ctypes.byref(size), ctypes.byref(count)
        return int(self._library.PdhGetFormattedCounterArrayW(counter, _FORMAT_LARGE, *sizes, buffer)) & 0xFFFFFFFF
