"""Reads the memory of the PC while a model is measured, and tells by the spill rules whether it spills."""

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Literal

from qwendesk.bench.pc_report import GpuMemory, MemoryReading, SpillSign
from qwendesk.core.app_options import AppOptions
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.observed import Observed
from qwendesk.core.units import MIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.hardware import spill
from qwendesk.hardware.engine_gpus import match_gpus, spill_sample
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.hardware.spill import GpuAllocation, SpillTrack


class MemoryMeter:
    """Reads the probes on another thread. Close it after the last reading."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        """A reading may go on after the step that asked for it was cancelled."""

    async def snapshot(self, pid: int | None) -> Snapshot:
        return await asyncio.to_thread(self._read, pid)

    async def reading(
        self, moment: Literal["before", "loaded", "after answers", "unloaded"], pid: int | None
    ) -> MemoryReading:
        """Return the memory of the PC now; `pid` is the engine's process."""
        found = await self.snapshot(pid)
        nvidia = [gpu for gpu in found.gpus if gpu.vendor == "nvidia"]
        used, by_worker = await asyncio.to_thread(lambda: (used_on_cards(), used_by(pid))) if nvidia else ([], None)
        by_key = {gpu.key: n_bytes for gpu, n_bytes in zip(nvidia, used, strict=False)}
        return MemoryReading(
            moment=moment,
            ram_available_bytes=found.system.ram_available_bytes,
            worker_ram_bytes=found.system.engine_ram_bytes,
            nvidia_smi_worker_bytes=by_worker,
            gpus=tuple(_gpu_memory(gpu, pid, by_key.get(gpu.key)) for gpu in found.gpus),
        )

    def close(self) -> None:
        with self._lock:
            self._reader.close()

    def _read(self, pid: int | None) -> Snapshot:
        with self._lock:
            return self._reader.read(pid, time.monotonic())


class SpillWatch:
    """Applies the spill rules to the GPUs that a loaded model uses. Look right after the load, then again and again."""

    def __init__(
        self,
        meter: MemoryMeter,
        report: LoadReport,
        devices: Sequence[DeviceInfo],
        pid: int | None,
        reserve_bytes: int,
    ) -> None:
        """`pid` is the process that has loaded the model."""
        self._meter, self._pid = meter, pid
        rows = {row.device: row.total_bytes for row in report.allocations}
        self._devices = [device for device in devices if device.kind in ("gpu", "igpu") and rows.get(device.name)]
        self._loaded = {
            device.name: GpuAllocation(
                unified=device.shares_ram,
                device_bytes=rows[device.name],
                host_bytes=report.host_bytes,
                reserve_bytes=reserve_bytes,
            )
            for device in self._devices
        }
        self._tracks: dict[str, SpillTrack] = {name: spill.start(loaded) for name, loaded in self._loaded.items()}
        self._most_bytes: dict[str, int] = {}

    @property
    def has_spilled(self) -> bool:
        """Whether any look found more in shared memory than is normal; one is enough, because runs are short."""
        return any(
            sign.excess_bytes > spill.EXCESS_BYTES or sign.state == spill.SpillState.SPILLING for sign in self.signs()
        )

    async def look(self) -> None:
        """Take one reading."""
        snapshot = await self._meter.snapshot(self._pid)
        for name, gpu in match_gpus(self._devices, snapshot.gpus).items():
            track = spill.step(self._tracks[name], spill_sample(gpu, self._pid, None, None), self._loaded[name])
            self._tracks[name] = track
            self._most_bytes[name] = max(self._most_bytes.get(name, 0), track.excess_bytes)

    def signs(self) -> tuple[SpillSign, ...]:
        return tuple(
            SpillSign(device=name, state=str(track.state), excess_bytes=self._most_bytes.get(name, 0))
            for name, track in self._tracks.items()
        )


class SpillWatches:
    """Makes the watch of each model that auto-tune loads. They share one meter, which is made with the first."""

    def __init__(self, app: Observed[AppOptions]) -> None:
        self._app = app
        self._meter: MemoryMeter | None = None

    def watch(self, report: LoadReport, devices: Sequence[DeviceInfo], pid: int | None) -> SpillWatch:
        self._meter = self._meter or MemoryMeter(SnapshotReader())
        return SpillWatch(self._meter, report, devices, pid, self._app.value.reserve_bytes)

    def close(self) -> None:
        if self._meter is not None:
            self._meter.close()


def _gpu_memory(gpu: GpuReading, pid: int | None, nvidia_smi_bytes: int | None) -> GpuMemory:
    ours = gpu.process(pid)
    return GpuMemory(
        name=gpu.name or str(gpu.vendor or "GPU"),
        driver=gpu.driver or "",
        total_bytes=gpu.total_bytes,
        used_bytes=gpu.used_bytes,
        shared_used_bytes=gpu.shared_used_bytes,
        worker_dedicated_bytes=ours.dedicated_bytes if ours is not None else None,
        worker_shared_bytes=ours.shared_bytes if ours is not None else None,
        nvidia_smi_used_bytes=nvidia_smi_bytes,
    )


_TIMEOUT_S = 30


def used_on_cards() -> list[int]:
    """Return the bytes in use on each card; empty without nvidia-smi. Blocks."""
    return [int(float(line) * MIB) for line in _query("--query-gpu=memory.used") if line.replace(".", "").isdigit()]


def used_by(pid: int | None) -> int | None:
    """Return the bytes that one process uses on all cards together; None if nvidia-smi doesn't say. Blocks."""
    rows = (line.split(",") for line in _query("--query-compute-apps=pid,used_memory") if "," in line)
    sizes = [size.strip() for process, size, *_ in rows if process.strip() == str(pid)]
    known = [int(size) * MIB for size in sizes if size.isdigit()]
    return sum(known) if known else None


def _query(query: str) -> list[str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW
    else:
        flags = 0
    command = [program, query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, creationflags=flags
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
