"""How well a kind of GPU uses its memory bandwidth while it generates text, by engine, age and kind of model.

The numbers are checked against user reports by `python -m bench.speeds`. Each class has two, for a reason that is given
with it; no number belongs to a single card.
"""

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.hardware.gpu_cards import backend_of, find_card


class GpuSpeed(msgspec.Struct, frozen=True):
    """Each pair is for the slowest and the fastest likely case."""

    share: tuple[float, float]
    """Share of its memory bandwidth that the GPU reaches while it reads weights."""
    layer_s: tuple[float, float]
    """Seconds that a layer takes in addition, to start kernels and choose experts."""


_SHARE = (0.6, 0.85)
_OLD_SHARE = (0.45, 0.7)
"""Cards before Ampere compute more than they read: they have no fast half precision, or older tensor cores."""
_MIXTURE_S, _DENSE_S = (0.19e-3, 0.1e-3), (0.09e-3, 0.03e-3)
"""A layer of experts starts about three times as many kernels as a dense one."""
_OLD_FACTOR = 4.0
"""llama.cpp records a whole token as one CUDA graph on Ampere and later only: older cards start each kernel alone."""
_METAL_FACTOR = 2.5
"""Metal encodes each kernel anew for each token, and a Mac's GPU starts them slower."""
_ROCM_FACTOR = 1.5
"""A Strix Halo took 2.6 ms longer for each token with ROCm than with Vulkan, in 40 layers of experts (opcnew.com).

Vulkan needs no factor: it submits many kernels at once.
"""


def gpu_speed(device: DeviceInfo, *, has_experts: bool) -> GpuSpeed:
    """Return how fast `device` works on a mixture of experts or on a dense model."""
    card, backend = find_card(device.description or device.name), backend_of(device)
    is_old = card is not None and card.is_before_ampere
    factor = 1.0
    if is_old:
        factor = _OLD_FACTOR
    elif backend == "metal":
        factor = _METAL_FACTOR
    elif backend == "rocm":
        factor = _ROCM_FACTOR
    slow, fast = _MIXTURE_S if has_experts else _DENSE_S
    return GpuSpeed(_OLD_SHARE if is_old else _SHARE, (slow * factor, fast * factor))
