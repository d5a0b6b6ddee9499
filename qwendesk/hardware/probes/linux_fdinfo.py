"""Which process holds how much GPU memory on Linux, and how busy the engine keeps the GPU: /proc/PID/fdinfo of AMD
(amdgpu) and Intel (xe, i915)."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from qwendesk.hardware.probes.base import NOTHING, Ask, Found, list_folder, number_in, pci_address, read_text
from qwendesk.hardware.probes.fdinfo_busy import EngineTime, busy_percent, engine_times
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory

OTHERS_EVERY_S = 10.0
"""Looking through every process costs milliseconds; the engine's own is read each time."""
_UNITS = {"": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_VRAM = re.compile(r"^drm-(?:resident|memory)-(?:vram|local)\d*$")
_SHARED = re.compile(r"^drm-(?:resident|memory)-(?:gtt|system)\d*$")
_EVICTED = ("amd-evicted-vram", "amd-memory-visible-evicted")


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One open GPU client. A process that passes its descriptor on, or opens it twice, shows one client again."""

    pci: str
    client_id: str
    vram_bytes: int | None = None
    shared_bytes: int | None = None
    evicted_bytes: int | None = None
    engines: tuple[EngineTime, ...] = ()


def parse(text: str) -> Client | None:
    """One fdinfo file; None for what is no GPU client. Old kernels write drm-memory-*, newer ones drm-resident-*."""
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


def by_gpu(clients: Iterable[Client], pid: int, name: str = "") -> dict[str, ProcessMemory]:
    """What the process holds of each GPU, by PCI address; a client seen through several descriptors counts once."""
    once = {(client.pci, client.client_id): client for client in clients}
    found: dict[str, list[Client]] = {}
    for client in once.values():
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
    """Processes of other people are not ours to read: they stay unknown. Of the load only the engine's is told, from
    the second look on; where the driver tells that of all (amdgpu), that is believed."""

    def __init__(self, root: Path = Path("/proc"), *, devices: str = "/dev/dri/") -> None:
        self._root, self._devices = root, devices
        self._others: dict[int, dict[str, ProcessMemory]] = {}
        self._looked_s: float | None = None
        self._worked: tuple[int, float, Sequence[Client]] | None = None
        """The engine's process, when it was looked at, and its clients then."""

    def read(self, ask: Ask) -> Found:
        if not self._root.is_dir():
            return NOTHING
        if self._looked_s is None or ask.now_s - self._looked_s >= OTHERS_EVERY_S:
            pids = (int(name) for name in list_folder(self._root) if name.isdigit())
            self._others = {
                pid: memory for pid in pids if pid != ask.pid and (memory := self._process(pid, self._clients(pid)))
            }
            self._looked_s = ask.now_s
        everyone = dict(self._others)
        busy: dict[str, float] = {}
        if ask.pid is not None:
            clients = self._clients(ask.pid)
            everyone[ask.pid] = self._process(ask.pid, clients)
            busy = self._busy(ask.pid, ask.now_s, clients)
        gpus: dict[str, list[ProcessMemory]] = {}
        for memory in everyone.values():
            for pci, row in memory.items():
                gpus.setdefault(pci, []).append(row)
        return Found(
            gpus=tuple(
                GpuReading(pci=pci, busy_percent=busy.get(pci), processes=tuple(rows)) for pci, rows in gpus.items()
            )
        )

    def close(self) -> None:
        """Nothing stays open."""

    def _clients(self, pid: int) -> list[Client]:
        texts = (read_text(self._root / str(pid) / "fdinfo" / name) for name in self._gpu_descriptors(pid))
        return [client for text in texts if text and (client := parse(text)) is not None]

    def _busy(self, pid: int, now_s: float, clients: Sequence[Client]) -> dict[str, float]:
        """Percent of each GPU's busiest engine since the last look, by PCI address."""
        last, self._worked = self._worked, (pid, now_s, clients)
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

    def _process(self, pid: int, clients: Sequence[Client]) -> dict[str, ProcessMemory]:
        if not clients:
            return {}
        return by_gpu(clients, pid, read_text(self._root / str(pid) / "comm") or "")

    def _gpu_descriptors(self, pid: int) -> Iterator[str]:
        folder = self._root / str(pid) / "fd"
        for name in list_folder(folder):
            try:
                target = os.readlink(folder / name)  # noqa: PTH115 - half the cost, done for every descriptor
            except OSError:
                continue
            if target.startswith(self._devices):
                yield name


def _sum(fields: dict[str, str], wanted: re.Pattern[str]) -> int | None:
    """Kernels that write both drm-resident-* and drm-memory-* mean the same memory: the first kind found counts."""
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
