"""Compute devices as the engine lists them, and the parts of their memory."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

DeviceKind = Literal["cpu", "gpu", "igpu", "accelerator"]
_BRANDS = ("NVIDIA GeForce ", "NVIDIA ", "AMD Radeon ")


class DeviceInfo(msgspec.Struct, frozen=True):
    """One ggml device. Memory is in bytes, None if the backend does not report it."""

    name: str
    """ggml's name, such as "CUDA0", "Vulkan0" or "CPU", as used in the `devices` option."""
    description: str
    kind: DeviceKind
    backend: str
    total_bytes: int | None = None
    free_bytes: int | None = None

    @property
    def shares_ram(self) -> bool:
        """True for a GPU that uses the RAM as its memory: an integrated one, or Apple's, which Metal lists as "gpu"."""
        return self.kind == "igpu" or (self.kind == "gpu" and self.backend.upper() in ("METAL", "MTL"))

    @property
    def supports_mmap(self) -> bool:
        """False if llama.cpp neither maps model files for it nor reads tables lazily, unless it is told to.

        So do the Vulkan, CUDA and ROCm engines for integrated GPUs (caps.mmap_support of their ggml devices).
        """
        return self.kind != "igpu"


class GpuLink(msgspec.Struct, frozen=True):
    """How one of the engine's GPUs is connected to the PC and to its other GPUs."""

    device: str
    """ggml's name, such as "CUDA0"."""
    pcie_bytes_s: float | None = None
    """Bandwidth of the PCIe link one way when the GPU works; None if unknown."""
    nvlinks: tuple[str, ...] = ()
    """Names of the devices that NVLink joins it with."""


def default_gpus(devices: Sequence[DeviceInfo]) -> tuple[DeviceInfo, ...]:
    """Return the GPUs that llama.cpp uses if none are named: all discrete ones, else the integrated ones.

    Of integrated GPUs it takes those of the first one's backend. GPUs of RPC servers don't count as discrete ones
    (llama_prepare_model_devices in llama.cpp).
    """
    gpus = tuple(device for device in devices if device.kind == "gpu")
    if any(gpu.backend.upper() != "RPC" for gpu in gpus):
        return gpus
    integrated = tuple(device for device in devices if device.kind == "igpu")
    return (*gpus, *(device for device in integrated if device.backend == integrated[0].backend))


def number_equal_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names with " #1", " #2", ... after those that occur several times, in their order."""
    totals, before, found = Counter(names), Counter[str](), []
    for name in names:
        before[name] += 1
        found.append(f"{name} #{before[name]}" if totals[name] > 1 else name)
    return tuple(found)


def short_card_name(name: str) -> str:
    """Return "RTX 3090" for "NVIDIA GeForce RTX 3090"; names of other makers stay whole."""
    return next((name.removeprefix(brand) for brand in _BRANDS if name.startswith(brand)), name)


SegmentKind = Literal["weights", "context", "buffers", "vision", "other", "free"]


class Segment(msgspec.Struct, frozen=True):
    """One part of a device's memory, as the window shows it."""

    kind: SegmentKind
    n_bytes: int
