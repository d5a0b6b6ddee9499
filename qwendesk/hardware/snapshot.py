"""State of the hardware at one moment, as frozen values. None means unknown, never zero."""

from typing import Literal

import msgspec

Vendor = Literal["nvidia", "amd", "intel", "apple", "other"]
Throttle = Literal["idle", "power cap", "thermal", "hardware"]


class ProcessMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of one GPU that one process uses, in bytes."""

    pid: int
    name: str = ""
    """File name of the program; "" if unknown."""
    dedicated_bytes: int | None = None
    shared_bytes: int | None = None
    """System memory that the GPU uses for this process (Windows: shared, Linux: GTT)."""
    evicted_bytes: int | None = None
    """Memory that the driver moved out of video memory. Only amdgpu reports it."""


class NvLink(msgspec.Struct, frozen=True):
    """The active NVLink links from one GPU to another device."""

    n_links: int
    pci: str | None = None
    """PCI address of the other GPU; None if it is an NVSwitch, which joins all GPUs that have links to one."""


class GpuReading(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, with everything that is known of it."""

    pci: str | None = None
    """PCI address such as "0000:01:00.0", in lower case."""
    luid: str | None = None
    """Windows' identifier of the adapter such as "0x00000000_0x0000d3f2", in lower case."""
    name: str | None = None
    vendor: Vendor | None = None
    driver: str | None = None
    compute_capability: tuple[int, int] | None = None
    """NVIDIA's version of what the GPU can do, such as (8, 6)."""
    unified: bool | None = None
    """True if the GPU uses the RAM as its memory."""
    total_bytes: int | None = None
    used_bytes: int | None = None
    """Dedicated video memory used by all programs and the driver."""
    shared_used_bytes: int | None = None
    shared_total_bytes: int | None = None
    budget_bytes: int | None = None
    """Bytes that one program may use before the system moves its memory out (Windows, macOS)."""
    busy_percent: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    core_mhz: int | None = None
    memory_mhz: int | None = None
    throttle: tuple[Throttle, ...] | None = None
    pcie_generation: int | None = None
    """Of the link now: drivers lower it while the GPU has nothing to do."""
    pcie_max_generation: int | None = None
    """Of the link at work: what both the GPU and its slot can do."""
    pcie_width: int | None = None
    """Lanes of the link now."""
    pcie_sent_bytes_s: int | None = None
    """From the PC to the GPU; `pcie_received_bytes_s` is the opposite direction."""
    pcie_received_bytes_s: int | None = None
    nvlinks: tuple[NvLink, ...] | None = None
    """Active NVLink links by device at their other end; () if there are none."""
    processes: tuple[ProcessMemory, ...] | None = None

    @property
    def key(self) -> str:
        """Identifies this GPU: its PCI address if known, else its LUID or name."""
        return self.pci or self.luid or self.name or "gpu"

    @property
    def headroom_bytes(self) -> int | None:
        """Free dedicated memory in bytes; None if unknown."""
        known = self.total_bytes is not None and self.used_bytes is not None
        return max(0, (self.total_bytes or 0) - (self.used_bytes or 0)) if known else None

    def process(self, pid: int | None) -> ProcessMemory | None:
        """Return the memory that process `pid` uses of this GPU; None if unknown."""
        return next((each for each in self.processes or () if each.pid == pid), None)


class SystemReading(msgspec.Struct, frozen=True, kw_only=True):
    """RAM and CPU of the PC."""

    ram_total_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_used_bytes: int | None = None
    cpu_percent: float | None = None
    cpu_cores: int | None = None
    """Physical cores."""
    engine_ram_bytes: int | None = None
    """Resident memory of the engine's process."""

    @property
    def ram_used_bytes(self) -> int | None:
        if self.ram_total_bytes is None or self.ram_available_bytes is None:
            return None
        return self.ram_total_bytes - self.ram_available_bytes


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was measured at one moment."""

    at_s: float
    """Seconds of a monotonic clock."""
    gpus: tuple[GpuReading, ...] = ()
    system: SystemReading = SystemReading()
    notes: tuple[str, ...] = ()
    """Sentences for the Engine page that say why a value could not be read."""
