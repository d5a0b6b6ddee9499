"""Tells which GPUs a model may use, how much memory of each, and how llama.cpp splits the layers between them."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from qwendesk.core.devices import DeviceInfo, default_gpus
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB, MIB

# Kept free of what is free now, because other programs need a little more at times.
#
# A smaller reserve lowers it. A placement that the user set may spend it, and a GPU that shares the RAM may before the
# CPU runs the model.
HEADROOM_BYTES = 512 * MIB
# Memory for the driver, the CUDA context and growth: the difference between estimate and measurement on a 24 GB card.
#
# Used until the drift is measured on this PC (MachineMemory.drift).
NVIDIA_DRIFT_BYTES = round(0.6 * GIB)


class Gpu(msgspec.Struct, frozen=True):
    """A GPU that a plan may use. Values are None if it doesn't report its memory."""

    device: DeviceInfo
    budget_bytes: int | None
    """Bytes that a plan may use: min(total - reserve, free now + the engine's own - headroom).

    If the plan spends the headroom, that much more, but no more than is free. For a GPU that shares the RAM, it is the
    smaller of its own limit and of the memory that both share (see `shared_budget`).
    """
    limit_bytes: int | None
    """Everything that is free for the engine now, including the reserve and the headroom."""
    other_bytes: int
    carve_out_bytes: int = 0
    """Part of its memory that is not part of the RAM, if it shares the RAM."""


_ANY_GPU = Gpu(DeviceInfo("", "", "gpu", ""), None, None, 0)


def usable_gpus(devices: Sequence[DeviceInfo], options: LoadOptions) -> tuple[DeviceInfo, ...]:
    """Return the devices that may get layers: those named in the options, else those that llama.cpp takes."""
    if options.devices:
        by_name = {device.name: device for device in devices if device.kind in ("gpu", "igpu")}
        gpus = tuple(by_name[name] for name in options.devices if name in by_name)
    else:
        gpus = default_gpus(devices)
    return gpus[options.main_gpu : options.main_gpu + 1] if options.split_mode == "none" else gpus


def is_nvidia(gpu: DeviceInfo) -> bool:
    return gpu.backend.upper() == "CUDA" or "NVIDIA" in gpu.description.upper()


def planned_gpus(machine: MachineMemory, options: LoadOptions) -> tuple[Gpu, ...]:
    """Return the GPUs that `options` may use on `machine`, in the engine's order."""
    engine, drift, unplanned = dict(machine.engine_bytes), dict(machine.drift), dict(machine.unplanned_bytes)
    return tuple(
        (_unified_gpu if device.shares_ram else _gpu)(
            device,
            machine,
            engine.get(device.name, 0),
            drift.get(device.name, _usual_drift(device)) + unplanned.get(device.name, 0),
        )
        for device in usable_gpus(machine.devices, options)
    )


def _gpu(device: DeviceInfo, machine: MachineMemory, engine_bytes: int, other_bytes: int) -> Gpu:
    reserve = machine.reserve_bytes
    if device.free_bytes is None:
        budget = None if device.total_bytes is None else max(device.total_bytes - reserve, 0)
        return Gpu(device, budget, device.total_bytes, other_bytes)
    limit = device.free_bytes + engine_bytes
    total = device.total_bytes if device.total_bytes is not None else limit
    budget = min(total - reserve, limit - min(HEADROOM_BYTES, reserve))
    if machine.spends_headroom:
        budget = min(budget + HEADROOM_BYTES, limit)
    return Gpu(device, max(budget, 0), limit, other_bytes)


def _unified_gpu(device: DeviceInfo, machine: MachineMemory, engine_bytes: int, other_bytes: int) -> Gpu:
    """Return a GPU that shares the RAM.

    Its driver reports a limit, of which nothing is reserved: what lies beyond it stays free for other programs anyway.
    """
    carve_out = dict(machine.carve_outs).get(device.name, 0)
    if device.total_bytes is None and device.free_bytes is None:
        return Gpu(device, None, None, other_bytes, carve_out)
    own_limit = (device.total_bytes or 0) if device.free_bytes is None else device.free_bytes + engine_bytes
    limit = min(own_limit, machine.ram_available_bytes + carve_out)
    budget = min(own_limit - _kept_free(machine), shared_budget(machine) + carve_out)
    return Gpu(device, max(budget, 0), limit, other_bytes, carve_out)


def shares_ram(gpus: Sequence[Gpu]) -> bool:
    """Return True if there are GPUs and all of them use the RAM as their memory."""
    return bool(gpus) and all(gpu.device.shares_ram for gpu in gpus)


def shared_budget(machine: MachineMemory) -> int:
    """Return the bytes of RAM that a plan may use if GPU and CPU share it, counted once for both.

    The reserve applies to all of the RAM, the headroom to what is free of it.
    """
    free = machine.ram_available_bytes
    return max(min(machine.ram_total_bytes - machine.reserve_bytes, free - _kept_free(machine)), 0)


def _kept_free(machine: MachineMemory) -> int:
    return 0 if machine.spends_headroom else min(HEADROOM_BYTES, machine.reserve_bytes)


def _usual_drift(device: DeviceInfo) -> int:
    return NVIDIA_DRIFT_BYTES if is_nvidia(device) else 0


def runs_of_layers(options: LoadOptions, n_layers: int, n_gpus: int) -> tuple[range, ...]:
    """Return the layers of each GPU, of `n_layers` without the output; nothing unless tensor_split says it."""
    is_layer_split = options.split_mode == "layer" and options.tensor_split and options.devices != ("none",)
    if n_gpus < 2 or not is_layer_split:
        return ()
    on_gpu = options.n_gpu_layers if isinstance(options.n_gpu_layers, int) else n_layers + 1
    split = LayerSplit([_ANY_GPU] * n_gpus, options, on_gpu, n_layers + 1)
    of_gpus = [split.gpu_of(layer) for layer in range(split.first, n_layers)]
    ends = [split.first + sum(each <= gpu for each in of_gpus) for gpu in range(n_gpus)]
    return tuple(range(begin, end) for begin, end in zip((split.first, *ends), ends, strict=False))


class LayerSplit:
    """Splits layers as llama.cpp does: by free memory, or by tensor_split."""

    def __init__(self, gpus: Sequence[Gpu], options: LoadOptions, gpu_layers: int, n_layers: int) -> None:
        """`n_layers` includes the output, which counts as a layer after the last one."""
        stated = list(options.tensor_split[: len(gpus)]) + [0.0] * (len(gpus) - len(options.tensor_split))
        free = [float(gpu.device.free_bytes or gpu.device.total_bytes or 0) for gpu in gpus]
        parts = stated if any(stated) else free if any(free) else [1.0] * len(gpus)
        self.parts = [part / sum(parts) for part in parts]
        self._ends = list(accumulate(self.parts))
        self._count = min(gpu_layers, n_layers)
        self.first = n_layers - self._count if gpus else n_layers
        self.whole_layers = options.split_mode in ("layer", "none")

    def gpu_of(self, layer: int) -> int:
        """Return the index of the GPU that has `layer`, which must be `first` or later and not split between GPUs."""
        if len(self.parts) == 1:
            return 0
        at = bisect_right(self._ends, (layer - self.first) / max(self._count, 1))
        return min(at, len(self.parts) - 1)
