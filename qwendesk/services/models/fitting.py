"""This PC as far as it decides what runs, and what is said of how a file would run on it. `planned.py` works it out."""

from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.hardware.sharing import usable_gpus

FitKind = Literal["vram", "experts", "layers", "cpu", "too_large", "unknown"]
"""From fastest to slowest: all on the GPU; some expert layers in RAM; whole layers in RAM; all in RAM; not at all."""

_SYSTEM_RAM_BYTES, _SYSTEM_RAM_SHARE = 5 * GIB, 0.4
"""Left to the system, a browser and a game: so much, or that share of a small memory. Assumed, not measured."""


class Pc(msgspec.Struct, frozen=True, kw_only=True):
    """What counts of this PC. Bytes."""

    gpus: tuple[DeviceInfo, ...] = ()
    """The engine's GPUs with memory of their own; empty: the CPU does it all."""
    ram_bytes: int
    reserve_bytes: int = GIB
    """Left free on each GPU for games and other programs."""
    is_probed: bool = True
    """False: the engine could not be asked what there is; `problem` says why."""
    problem: str = ""
    cpu: str = ""

    @property
    def vram_bytes(self) -> int:
        """Of all GPUs together, the reserve included."""
        return sum(gpu.total_bytes or 0 for gpu in self.gpus)

    @property
    def vram_room_bytes(self) -> int:
        return sum(max((gpu.total_bytes or 0) - self.reserve_bytes, 0) for gpu in self.gpus)

    @property
    def ram_room_bytes(self) -> int:
        return self.ram_bytes - min(_SYSTEM_RAM_BYTES, int(self.ram_bytes * _SYSTEM_RAM_SHARE))


class FitLabel(msgspec.Struct, frozen=True, kw_only=True):
    """How a file would run here, its picture file included where there is one. Sizes in bytes."""

    kind: FitKind
    n_ctx: int = 0
    cache_type: str = "f16"
    gpu_bytes: int = 0
    gpu_room_bytes: int = 0
    ram_bytes: int = 0
    ram_room_bytes: int = 0
    on_cpu: int = 0
    """Layers (of "experts": expert layers) that lie in RAM."""
    of_layers: int = 0
    with_pictures: bool = False

    @property
    def fits(self) -> bool:
        return self.kind not in ("too_large", "unknown")


def pc_of(devices: tuple[DeviceInfo, ...], ram_bytes: int, reserve_bytes: int, problem: str = "") -> Pc:
    """This PC from the engine's devices; GPUs that do not tell their memory cannot be planned with."""
    gpus = tuple(gpu for gpu in usable_gpus(devices, LoadOptions(model="")) if gpu.total_bytes)
    cpu = next((device.description.strip() for device in devices if device.kind == "cpu"), "")
    return Pc(
        gpus=gpus,
        ram_bytes=ram_bytes,
        reserve_bytes=reserve_bytes,
        is_probed=not problem,
        problem=problem,
        cpu=cpu,
    )


def estimated_mmproj(n_bytes: int) -> ModelFacts:
    """Facts of a picture file of which only the size is known; its compute buffer counts as the largest seen."""
    tensors = (TensorFacts("v.patch_embd.weight", "", (), n_bytes),)
    return ModelFacts(path="", file_bytes=n_bytes, kind="mmproj", architecture="clip", tensors=tensors)
