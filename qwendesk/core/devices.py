"""A compute device as the engine sees it."""

from typing import Literal

import msgspec

DeviceKind = Literal["cpu", "gpu", "igpu", "accelerator"]


class DeviceInfo(msgspec.Struct, frozen=True):
    """One ggml device. Memory in bytes; None where the backend does not say."""

    name: str
    """ggml's name, e.g. "CUDA0", "Vulkan0", "CPU"; what the `devices` option takes."""
    description: str
    kind: DeviceKind
    backend: str
    total_bytes: int | None = None
    free_bytes: int | None = None
