"""Tells which engine packs suit the graphics cards of this PC, and what prevents their use. Pure functions."""

import re
from collections.abc import Sequence

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engine_manifest import BEST_FIRST, Backend, EnginePack
from qwendesk.core.translation import tr
from qwendesk.engines.packs import PackState
from qwendesk.hardware.engine_gpus import gpus_for_models, sees_card
from qwendesk.hardware.snapshot import GpuReading, Vendor

_VENDORS: dict[Backend, tuple[Vendor, ...]] = {
    "cuda": ("nvidia",),
    "rocm": ("amd",),
    "vulkan": ("nvidia", "amd", "intel"),
    "metal": ("apple",),
    "cpu": (),
}
_NVIDIA_DRIVER = re.compile(r"(\d{3})(?:\.(\d+))?")
"""NVIDIA's own version number, such as "575.64". The number that Windows gives a driver does not match."""


def unserved(gpus: Sequence[GpuReading], devices: Sequence[DeviceInfo]) -> tuple[GpuReading, ...]:
    """Return the cards of this PC if the engine sees none of them; empty while its `devices` are unknown.

    A laptop's integrated GPU may be all that the engine sees: with the card switched off, or with an old driver.
    """
    return () if sees_card(devices) else gpus_for_models(gpus)


def fits(backend: Backend, gpu: GpuReading) -> bool:
    """Return whether an engine with this backend supports the card."""
    return gpu.vendor in _VENDORS[backend]


def packs_for(states: Sequence[PackState], gpus: Sequence[GpuReading]) -> tuple[PackState, ...]:
    """Return the packs that support at least one of these cards, best first."""
    fitting = (state for state in states if any(fits(state.pack.backend, gpu) for gpu in gpus))
    return tuple(sorted(fitting, key=lambda state: BEST_FIRST.index(state.pack.backend)))


def obstacle(pack: EnginePack, gpus: Sequence[GpuReading]) -> str:
    """Return a sentence that says why this pack would not run on this PC; "" if no reason is known."""
    vendors = _VENDORS[pack.backend]
    meant = [gpu for gpu in gpus if gpu.vendor in vendors]
    if not vendors or not gpus:
        return ""
    if not meant:
        return tr("This PC has no graphics card that it could use.")
    least = _number(pack.minimum_driver)
    drivers = [number for gpu in meant if gpu.vendor == "nvidia" and (number := _number(gpu.driver or ""))]
    if "nvidia" in vendors and pack.backend == "cuda" and least and drivers and max(drivers) < least:
        return tr(
            "Your graphics driver is version {0}. The engine needs {1} or newer: update the driver first.",
            meant[0].driver, pack.minimum_driver,
        )  # fmt: skip
    return ""


def _number(driver: str) -> tuple[int, int] | None:
    found = _NVIDIA_DRIVER.match(driver)
    return (int(found[1]), int(found[2] or 0)) if found is not None else None
