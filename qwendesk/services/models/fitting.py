"""Whether a file fits this PC, by arithmetic, before it is downloaded. One place: `fit_label`.

A file's own header is exact. Of a file that is only in the catalog, the size and the model's hyper-parameters are
known; how the bytes spread over the layers is worked out from them (`estimated_facts`), good to a few percent.
"""

import functools
import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import CacheType, LoadOptions
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.demand import Demand, Placement, Situation, demand, usable_gpus
from qwendesk.hardware.estimate import split_weights
from qwendesk.hub.catalog_schema import Model

FitKind = Literal["vram", "experts", "layers", "cpu", "too_large", "unknown"]
"""From fastest to slowest: all on the GPU; some expert layers in RAM; whole layers in RAM; all in RAM; not at all."""

DRIFT_BYTES = 614 * MIB
"""What driver and allocators take beyond the formulas: 0.6 GB measured on a 24 GB card."""
_SYSTEM_RAM_BYTES, _SYSTEM_RAM_SHARE = 5 * GIB, 0.4
"""Left to the system, a browser and a game: so much, or that share of a small memory. Assumed, not measured."""
_TIED_BELOW_B = 6.0
"""The small models (4B and below) have one matrix for input and output."""
_CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8_192)
_OFFLOAD_CONTEXTS = (65_536, 32_768, 8_192)


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


def fit_label(file: ModelFacts, mmproj: ModelFacts | None, pc: Pc) -> FitLabel:
    """How `file` with its picture file would run on `pc`: the fastest way that fits."""
    if not file.block_count or not file.embedding_length:
        return FitLabel(kind="unknown", with_pictures=mmproj is not None)
    gpus = tuple(_with_room(gpu, pc.reserve_bytes) for gpu in pc.gpus)
    weights = split_weights(file)
    for kind, options, place in _ways(file, weights.expert_blocks, has_gpu=bool(gpus)):
        at = msgspec.structs.replace(options, vision="cpu" if kind == "layers" else "gpu")
        chosen = gpus if kind != "cpu" else ()
        situation = Situation(facts=file, mmproj=mmproj, options=at, weights=weights, gpus=chosen)
        found = _cheapest(situation, kind, place, pc)
        if found is not None:
            placement, asked = found
            return _label(kind, situation, placement, asked, pc)
    smallest = _at(LoadOptions(model="", vision="cpu"), _CONTEXTS[-1], "q8_0")
    situation = Situation(facts=file, mmproj=mmproj, options=smallest, weights=weights, gpus=())
    none = Placement(smallest.n_ctx, 0, 0)
    return _label("too_large", situation, none, demand(situation, none), pc)


@functools.lru_cache(maxsize=2048)
def catalog_label(model: Model, n_bytes: int, mmproj_bytes: int, pc: Pc) -> FitLabel:
    """`fit_label` of a file of which the catalog has only the size; remembered, as pictures go on and off."""
    mmproj = estimated_mmproj(mmproj_bytes) if mmproj_bytes else None
    return fit_label(estimated_facts(model, n_bytes), mmproj, pc)


def estimated_facts(model: Model, n_bytes: int, quant: str = "") -> ModelFacts:
    """Facts of a file of `model` with `n_bytes` that nobody has opened: layers of one size, experts by share.

    The experts' share follows from all and active parameters: active = rest + experts x used / count.
    """
    h = model.hyperparameters
    embeddings = h.vocab_size * h.embedding_length
    copies = 1 if model.params_b < _TIED_BELOW_B else 2
    experts = 0.0
    if h.expert_count:
        used = h.expert_used_count / h.expert_count
        experts = (model.params_b - model.active_params_b) * 1e9 / (1 - used)
    per_param = n_bytes / (model.params_b * 1e9)
    rest = max(model.params_b * 1e9 - experts - copies * embeddings, 0.0)
    tensors = [_tensor("token_embd.weight", embeddings * per_param)]
    if copies == 2:
        tensors.append(_tensor("output.weight", embeddings * per_param))
    for block in range(h.block_count):
        tensors.append(_tensor(f"blk.{block}.attn.weight", rest * per_param / h.block_count))
        if experts:
            share = experts * per_param / h.block_count / 3
            tensors += [_tensor(f"blk.{block}.ffn_{part}_exps.weight", share) for part in ("up", "down", "gate")]
    return ModelFacts(
        path="",
        file_bytes=n_bytes,
        kind="model",
        architecture=model.architecture,
        name=model.id,
        quant=quant,
        tensors=tuple(tensors),
        **{name: getattr(h, name) for name in h.__struct_fields__},
    )


def estimated_mmproj(n_bytes: int) -> ModelFacts:
    """Facts of a picture file of which only the size is known; its compute buffer counts as the largest seen."""
    tensors = (_tensor("v.patch_embd.weight", n_bytes),)
    return ModelFacts(path="", file_bytes=n_bytes, kind="mmproj", architecture="clip", tensors=tensors)


def _tensor(name: str, n_bytes: float) -> TensorFacts:
    return TensorFacts(name, "", (), math.ceil(n_bytes))


def _with_room(gpu: DeviceInfo, reserve_bytes: int) -> DeviceInfo:
    """Its free memory is what may be used of it, whatever holds it at the moment."""
    room = max((gpu.total_bytes or 0) - reserve_bytes, 0)
    return DeviceInfo(gpu.name, gpu.description, gpu.kind, gpu.backend, gpu.total_bytes, room)


def _at(options: LoadOptions, n_ctx: int, cache: CacheType) -> LoadOptions:
    return msgspec.structs.replace(options, n_ctx=n_ctx, type_k=cache, type_v=cache, flash_attn="on")


def _ways(
    file: ModelFacts, expert_blocks: int, *, has_gpu: bool
) -> Iterator[tuple[FitKind, LoadOptions, tuple[Placement, ...]]]:
    """Ways to run, fastest first; of each the placements from least to most in RAM."""
    base, layers = LoadOptions(model=""), file.block_count + 1
    trained = file.context_length or _CONTEXTS[0]
    caches: tuple[CacheType, ...] = ("f16", "q8_0")
    if has_gpu:
        for n_ctx in (each for each in _CONTEXTS if each <= trained):
            for cache in caches:
                yield "vram", _at(base, n_ctx, cache), (Placement(n_ctx, layers, 0),)
        for n_ctx in (each for each in _OFFLOAD_CONTEXTS if each <= trained):
            moves = range(1, expert_blocks + 1)
            yield "experts", _at(base, n_ctx, "q8_0"), tuple(Placement(n_ctx, layers, each) for each in moves)
        at = min(8_192, trained)
        fewer = range(layers - 1, 0, -1)
        yield "layers", _at(base, at, "q8_0"), tuple(Placement(at, each, expert_blocks) for each in fewer)
    for n_ctx in (each for each in _OFFLOAD_CONTEXTS if each <= trained):
        yield "cpu", _at(base, n_ctx, "f16"), (Placement(n_ctx, 0, 0),)


def _cheapest(
    situation: Situation, kind: FitKind, places: tuple[Placement, ...], pc: Pc
) -> tuple[Placement, Demand] | None:
    """The first placement that fits. Each moves more into RAM than the one before, so halving finds it."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if _fits_gpus(situation, demand(situation, places[middle])):
            high = middle
        else:
            low = middle + 1
    if low == len(places):
        return None
    asked = demand(situation, places[low])
    return (places[low], asked) if _ram(asked) <= pc.ram_room_bytes or kind == "vram" else None


def _fits_gpus(situation: Situation, asked: Demand) -> bool:
    rooms = (gpu.free_bytes or 0 for gpu in situation.gpus)
    return all(n_bytes + DRIFT_BYTES <= room for n_bytes, room in zip(asked.gpus, rooms, strict=True))


def _ram(asked: Demand) -> int:
    return asked.ram_weights + asked.ram_other


def _label(kind: FitKind, situation: Situation, place: Placement, asked: Demand, pc: Pc) -> FitLabel:
    layers = len(situation.weights.blocks)
    on_cpu = {"experts": place.cpu_moe, "layers": max(layers + 1 - place.gpu_layers, 0)}.get(kind, 0)
    drift = DRIFT_BYTES * len(situation.gpus)
    return FitLabel(
        kind=kind,
        n_ctx=place.n_ctx,
        cache_type=situation.options.type_k,
        gpu_bytes=sum(asked.gpus) + drift,
        gpu_room_bytes=pc.vram_room_bytes if situation.gpus else 0,
        ram_bytes=_ram(asked),
        ram_room_bytes=pc.ram_room_bytes,
        on_cpu=on_cpu,
        of_layers=layers,
        with_pictures=situation.mmproj is not None,
    )
