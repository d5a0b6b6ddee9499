"""The PCs and rows of tests/data/expected_advice.json: what is expected to be recommended for whom."""

from pathlib import Path

import msgspec

from qwendesk.core.devices import DeviceInfo, DeviceKind
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.units import GIB
from qwendesk.models.fit import Pc, make_pc

_METAL_SHARE = 3 / 4
"""What Metal lets the GPU of a Mac with 36 GB or more use."""
_BACKENDS = {"cuda": "CUDA", "vulkan": "Vulkan", "metal": "MTL"}


class AdvicePc(msgspec.Struct, frozen=True):
    """A PC as `qwendesk recommend` takes it. Memory in GiB."""

    name: str
    gpus: tuple[str, ...]
    unified: int
    backend: str
    ram: int


class AdviceRow(msgspec.Struct, frozen=True):
    pc: str
    purpose: str
    """Or "plan": what `qwendesk plan` says of this file."""
    model: str
    quant: str
    n_cpu_moe: int
    n_ctx: int
    split: tuple[float, ...]
    """Percentages of the layers; empty for one GPU or none, and where several splits fill the GPUs alike."""
    source: str


class Advice(msgspec.Struct, frozen=True):
    pcs: tuple[AdvicePc, ...]
    rows: tuple[AdviceRow, ...]


ADVICE = decode_json((Path(__file__).parent.parent / "data/expected_advice.json").read_bytes(), Advice)


def pc_of(advice: AdvicePc) -> Pc:
    """Return the PC as the engine sees it, with 1 GB of each GPU kept free."""
    backend = _BACKENDS[advice.backend]
    if advice.unified:
        is_mac = advice.backend == "metal"
        name = f"Apple {advice.name}" if is_mac else advice.name
        sizes = [(name, advice.unified * _METAL_SHARE if is_mac else advice.unified)]
    else:
        sizes = [(name, float(gib)) for name, _, gib in (gpu.rpartition(":") for gpu in advice.gpus)]
    kind: DeviceKind = "igpu" if advice.unified and advice.backend != "metal" else "gpu"
    devices = []
    for number, (name, gib) in enumerate(sizes):
        n_bytes = int(gib * GIB)
        devices.append(DeviceInfo(f"{backend}{number}", name, kind, backend, n_bytes, n_bytes))
    return make_pc(tuple(devices), (advice.ram or advice.unified) * GIB, GIB)
