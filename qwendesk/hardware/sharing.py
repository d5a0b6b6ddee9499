"""Which GPUs take part, how llama.cpp deals the layers out to them, and how much of each may be filled."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine
from qwendesk.core.units import GIB, MIB

HEADROOM_BYTES = 512 * MIB
"""Left of what is free at the moment, whatever the reserve is: programs take a little more now and then."""
NVIDIA_DRIFT_BYTES = round(0.6 * GIB)
"""Driver, CUDA context and growth while it runs: the gap between the formulas and a measured 24 GB card. Until it is
measured on this PC (Machine.drift)."""


class Gpu(msgspec.Struct, frozen=True):
    """One GPU that may take layers. Bytes; None where it does not tell."""

    device: DeviceInfo
    budget_bytes: int | None
    """What a plan may fill: min(total - reserve, free now + ours - headroom)."""
    limit_bytes: int | None
    """All that is free for us now, the reserve and the headroom included."""
    drift_bytes: int


def usable_gpus(devices: Sequence[DeviceInfo], options: LoadOptions) -> tuple[DeviceInfo, ...]:
    """The devices that may take layers: those the options name, else all GPUs with memory of their own.

    An integrated GPU shares the RAM, so it only counts when it is named.
    """
    if options.devices:
        by_name = {device.name: device for device in devices if device.kind in ("gpu", "igpu")}
        gpus = tuple(by_name[name] for name in options.devices if name in by_name)
    else:
        gpus = tuple(device for device in devices if device.kind == "gpu")
    return gpus[options.main_gpu : options.main_gpu + 1] if options.split_mode == "none" else gpus


def shares_ram(gpu: DeviceInfo) -> bool:
    """Whether the GPU's memory is the RAM: integrated ones, and all of Apple's."""
    return gpu.kind == "igpu" or gpu.backend.upper() in ("METAL", "MTL")


def gpus_of(machine: Machine, options: LoadOptions) -> tuple[Gpu, ...]:
    """The GPUs that `options` may use on `machine`, in the engine's order."""
    ours, drift, extra = dict(machine.ours), dict(machine.drift), dict(machine.extra)
    return tuple(
        _gpu(
            device,
            machine.reserve_bytes,
            ours.get(device.name, 0),
            drift.get(device.name, _usual_drift(device)) + extra.get(device.name, 0),
        )
        for device in usable_gpus(machine.devices, options)
    )


def _gpu(device: DeviceInfo, reserve_bytes: int, ours: int, drift: int) -> Gpu:
    if device.free_bytes is None:
        budget = None if device.total_bytes is None else max(device.total_bytes - reserve_bytes, 0)
        return Gpu(device, budget, device.total_bytes, drift)
    limit = device.free_bytes + ours
    total = device.total_bytes if device.total_bytes is not None else limit
    return Gpu(device, max(min(total - reserve_bytes, limit - HEADROOM_BYTES), 0), limit, drift)


def _usual_drift(device: DeviceInfo) -> int:
    is_nvidia = device.backend.upper() == "CUDA" or "NVIDIA" in device.description.upper()
    return NVIDIA_DRIFT_BYTES if is_nvidia else 0


class Shares:
    """Deals layers out as llama.cpp does: by free memory, or by tensor_split."""

    def __init__(self, gpus: Sequence[Gpu], options: LoadOptions, gpu_layers: int, n_layers: int) -> None:
        """`n_layers` counts the output as one more layer after the last."""
        stated = list(options.tensor_split[: len(gpus)]) + [0.0] * (len(gpus) - len(options.tensor_split))
        free = [float(gpu.device.free_bytes or gpu.device.total_bytes or 0) for gpu in gpus]
        parts = stated if any(stated) else free if any(free) else [1.0] * len(gpus)
        self.parts = [part / sum(parts) for part in parts]
        self._ends = list(accumulate(self.parts))
        self._count = min(gpu_layers, n_layers)
        self.first = n_layers - self._count if gpus else n_layers
        self.whole_layers = options.split_mode in ("layer", "none")

    def gpu_of(self, layer: int) -> int:
        """The GPU that has the whole layer, which must not be before `first`."""
        at = bisect_right(self._ends, (layer - self.first) / max(self._count, 1))
        return min(at, len(self.parts) - 1)
