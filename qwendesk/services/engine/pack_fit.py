"""Which engines to fetch are for the graphics cards of this PC, and what stands in the way. Pure."""

import re
from collections.abc import Sequence

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engines import BEST_FIRST, Backend, EnginePack
from qwendesk.core.units import GIB
from qwendesk.hardware.snapshot import GpuReading, Vendor
from qwendesk.services.engine.packs import PackState

_SMALLEST_BYTES = 2 * GIB
"""A card with less would carry no model worth the trouble."""
_VENDORS: dict[Backend, tuple[Vendor, ...]] = {
    "cuda": ("nvidia",),
    "rocm": ("amd",),
    "vulkan": ("nvidia", "amd", "intel"),
    "metal": ("apple",),
    "cpu": (),
}
_NVIDIA_DRIVER = re.compile(r"(\d{3})(?:\.(\d+))?")
"""As NVIDIA numbers it, "575.64"; Windows has numbers of its own, which say nothing here."""


def cards(gpus: Sequence[GpuReading]) -> tuple[GpuReading, ...]:
    """NVIDIA and AMD cards with memory of their own, enough for a model."""
    return tuple(
        gpu
        for gpu in gpus
        if gpu.vendor in ("nvidia", "amd")
        and not gpu.unified
        and (gpu.total_bytes is None or gpu.total_bytes >= _SMALLEST_BYTES)
    )


def unserved(gpus: Sequence[GpuReading], devices: Sequence[DeviceInfo]) -> tuple[GpuReading, ...]:
    """Cards that are here while the engine sees no GPU at all. Empty as long as it was not asked for `devices`."""
    if not devices or any(device.kind in {"gpu", "igpu"} for device in devices):
        return ()
    return cards(gpus)


def fits(backend: Backend, gpu: GpuReading) -> bool:
    """Whether an engine of this kind is made for such a card."""
    return gpu.vendor in _VENDORS[backend]


def packs_for(states: Sequence[PackState], gpus: Sequence[GpuReading]) -> tuple[PackState, ...]:
    """Those made for one of these cards, best first."""
    fitting = (state for state in states if any(fits(state.pack.backend, gpu) for gpu in gpus))
    return tuple(sorted(fitting, key=lambda state: BEST_FIRST.index(state.pack.backend)))


def obstacle(pack: EnginePack, gpus: Sequence[GpuReading]) -> str:
    """Why fetching it would be in vain as this PC is, as a sentence; "" if nothing is known to be in the way."""
    vendors = _VENDORS[pack.backend]
    meant = [gpu for gpu in gpus if gpu.vendor in vendors]
    if not vendors or not gpus:
        return ""
    if not meant:
        return "There is no graphics card here that it could use."
    least = _number(pack.minimum_driver)
    drivers = [number for gpu in meant if gpu.vendor == "nvidia" and (number := _number(gpu.driver or ""))]
    if "nvidia" in vendors and pack.backend == "cuda" and least and drivers and max(drivers) < least:
        return f"Your graphics driver is {meant[0].driver}; it needs {pack.minimum_driver} or newer. Update it first."
    return ""


def _number(driver: str) -> tuple[int, int] | None:
    found = _NVIDIA_DRIVER.match(driver)
    return (int(found[1]), int(found[2] or 0)) if found is not None else None
