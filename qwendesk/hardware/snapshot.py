"""What the hardware says at one moment, as frozen values. None means unknown, never zero."""

from typing import Literal

import msgspec

Vendor = Literal["nvidia", "amd", "intel", "apple", "other"]
Throttle = Literal["idle", "power cap", "thermal", "hardware"]


class ProcessMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What one process holds of one GPU, in bytes."""

    pid: int
    name: str = ""
    """The program's name; "" where the platform does not tell."""
    dedicated_bytes: int | None = None
    shared_bytes: int | None = None
    """System memory that the GPU uses for this process (Windows: shared, Linux: GTT)."""
    evicted_bytes: int | None = None
    """Of what belongs into video memory, what the driver moved out of it (amdgpu says so)."""


class GpuReading(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, as far as it is known."""

    pci: str | None = None
    """PCI address as "0000:01:00.0", lower case."""
    luid: str | None = None
    """Windows' name of the adapter as "0x00000000_0x0000d3f2", lower case."""
    name: str | None = None
    vendor: Vendor | None = None
    driver: str | None = None
    unified: bool | None = None
    """True when its memory is the RAM."""
    total_bytes: int | None = None
    used_bytes: int | None = None
    """Dedicated video memory taken by all programs, the driver's own part included."""
    shared_used_bytes: int | None = None
    shared_total_bytes: int | None = None
    budget_bytes: int | None = None
    """What the system lets one program use before it moves memory out (Windows, macOS)."""
    busy_percent: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    core_mhz: int | None = None
    memory_mhz: int | None = None
    throttle: tuple[Throttle, ...] | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_sent_bytes_s: int | None = None
    """From the PC to the GPU."""
    pcie_received_bytes_s: int | None = None
    processes: tuple[ProcessMemory, ...] | None = None

    @property
    def key(self) -> str:
        """Names this GPU as long as it stays where it is."""
        return self.pci or self.luid or self.name or "gpu"

    @property
    def headroom_bytes(self) -> int | None:
        """Free dedicated memory."""
        known = self.total_bytes is not None and self.used_bytes is not None
        return max(0, (self.total_bytes or 0) - (self.used_bytes or 0)) if known else None

    def process(self, pid: int | None) -> ProcessMemory | None:
        """What process `pid` holds here; None when that is not known."""
        return next((each for each in self.processes or () if each.pid == pid), None)


class SystemReading(msgspec.Struct, frozen=True, kw_only=True):
    """The PC around the GPUs."""

    ram_total_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_used_bytes: int | None = None
    cpu_percent: float | None = None
    cpu_cores: int | None = None
    """Physical ones."""
    engine_ram_bytes: int | None = None
    """Resident memory of the engine's process."""

    @property
    def ram_used_bytes(self) -> int | None:
        if self.ram_total_bytes is None or self.ram_available_bytes is None:
            return None
        return self.ram_total_bytes - self.ram_available_bytes


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was read at one moment."""

    at_s: float
    """By a steady clock."""
    gpus: tuple[GpuReading, ...] = ()
    system: SystemReading = SystemReading()
    notes: tuple[str, ...] = ()
    """Why something is unknown that could be known, a sentence each: for the engine page."""
