"""Asks every probe and joins what they found into one Snapshot."""

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec
import psutil

from qwendesk.hardware.probes.base import NOTHING, Ask, Found, Probe
from qwendesk.hardware.probes.linux_amd import LinuxAmdProbe
from qwendesk.hardware.probes.linux_fdinfo import LinuxFdinfoProbe
from qwendesk.hardware.probes.linux_intel import LinuxIntelProbe
from qwendesk.hardware.probes.macos import MacosProbe
from qwendesk.hardware.probes.nvidia import NvidiaProbe
from qwendesk.hardware.probes.system import SystemProbe
from qwendesk.hardware.probes.windows_d3dkmt import WindowsD3dkmtProbe
from qwendesk.hardware.probes.windows_pdh import WindowsPdhProbe
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, Snapshot, SystemReading

_logger = logging.getLogger(__name__)
_NAMED_BYTES = 64 * 1024**2
"""Who holds less of a GPU is not worth a question."""
_StructT = TypeVar("_StructT", bound=msgspec.Struct)


def probes_here(platform: str = sys.platform) -> tuple[Probe, ...]:
    """The probes of this system. Of two that know the same value, the one that stands first is believed."""
    if platform == "win32":
        return (NvidiaProbe(), WindowsD3dkmtProbe(), WindowsPdhProbe(), SystemProbe())
    if platform == "darwin":
        return (MacosProbe(), SystemProbe())
    return (NvidiaProbe(), LinuxAmdProbe(), LinuxIntelProbe(), LinuxFdinfoProbe(), SystemProbe())


class Looking:
    """Owns the probes. Not for two threads at once."""

    def __init__(self, probes: Sequence[Probe] | None = None, name_of: Callable[[int], str] | None = None) -> None:
        self._probes = tuple(probes_here() if probes is None else probes)
        self._name_of = name_of or program_name
        self._names: dict[int, str] = {}
        self._broken: set[int] = set()

    def look(self, pid: int | None, now_s: float) -> Snapshot:
        """One snapshot; `pid` is the engine's process. Blocks for some milliseconds, raises nothing."""
        found = [self._read(index, probe, Ask(pid, now_s)) for index, probe in enumerate(self._probes)]
        systems = [each.system for each in found if each.system is not None]
        return Snapshot(
            at_s=now_s,
            gpus=self._with_names(join_gpus(reading for each in found for reading in each.gpus)),
            system=first_known(systems) if systems else SystemReading(),
            notes=tuple(note for each in found for note in each.notes),
        )

    def close(self) -> None:
        for probe in self._probes:
            probe.close()

    def _with_names(self, gpus: tuple[GpuReading, ...]) -> tuple[GpuReading, ...]:
        """Names the large processes that no probe named (drivers know only numbers); each is asked for once."""
        seen: dict[int, str] = {}

        def named(row: ProcessMemory) -> ProcessMemory:
            if row.name or (row.dedicated_bytes or 0) < _NAMED_BYTES:
                return row
            seen[row.pid] = self._names.get(row.pid) or self._name_of(row.pid)
            return msgspec.structs.replace(row, name=seen[row.pid])

        result = tuple(
            msgspec.structs.replace(gpu, processes=tuple(named(row) for row in gpu.processes)) if gpu.processes else gpu
            for gpu in gpus
        )
        self._names = seen  # numbers are given again to new programs once the old ones have ended
        return result

    def _read(self, index: int, probe: Probe, ask: Ask) -> Found:
        """A probe that breaks its word and raises is left out from then on, and the log says why."""
        if index in self._broken:
            return NOTHING
        try:
            return probe.read(ask)
        except Exception:
            self._broken.add(index)
            _logger.exception("%s failed and is not asked again", type(probe).__name__)
            return NOTHING


def program_name(pid: int) -> str:
    """The program's file name; "" for one that ended or is not ours to ask."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""


def join_gpus(readings: Iterable[GpuReading]) -> tuple[GpuReading, ...]:
    """One reading for each GPU, sorted by its key.

    Readings with the same PCI address or LUID are the same GPU, directly or through a third that knows both.
    """
    groups: list[list[GpuReading]] = []
    for reading in readings:
        same = [group for group in groups if any(_is_same(reading, each) for each in group)]
        groups = [group for group in groups if group not in same]
        groups.append([*(each for group in same for each in group), reading])
    return tuple(sorted((_joined(group) for group in groups if _is_card(group)), key=lambda gpu: gpu.key))


def _is_card(group: list[GpuReading]) -> bool:
    """Performance counters also know adapters that no other probe lists (software renderers): those are left out."""
    return any(each.pci or each.name or each.total_bytes for each in group)


def _is_same(one: GpuReading, other: GpuReading) -> bool:
    return (one.pci is not None and one.pci == other.pci) or (one.luid is not None and one.luid == other.luid)


def _joined(group: list[GpuReading]) -> GpuReading:
    processes = [each.processes for each in group if each.processes is not None]
    joined = first_known(group)
    return msgspec.structs.replace(joined, processes=_join_processes(processes) if processes else None)


def _join_processes(lists: Iterable[tuple[ProcessMemory, ...]]) -> tuple[ProcessMemory, ...]:
    by_pid: dict[int, list[ProcessMemory]] = {}
    for rows in lists:
        for row in rows:
            by_pid.setdefault(row.pid, []).append(row)
    return tuple(first_known(rows) for rows in by_pid.values())


def first_known(values: Sequence[_StructT]) -> _StructT:
    """The first value with each unknown field (None or "") filled from the next ones that know it."""
    known: dict[str, object] = {}
    for value in values:
        for name in value.__struct_fields__:
            if known.get(name) in (None, ""):
                known[name] = getattr(value, name)
    return type(values[0])(**known)
