"""Reads the GPU memory of each process and the engine's GPU load on Linux.

The source is /proc/PID/fdinfo, for AMD (amdgpu) and Intel (xe, i915). amdgpu and i915 count the nanoseconds that each
kind of GPU engine has worked (drm-engine-*). xe counts GPU cycles (drm-cycles-*), and also all cycles that passed.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.hardware.probes.base import (
    EMPTY_RESULT,
    ProbeRequest,
    ProbeResult,
    list_folder,
    number_in,
    pci_address,
    read_text,
)
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory

# Interval for reading other processes, which takes milliseconds. The engine's process is read every time.
OTHERS_EVERY_S = 10.0
_UNITS = {"": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_VRAM = re.compile(r"^drm-(?:resident|memory)-(?:vram|local)\d*$")
_SHARED = re.compile(r"^drm-(?:resident|memory)-(?:gtt|system)\d*$")
_EVICTED = ("amd-evicted-vram", "amd-memory-visible-evicted")
_NS_PER_S = 1_000_000_000
_TIME, _CYCLES, _TOTAL, _CAPACITY = "drm-engine-", "drm-cycles-", "drm-total-cycles-", "drm-engine-capacity-"


class EngineTime(msgspec.Struct, frozen=True):
    """Work of one client on one kind of GPU engine since the client was opened."""

    engine: str
    worked: int
    """Nanoseconds, or cycles if `passed` is not None."""
    passed: int | None = None
    """Total cycles that passed; None if the driver counts nanoseconds."""
    capacity: int = 1
    """Number of engines of this kind."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """An open GPU client. If its descriptor was duplicated or passed to another process, it appears repeatedly."""

    pci: str
    client_id: str
    vram_bytes: int | None = None
    shared_bytes: int | None = None
    evicted_bytes: int | None = None
    engines: tuple[EngineTime, ...] = ()


def parse_client(text: str) -> Client | None:
    """Return the client in the text of an fdinfo file; None if it is not a GPU client.

    Old kernels write drm-memory-*, newer ones drm-resident-*.
    """
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    pci = pci_address(fields.get("drm-pdev", ""))
    client_id = fields.get("drm-client-id", "").strip()
    if pci is None or not client_id:
        return None
    return Client(
        pci=pci,
        client_id=client_id,
        vram_bytes=_sum(fields, _VRAM),
        shared_bytes=_sum(fields, _SHARED),
        evicted_bytes=next((_bytes(fields[name]) for name in _EVICTED if name in fields), None),
        engines=engine_times(fields),
    )


def sum_by_gpu(clients: Iterable[Client], pid: int, name: str = "") -> dict[str, ProcessMemory]:
    """Return a process's memory of each GPU by PCI address. Clients with several descriptors count once."""
    distinct = {(client.pci, client.client_id): client for client in clients}
    found: dict[str, list[Client]] = {}
    for client in distinct.values():
        found.setdefault(client.pci, []).append(client)
    return {
        pci: ProcessMemory(
            pid=pid,
            name=name,
            dedicated_bytes=_total(each.vram_bytes for each in group),
            shared_bytes=_total(each.shared_bytes for each in group),
            evicted_bytes=_total(each.evicted_bytes for each in group),
        )
        for pci, group in found.items()
    }


class LinuxFdinfoProbe:
    """Reads the processes of the current user; those of others can't be read.

    The load is that of the engine's process only, known from the second reading on. If the driver reports the total
    load (amdgpu), the snapshot uses that instead.
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root
        self._others: dict[int, dict[str, ProcessMemory]] = {}
        self._others_read_at_s: float | None = None
        self._last_reading: tuple[int, float, Sequence[Client]] | None = None
        """The engine's process ID, the time of its latest reading, and its clients at that time."""

    def read(self, request: ProbeRequest) -> ProbeResult:
        if not self._root.is_dir():
            return EMPTY_RESULT
        if self._others_read_at_s is None or request.now_s - self._others_read_at_s >= OTHERS_EVERY_S:
            pids = (int(name) for name in list_folder(self._root) if name.isdigit())
            self._others = {
                pid: memory
                for pid in pids
                if pid != request.pid and (memory := self._memory_by_gpu(pid, self._clients(pid)))
            }
            self._others_read_at_s = request.now_s
        everyone = dict(self._others)
        busy: dict[str, float] = {}
        if request.pid is not None:
            clients = self._clients(request.pid)
            everyone[request.pid] = self._memory_by_gpu(request.pid, clients)
            busy = self._engine_load(request.pid, request.now_s, clients)
        gpus: dict[str, list[ProcessMemory]] = {}
        for memory in everyone.values():
            for pci, row in memory.items():
                gpus.setdefault(pci, []).append(row)
        return ProbeResult(
            gpus=tuple(
                GpuReading(pci=pci, busy_percent=busy.get(pci), processes=tuple(rows)) for pci, rows in gpus.items()
            )
        )

    def close(self) -> None:
        """Do nothing: no resource stays open."""

    def _clients(self, pid: int) -> list[Client]:
        texts = (read_text(self._root / str(pid) / "fdinfo" / name) for name in self._gpu_descriptors(pid))
        return [client for text in texts if text and (client := parse_client(text)) is not None]

    def _engine_load(self, pid: int, now_s: float, clients: Sequence[Client]) -> dict[str, float]:
        """Return the load of each GPU's busiest engine since the latest reading, in percent by PCI address."""
        last, self._last_reading = self._last_reading, (pid, now_s, clients)
        if last is None or last[0] != pid or now_s <= last[1]:
            return {}
        found = {}
        for pci in {client.pci for client in clients}:
            before, now = (
                {each.client_id: each.engines for each in few if each.pci == pci} for few in (last[2], clients)
            )
            percent = busy_percent(before, now, now_s - last[1])
            if percent is not None:
                found[pci] = percent
        return found

    def _memory_by_gpu(self, pid: int, clients: Sequence[Client]) -> dict[str, ProcessMemory]:
        if not clients:
            return {}
        return sum_by_gpu(clients, pid, read_text(self._root / str(pid) / "comm") or "")

    def _gpu_descriptors(self, pid: int) -> Iterator[str]:
        folder = self._root / str(pid) / "fd"
        for name in list_folder(folder):
            try:
                target = os.readlink(folder / name)  # noqa: PTH115 - half the cost, done for every descriptor
            except OSError:
                continue
            if target.startswith("/dev/dri/"):
                yield name


def _sum(fields: dict[str, str], wanted: re.Pattern[str]) -> int | None:
    """Return the sum of the matching sizes in bytes; None if there are none.

    drm-resident-* and drm-memory-* are the same memory, so drm-memory-* only counts without the other.
    """
    for kind in ("resident", "memory"):
        sizes = [_bytes(value) for key, value in fields.items() if kind in key and wanted.match(key)]
        if sizes:
            return sum(sizes)
    return None


def _bytes(text: str) -> int:
    unit = text.strip().rpartition(" ")[2].lower()
    return (number_in(text) or 0) * _UNITS.get(unit, 1)


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def engine_times(fields: Mapping[str, str]) -> tuple[EngineTime, ...]:
    """Return the work on each engine in the fields of one fdinfo file."""
    found = []
    for key, value in fields.items():
        start = next((start for start in (_CAPACITY, _TIME, _CYCLES) if key.startswith(start)), _CAPACITY)
        worked = number_in(value) if start != _CAPACITY else None
        if worked is None:
            continue
        engine = key.removeprefix(start)
        passed = number_in(fields.get(_TOTAL + engine)) if start == _CYCLES else None
        if start == _TIME or passed:
            found.append(EngineTime(engine, worked, passed, _capacity(fields, engine)))
    return tuple(found)


def busy_percent(
    before: Mapping[str, tuple[EngineTime, ...]], now: Mapping[str, tuple[EngineTime, ...]], seconds: float
) -> float | None:
    """Return the load of one GPU's busiest engine in percent, between two readings `seconds` apart.

    `before` and `now` have the work of each client by its ID. Return None if no client is in both with known work.
    """
    shares: dict[str, float] = {}
    for client, times in now.items():
        earlier = {each.engine: each for each in before.get(client, ())}
        for each in times:
            share = _share(earlier.get(each.engine), each, seconds)
            if share is not None:
                shares[each.engine] = shares.get(each.engine, 0.0) + share
    return round(min(max(shares.values()), 1.0) * 100, 1) if shares else None


def _share(before: EngineTime | None, now: EngineTime, seconds: float) -> float | None:
    if before is None or now.worked < before.worked:
        return None
    counts_time = now.passed is None or before.passed is None
    passed = seconds * _NS_PER_S if counts_time else (now.passed or 0) - (before.passed or 0)
    return (now.worked - before.worked) / passed / now.capacity if passed > 0 else None


def _capacity(fields: Mapping[str, str], engine: str) -> int:
    return max(number_in(fields.get(_CAPACITY + engine)) or 1, 1)
