"""Compute devices as the engine lists them, and the parts of their memory."""

from typing import Literal

import msgspec

DeviceKind = Literal["cpu", "gpu", "igpu", "accelerator"]


class DeviceInfo(msgspec.Struct, frozen=True):
    """One ggml device. Memory is in bytes, None if the backend does not report it."""

    name: str
    """ggml's name, such as "CUDA0", "Vulkan0" or "CPU", as used in the `devices` option."""
    description: str
    kind: DeviceKind
    backend: str
    total_bytes: int | None = None
    free_bytes: int | None = None


SegmentKind = Literal["weights", "context", "buffers", "vision", "other", "free"]


class Segment(msgspec.Struct, frozen=True):
    """One part of a device's memory, as the window shows it."""

    kind: SegmentKind
    n_bytes: int
