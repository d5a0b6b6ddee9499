"""The state of the meters, computed from a hardware snapshot and the engine's report of the load."""

import sys
from collections.abc import Mapping, Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo, Segment, SegmentKind
from qwendesk.engine.protocol import Allocation, LoadReport
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, Snapshot
from qwendesk.hardware.spill import GpuAllocation, SpillState

# How long samples are kept.
HISTORY_S = 300.0
# A program that took less than this since the load is not named.
_GROWN_BYTES = 128 * 1024**2


class GpuBar(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU's memory, stacked; the segments add up to `total_bytes`."""

    gpu: GpuReading
    total_bytes: int
    used_bytes: int
    excess_bytes: int = 0
    """Bytes of the model in shared memory."""
    segments: tuple[Segment, ...] = ()


class VramConsumer(msgspec.Struct, frozen=True):
    """A program that took video memory since the model was loaded. Its name is "" if the system doesn't report it."""

    name: str
    pid: int | None
    n_bytes: int


class Spill(msgspec.Struct, frozen=True, kw_only=True):
    """A spill and what it costs."""

    state: SpillState
    excess_bytes: int
    best_tok_s: float | None
    """Best decode speed on this PC; None before the first answer."""
    now_tok_s: float | None
    slowdown: tuple[float, float] | None
    """Lowest and highest factor from user reports; None if it was measured here."""
    consumer: VramConsumer | None


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One sample of the last five minutes. Unknown values are None."""

    at_s: float
    used_bytes: int | None
    """Used video memory of the first GPU, or used RAM on a PC without video memory."""
    total_bytes: int | None
    excess_bytes: int
    tok_s: float | None
    used_by_gpu: Mapping[str, int] = {}
    """Used bytes of each GPU with memory of its own, by the GPU's key."""


class MeterState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the meters show at one moment."""

    snapshot: Snapshot | None = None
    """None before the first sample."""
    state: SpillState | None = None
    """None while no model is loaded."""
    bars: tuple[GpuBar, ...] = ()
    """The GPUs with memory of their own, those of the model first."""
    shared: tuple[Segment, ...] = ()
    """The memory of GPU and CPU, if the model is on GPUs that use the RAM."""
    ram: tuple[Segment, ...] = ()
    """The RAM, with the loaded model in it."""
    spill: Spill | None = None
    consumers: tuple[VramConsumer, ...] = ()
    """VRAM consumers on the model's GPUs since the load."""
    answering: bool = False
    tok_s: float | None = None
    """Decode speed now; None while no answer is generated."""
    threads: int | None = None
    """CPU threads of the loaded model."""
    history: tuple[HistoryPoint, ...] = ()
    """The last five minutes, oldest first."""

    def without_speeds(self) -> "MeterState":
        """Return this state without the speeds that were measured, which are those of another model."""
        history = tuple(msgspec.structs.replace(point, tok_s=None) for point in self.history)
        return msgspec.structs.replace(self, history=history, tok_s=None)

    def with_history(self, before: tuple[HistoryPoint, ...], snapshot: Snapshot) -> "MeterState":
        """Return this state with a point for `snapshot` after those of `before` that are recent enough."""
        first = self.bars[0] if self.bars else None
        point = HistoryPoint(
            at_s=snapshot.at_s,
            used_bytes=first.used_bytes if first is not None else snapshot.system.ram_used_bytes,
            total_bytes=first.total_bytes if first is not None else snapshot.system.ram_total_bytes,
            excess_bytes=sum(bar.excess_bytes for bar in self.bars),
            tok_s=self.tok_s,
            used_by_gpu={bar.gpu.key: bar.used_bytes for bar in self.bars},
        )
        kept = (each for each in before if snapshot.at_s - each.at_s <= HISTORY_S)
        return msgspec.structs.replace(self, history=(*kept, point))


def gpu_allocation(report: LoadReport, device: DeviceInfo, gpu: GpuReading, reserve_bytes: int | None) -> GpuAllocation:
    """Return what the spill rules need to know about one GPU with this load."""
    row = next((each for each in report.allocations if each.device == device.name), None)
    return GpuAllocation(
        unified=device.shares_ram or bool(gpu.unified),
        device_bytes=0 if row is None else row.total_bytes,
        host_bytes=report.host_bytes,
        reserve_bytes=reserve_bytes,
    )


def used_devices(report: LoadReport, devices: Sequence[DeviceInfo]) -> tuple[DeviceInfo, ...]:
    """Return the GPUs the model is on: where the engine allocated memory, or all if it didn't report that."""
    gpus = tuple(device for device in devices if device.kind in ("gpu", "igpu"))
    if not report.allocations:
        return gpus if report.options.n_gpu_layers != 0 and "none" not in report.options.devices else ()
    by_name = {row.device: row.total_bytes for row in report.allocations}
    return tuple(device for device in gpus if by_name.get(device.name))


def gpu_bar(gpu: GpuReading, row: Allocation | None, pid: int | None, excess_bytes: int = 0) -> GpuBar | None:
    """Return the stacked bar of one GPU; None if its memory is unknown or is the RAM.

    The model's segments are the engine's numbers, scaled down if the process really uses less.
    """
    total, used = gpu.total_bytes, gpu.used_bytes
    if total is None or used is None or gpu.unified:
        return None
    parts: Mapping[SegmentKind, int] = {}
    if row is not None:
        parts = _parts_of(row)
    ours = gpu.process(pid)
    present = sum(parts.values())
    if ours is not None and ours.dedicated_bytes is not None:
        # What the driver holds for the process beyond the engine's own buffers counts as buffers.
        extra = max(0, min(ours.dedicated_bytes, used) - present)
        parts = {**parts, "buffers": parts.get("buffers", 0) + extra} if extra else parts
        present = min(sum(parts.values()), ours.dedicated_bytes)
    present = min(present, used)
    wanted = sum(parts.values())
    segments = [Segment(kind, n_bytes * present // wanted) for kind, n_bytes in parts.items() if n_bytes and wanted]
    held = sum(each.n_bytes for each in segments)
    segments.append(Segment("other", used - held))
    segments.append(Segment("free", total - used))
    return GpuBar(gpu=gpu, total_bytes=total, used_bytes=used, excess_bytes=excess_bytes, segments=tuple(segments))


def shared_memory(snapshot: Snapshot, report: LoadReport | None) -> tuple[Segment, ...]:
    """Return the stacked bar of the memory that GPU and CPU share; nothing if it is unknown.

    The system doesn't count the memory of the engine's GPU buffers as the engine's, so its own numbers are shown.
    """
    system, set_aside = snapshot.system, [gpu for gpu in snapshot.gpus if gpu.unified and gpu.vendor == "amd"]
    if system.ram_total_bytes is None or system.ram_used_bytes is None:
        return ()
    total = system.ram_total_bytes + sum(gpu.total_bytes or 0 for gpu in set_aside)
    used = system.ram_used_bytes + sum(gpu.used_bytes or 0 for gpu in set_aside)
    rows = report.allocations if report is not None else ()
    parts: Mapping[SegmentKind, int] = {
        "weights": sum(row.weights_bytes for row in rows),
        "context": sum(row.kv_bytes + row.recurrent_bytes for row in rows),
        "buffers": sum(row.compute_bytes for row in rows),
        "vision": sum(row.vision_bytes for row in rows),
    }
    wanted = sum(parts.values())
    shown = min(wanted, used)
    segments = [Segment(kind, n_bytes * shown // wanted) for kind, n_bytes in parts.items() if n_bytes]
    held = sum(each.n_bytes for each in segments)
    return (*segments, Segment("other", used - held), Segment("free", max(total - used, 0)))


def ram_memory(
    snapshot: Snapshot, report: LoadReport | None, *, counts_files: bool = sys.platform != "linux"
) -> tuple[Segment, ...]:
    """Return the stacked bar of the RAM; nothing if its size is unknown. The segments add up to it.

    Linux takes the weights of a mapped file for free memory, because it could drop them. Windows and macOS count what
    is in use (`counts_files`). Here they are the model's.
    """
    total, used = snapshot.system.ram_total_bytes, snapshot.system.ram_used_bytes
    if total is None or used is None:
        return ()
    row = next((each for each in report.allocations if each.device == "CPU"), None) if report is not None else None
    parts: Mapping[SegmentKind, int] = {}
    counted = 0
    if row is not None and report is not None:
        parts = _parts_of(row)
        is_free = report.options.load_mode == "mmap" and not counts_files
        counted = row.total_bytes - (row.weights_bytes if is_free else 0)
    other = max(used - counted, 0)
    room = max(total - other, 0)
    wanted = sum(parts.values())
    shown = min(wanted, room)
    segments = [Segment(kind, n_bytes * shown // wanted) for kind, n_bytes in parts.items() if n_bytes]
    held = sum(each.n_bytes for each in segments)
    return (*segments, Segment("other", other), Segment("free", total - other - held))


def _parts_of(row: Allocation) -> Mapping[SegmentKind, int]:
    return {
        "weights": row.weights_bytes,
        "context": row.kv_bytes + row.recurrent_bytes,
        "buffers": row.compute_bytes,
        "vision": row.vision_bytes,
    }


def other_processes(gpu: GpuReading, pid: int | None) -> dict[int, ProcessMemory]:
    """Return the other programs on this GPU whose dedicated memory is known."""
    rows = (each for each in gpu.processes or () if each.pid != pid)
    return {each.pid: each for each in rows if each.dedicated_bytes is not None}


def new_consumer(before: GpuReading, now: GpuReading, pid: int | None) -> VramConsumer | None:
    """Return the program that took the most memory of this GPU between two readings; None if none took much."""
    return max(new_consumers(before, now, pid), key=lambda consumer: consumer.n_bytes, default=None)


def new_consumers(before: GpuReading, now: GpuReading, pid: int | None) -> tuple[VramConsumer, ...]:
    """Return the programs that took much memory of this GPU between two readings, without the engine (`pid`).

    Where the system reports no programs, all of them together are one without a name.
    """
    earlier, later = other_processes(before, pid), other_processes(now, pid)
    grown = tuple(
        VramConsumer(row.name, row.pid, (row.dedicated_bytes or 0) - (earlier[row.pid].dedicated_bytes or 0))
        if row.pid in earlier
        else VramConsumer(row.name, row.pid, row.dedicated_bytes or 0)
        for row in later.values()
    )
    if later or before.used_bytes is None or now.used_bytes is None:
        return tuple(consumer for consumer in grown if consumer.n_bytes >= _GROWN_BYTES)
    rest = _bytes_of_others(now, pid) - _bytes_of_others(before, pid)
    return (VramConsumer("", None, rest),) if rest >= _GROWN_BYTES else ()


def _bytes_of_others(gpu: GpuReading, pid: int | None) -> int:
    ours = gpu.process(pid)
    return (gpu.used_bytes or 0) - ((ours.dedicated_bytes or 0) if ours is not None else 0)
