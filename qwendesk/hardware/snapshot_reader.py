"""Reads all hardware probes and merges their results into one Snapshot."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec
import psutil

from qwendesk.hardware.probes.base import EMPTY_RESULT, HardwareProbe, ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, Snapshot, SystemReading

_logger = logging.getLogger(__name__)
# A process with less GPU memory than this is not looked up by name.
_NAMED_BYTES = 64 * 1024**2
_StructT = TypeVar("_StructT", bound=msgspec.Struct)


def system_probes(platform: str = sys.platform) -> tuple[HardwareProbe, ...]:
    """Return the probes for this system. If several know the same value, the first one counts.

    Each system imports its own, when it is read for the first time.
    """
    from qwendesk.hardware.probes.system import SystemProbe  # noqa: PLC0415

    if platform == "darwin":
        from qwendesk.hardware.probes.macos import MacosProbe  # noqa: PLC0415

        return (MacosProbe(), SystemProbe())
    from qwendesk.hardware.probes.nvidia import NvidiaProbe  # noqa: PLC0415

    if platform == "win32":
        from qwendesk.hardware.probes.windows_d3dkmt import WindowsD3dkmtProbe  # noqa: PLC0415
        from qwendesk.hardware.probes.windows_pdh import WindowsPdhProbe  # noqa: PLC0415

        return (NvidiaProbe(), WindowsD3dkmtProbe(), WindowsPdhProbe(), SystemProbe())
    from qwendesk.hardware.probes.linux_fdinfo import LinuxFdinfoProbe  # noqa: PLC0415
    from qwendesk.hardware.probes.linux_sysfs import LinuxAmdProbe, LinuxIntelProbe  # noqa: PLC0415

    return (NvidiaProbe(), LinuxAmdProbe(), LinuxIntelProbe(), LinuxFdinfoProbe(), SystemProbe())


class SnapshotReader:
    """Owns the probes. Not thread-safe."""

    def __init__(
        self, probes: Sequence[HardwareProbe] | None = None, name_of: Callable[[int], str] | None = None
    ) -> None:
        self._probes = tuple(probes) if probes is not None else None
        self._name_of = name_of or program_name
        self._names: dict[int, str] = {}
        self._broken: set[int] = set()

    def read(self, pid: int | None, now_s: float) -> Snapshot:
        """Take a snapshot; `pid` is the engine's process. Blocks for some milliseconds and never raises."""
        if self._probes is None:
            self._probes = system_probes()
        found = [self._read_probe(index, probe, ProbeRequest(pid, now_s)) for index, probe in enumerate(self._probes)]
        systems = [each.system for each in found if each.system is not None]
        return Snapshot(
            at_s=now_s,
            gpus=self._with_names(join_gpus(reading for each in found for reading in each.gpus)),
            system=merge_known(systems) if systems else SystemReading(),
            notes=tuple(note for each in found for note in each.notes),
        )

    def close(self) -> None:
        for probe in self._probes or ():
            probe.close()

    def _with_names(self, gpus: tuple[GpuReading, ...]) -> tuple[GpuReading, ...]:
        """Add the names of large processes that no probe named, because drivers know only process IDs."""
        seen: dict[int, str] = {}

        def with_name(row: ProcessMemory) -> ProcessMemory:
            if row.name or (row.dedicated_bytes or 0) < _NAMED_BYTES:
                return row
            seen[row.pid] = self._names.get(row.pid) or self._name_of(row.pid)
            return msgspec.structs.replace(row, name=seen[row.pid])

        result = tuple(
            msgspec.structs.replace(gpu, processes=tuple(with_name(row) for row in gpu.processes))
            if gpu.processes
            else gpu
            for gpu in gpus
        )
        self._names = seen  # the system reuses process IDs
        return result

    def _read_probe(self, index: int, probe: HardwareProbe, request: ProbeRequest) -> ProbeResult:
        """Read one probe. A probe that raises is logged and not read again."""
        if index in self._broken:
            return EMPTY_RESULT
        try:
            return probe.read(request)
        except Exception:
            self._broken.add(index)
            _logger.exception("%s failed and is not read again", type(probe).__name__)
            return EMPTY_RESULT


def read_gpus() -> tuple[GpuReading, ...]:
    """Read the probes of this system once, for a command that needs no later reading. Blocks, and never raises."""
    reader = SnapshotReader()
    try:
        return reader.read(None, time.monotonic()).gpus
    finally:
        reader.close()


def program_name(pid: int) -> str:
    """Return the file name of a process; "" if it has exited or can't be read."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""


def join_gpus(readings: Iterable[GpuReading]) -> tuple[GpuReading, ...]:
    """Merge readings into one for each GPU, sorted by its key.

    Readings with the same PCI address or LUID are of the same GPU; so are two that a third reading connects.
    """
    groups: list[list[GpuReading]] = []
    for reading in readings:
        same = [group for group in groups if any(_is_same(reading, each) for each in group)]
        groups = [group for group in groups if group not in same]
        groups.append([*(each for group in same for each in group), reading])
    return tuple(sorted((_join_group(group) for group in groups if _is_card(group)), key=lambda gpu: gpu.key))


def _is_card(group: list[GpuReading]) -> bool:
    """Return False for software renderers, which only the performance counters list."""
    return any(each.pci or each.name or each.total_bytes for each in group)


def _is_same(one: GpuReading, other: GpuReading) -> bool:
    return (one.pci is not None and one.pci == other.pci) or (one.luid is not None and one.luid == other.luid)


def _join_group(group: list[GpuReading]) -> GpuReading:
    processes = [each.processes for each in group if each.processes is not None]
    joined = merge_known(group)
    return msgspec.structs.replace(joined, processes=_join_processes(processes) if processes else None)


def _join_processes(lists: Iterable[tuple[ProcessMemory, ...]]) -> tuple[ProcessMemory, ...]:
    by_pid: dict[int, list[ProcessMemory]] = {}
    for rows in lists:
        for row in rows:
            by_pid.setdefault(row.pid, []).append(row)
    return tuple(merge_known(rows) for rows in by_pid.values())


def merge_known(values: Sequence[_StructT]) -> _StructT:
    """Return the first value with each unknown field (None or "") filled from the later ones."""
    known: dict[str, object] = {}
    for value in values:
        for name in value.__struct_fields__:
            if known.get(name) in (None, ""):
                known[name] = getattr(value, name)
    return type(values[0])(**known)
