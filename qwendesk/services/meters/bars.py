"""What the meters show, made from a snapshot and what the engine reported. Values and pure functions."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.engine.protocol import Allocation, LoadReport
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, Snapshot
from qwendesk.hardware.spill import Loaded, Sample, SpillState

SegmentKind = Literal["weights", "context", "buffers", "vision", "other", "free"]
_GROWN_BYTES = 128 * 1024**2
"""A program that took less than this since the load is not named."""


class Segment(msgspec.Struct, frozen=True):
    kind: SegmentKind
    n_bytes: int


class GpuBar(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU's memory, stacked; the segments add up to `total_bytes`."""

    gpu: GpuReading
    total_bytes: int
    used_bytes: int
    excess_bytes: int = 0
    """Of the model, what sits in shared memory."""
    segments: tuple[Segment, ...] = ()


class Taker(msgspec.Struct, frozen=True):
    """A program that took video memory since the model was loaded; `name` is "" where the platform does not tell."""

    name: str
    pid: int | None
    n_bytes: int


class Spill(msgspec.Struct, frozen=True, kw_only=True):
    """What a spill is and what it costs."""

    state: SpillState
    excess_bytes: int
    best_tok_s: float | None
    """As measured on this PC; None before."""
    now_tok_s: float | None
    slowdown: tuple[float, float] | None
    """Guessed lowest and highest factor, when nothing was measured."""
    taker: Taker | None


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One second of the last five minutes; None is unknown."""

    at_s: float
    used_bytes: int | None = None
    total_bytes: int | None = None
    excess_bytes: int = 0
    busy_percent: float | None = None
    tok_s: float | None = None
    state: SpillState | None = None


class Meters(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the meter bar shows, at one moment."""

    snapshot: Snapshot | None = None
    """None before the first look."""
    state: SpillState | None = None
    """None while no model is loaded."""
    bars: tuple[GpuBar, ...] = ()
    """The GPUs with memory of their own, those of the model first."""
    spill: Spill | None = None
    answering: bool = False
    tok_s: float | None = None
    threads: int | None = None
    """CPU threads of the loaded model."""


def match_devices(devices: Sequence[DeviceInfo], gpus: Sequence[GpuReading]) -> dict[str, GpuReading]:
    """Which reading belongs to each GPU of the engine, by its device name: same product name, else the same order."""
    wanted = [device for device in devices if device.kind in ("gpu", "igpu")]
    left, found = list(gpus), {}
    for device in wanted:
        same = next((gpu for gpu in left if gpu.name and _same_name(gpu.name, device.description)), None)
        if same is not None:
            found[device.name] = same
            left.remove(same)
    missing = [device for device in wanted if device.name not in found]
    dedicated = [gpu for gpu in left if not gpu.unified]
    for device, gpu in zip(missing, dedicated if len(dedicated) >= len(missing) else left, strict=False):
        found[device.name] = gpu
    return found


def loaded_on(report: LoadReport, device: DeviceInfo, gpu: GpuReading, reserve_bytes: int | None) -> Loaded:
    """What the spill rules need to know of one GPU under this load."""
    row = next((each for each in report.allocations if each.device == device.name), None)
    shares = device.kind == "igpu" or device.backend.upper() in ("METAL", "MTL") or bool(gpu.unified)
    return Loaded(
        unified=shares,
        device_bytes=0 if row is None else allocated(row),
        host_bytes=host_bytes(report),
        reserve_bytes=reserve_bytes,
    )


def used_devices(report: LoadReport, devices: Sequence[DeviceInfo]) -> tuple[DeviceInfo, ...]:
    """The GPUs the model is on: by what the engine allocated, or all of them where it did not say."""
    gpus = tuple(device for device in devices if device.kind in ("gpu", "igpu"))
    if not report.allocations:
        return gpus if report.options.n_gpu_layers != 0 and "none" not in report.options.devices else ()
    by_name = {row.device: allocated(row) for row in report.allocations}
    return tuple(device for device in gpus if by_name.get(device.name))


def allocated(row: Allocation) -> int:
    return row.weights_bytes + row.kv_bytes + row.recurrent_bytes + row.compute_bytes + row.vision_bytes


def host_bytes(report: LoadReport) -> int | None:
    """Buffers in system memory that a driver may count as shared. Weights read through mmap are not among them."""
    if not report.allocations:
        return None
    rows = [row for row in report.allocations if row.device == "CPU"]
    mapped = report.options.load_mode in ("auto", "mmap")
    return sum(allocated(row) - (row.weights_bytes if mapped else 0) for row in rows)


def sample_of(gpu: GpuReading, pid: int | None, decode_tok_s: float | None, best_tok_s: float | None) -> Sample:
    """What the spill rules look at."""
    ours = gpu.process(pid)
    shared = ours.shared_bytes if ours is not None else None
    if shared is not None and ours is not None and ours.evicted_bytes:
        shared = max(shared, ours.evicted_bytes)
    return Sample(
        total_bytes=gpu.total_bytes,
        used_bytes=gpu.used_bytes,
        dedicated_bytes=ours.dedicated_bytes if ours is not None else None,
        shared_bytes=shared,
        budget_bytes=gpu.budget_bytes,
        busy_percent=gpu.busy_percent,
        power_w=gpu.power_w,
        power_limit_w=gpu.power_limit_w,
        decode_tok_s=decode_tok_s,
        best_tok_s=best_tok_s,
    )


def bar_of(gpu: GpuReading, row: Allocation | None, pid: int | None, excess_bytes: int = 0) -> GpuBar | None:
    """The stacked bar of one GPU; None where its memory is not known, or is the RAM.

    The model's parts are the engine's numbers, reduced in proportion when less than that is really there.
    """
    total, used = gpu.total_bytes, gpu.used_bytes
    if total is None or used is None or gpu.unified:
        return None
    parts: Mapping[SegmentKind, int] = {}
    if row is not None:
        parts = {
            "weights": row.weights_bytes,
            "context": row.kv_bytes + row.recurrent_bytes,
            "buffers": row.compute_bytes,
            "vision": row.vision_bytes,
        }
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


def others_of(gpu: GpuReading, pid: int | None) -> dict[int, ProcessMemory]:
    """The other programs on this GPU whose dedicated memory is known."""
    rows = (each for each in gpu.processes or () if each.pid != pid)
    return {each.pid: each for each in rows if each.dedicated_bytes is not None}


def taker_since(before: GpuReading, now: GpuReading, pid: int | None) -> Taker | None:
    """The program that took most on this GPU between two readings; None when nobody took much."""
    earlier, later = others_of(before, pid), others_of(now, pid)
    grown = [
        Taker(row.name, row.pid, (row.dedicated_bytes or 0) - (earlier[row.pid].dedicated_bytes or 0))
        if row.pid in earlier
        else Taker(row.name, row.pid, row.dedicated_bytes or 0)
        for row in later.values()
    ]
    best = max(grown, key=lambda taker: taker.n_bytes, default=None)
    if best is not None and best.n_bytes >= _GROWN_BYTES:
        return best
    if later or before.used_bytes is None or now.used_bytes is None:
        return None
    rest = _without(now, pid) - _without(before, pid)
    return Taker("", None, rest) if rest >= _GROWN_BYTES else None


def _without(gpu: GpuReading, pid: int | None) -> int:
    ours = gpu.process(pid)
    return (gpu.used_bytes or 0) - ((ours.dedicated_bytes or 0) if ours is not None else 0)


def _same_name(one: str, other: str) -> bool:
    one, other = (" ".join(name.lower().replace("(r)", "").replace("(tm)", "").split()) for name in (one, other))
    return bool(one and other) and (one in other or other in one)
