"""The steps down: which ways to load a model are tried, best first.

The order is the one people found best: everything on the GPU with f16 caches, then q8_0, then experts to the CPU, then
pictures to the CPU, then less context, then whole layers. Attention and shared experts stay on the GPU longest. The
aim decides how much context is worth giving up speed for. A value the user set is in every step as it is.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import CacheType, LoadOptions

LONGEST_USUAL = 131_072
WANTED_CONTEXT = 65_536
"""What Balanced keeps before experts leave the GPU: enough for long chats and small code bases."""
SPEED_CONTEXT = 16_384
"""Speed gives up context down to here to keep everything on the GPU."""
SHORT_CONTEXT = 8_192
"""The automatic context shrinks to this before whole layers leave the GPU."""
SHORTEST_CONTEXT = 4_096
"""The automatic context never shrinks below this."""
_UBATCH, _UBATCH_WITH_EXPERTS = 512, 1024
"""With experts on the CPU, reading a prompt was reported at 458 tok/s with 512 and 706 with 1024; 2048 gave no more."""

Vision = Literal["gpu", "cpu", "off"]


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What all steps of one ladder share."""

    facts: ModelFacts
    options: LoadOptions
    expert_blocks: int
    """The smallest n_cpu_moe that moves all experts; 0 for a dense model."""
    has_gpu: bool
    has_pictures: bool

    @property
    def layers(self) -> int:
        """The output counts as one more layer."""
        return self.facts.block_count + 1


def steps(start: Start) -> Iterator[LoadOptions]:
    """Options without an "auto" that the planner decides (the load mode and threads are decided later)."""
    if not start.has_gpu or start.options.n_gpu_layers == 0:
        yield from _in_ram(start)
        return
    contexts = _contexts(start)
    wanted, floor = _wanted(start, contexts)
    yield from _all_on_gpu(start, wanted)
    at = wanted[-1]
    for cpu_moe in _expert_moves(start)[1:]:
        yield _step(start, at, _last_cache(start), cpu_moe=cpu_moe)
    most = _expert_moves(start)[-1]
    smaller = tuple(n_ctx for n_ctx in contexts if n_ctx <= at) or (at,)
    if start.has_pictures and start.options.vision == "auto":
        yield _step(start, at, _last_cache(start), cpu_moe=most, vision="cpu")
    for n_ctx in smaller[1:]:
        if n_ctx >= floor:
            yield _step(start, n_ctx, _last_cache(start), cpu_moe=most, vision="cpu")
    yield from _whole_layers(start, smaller, floor, most)


def _all_on_gpu(start: Start, contexts: Sequence[int]) -> Iterator[LoadOptions]:
    """Longest first. The model's full length costs precision only where it is what was asked for."""
    for n_ctx in contexts:
        is_asked = start.options.n_ctx or start.options.aim == "long_context"
        caches = _caches(start) if is_asked or n_ctx <= LONGEST_USUAL or len(contexts) == 1 else _caches(start)[:1]
        for cache in caches:
            yield _step(start, n_ctx, cache, cpu_moe=_expert_moves(start)[0])


def _whole_layers(start: Start, contexts: Sequence[int], floor: int, cpu_moe: int) -> Iterator[LoadOptions]:
    short = tuple(n_ctx for n_ctx in contexts if n_ctx <= floor) or contexts[-1:]
    cache = _last_cache(start)
    if start.options.n_gpu_layers != "auto":
        yield from (_step(start, n_ctx, cache, cpu_moe=cpu_moe, vision="cpu") for n_ctx in short)
        return
    for n_ctx in short[:1]:
        for gpu_layers in range(start.layers - 1, 0, -1):
            yield _step(start, n_ctx, cache, cpu_moe=cpu_moe, vision="cpu", gpu_layers=gpu_layers)


def _in_ram(start: Start) -> Iterator[LoadOptions]:
    contexts = _contexts(start)
    moe = 0 if start.options.n_cpu_moe == "auto" else start.options.n_cpu_moe
    for n_ctx in contexts:
        yield _step(start, n_ctx, _caches(start)[0], cpu_moe=moe, vision="cpu", gpu_layers=0)
    yield _step(start, contexts[-1], _last_cache(start), cpu_moe=moe, vision="cpu", gpu_layers=0)


def _contexts(start: Start) -> tuple[int, ...]:
    """The context lengths to try, longest first."""
    if start.options.n_ctx:
        return (start.options.n_ctx,)
    trained = start.facts.context_length or SHORT_CONTEXT
    return (trained, *(2**power for power in range(31, 0, -1) if SHORTEST_CONTEXT <= 2**power < trained))


def _wanted(start: Start, contexts: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The contexts worth keeping everything on the GPU for; and the length below which layers move first."""
    aim = start.options.aim
    least = {"speed": SPEED_CONTEXT, "balanced": WANTED_CONTEXT, "long_context": contexts[0]}[aim]
    floor = WANTED_CONTEXT // 2 if aim == "long_context" else SHORT_CONTEXT
    return tuple(n_ctx for n_ctx in contexts if n_ctx >= least) or contexts[:1], floor


def _caches(start: Start) -> tuple[CacheType, ...]:
    """Cache types in the order they are tried; a type the user set is the only one."""
    options = start.options
    if options.type_k != "auto" or options.flash_attn == "off":
        return ("f16" if options.type_k == "auto" else options.type_k,)
    return ("f16", "q8_0")


def _last_cache(start: Start) -> CacheType:
    return _caches(start)[-1]


def _expert_moves(start: Start) -> Sequence[int]:
    """The values of n_cpu_moe to try, fewest first."""
    if start.options.n_cpu_moe != "auto":
        return (start.options.n_cpu_moe,)
    return range(start.expert_blocks + 1)


def _step(
    start: Start,
    n_ctx: int,
    cache: CacheType,
    *,
    cpu_moe: int,
    vision: Vision = "gpu",
    gpu_layers: int | None = None,
) -> LoadOptions:
    options = start.options
    type_v: CacheType = (
        ("f16" if options.flash_attn == "off" else cache) if options.type_v == "auto" else options.type_v
    )
    asked = options.n_gpu_layers
    decided_layers: Literal["auto", "all"] | int = "all" if gpu_layers is None else gpu_layers
    if asked != "auto":
        decided_layers = asked
    n_ubatch = _UBATCH_WITH_EXPERTS if cpu_moe and start.has_gpu and decided_layers != 0 else _UBATCH
    return msgspec.structs.replace(
        options,
        n_ctx=n_ctx,
        type_k=cache,
        type_v=type_v,
        n_cpu_moe=cpu_moe,
        n_gpu_layers=decided_layers,
        vision=vision if options.vision == "auto" else options.vision,
        n_ubatch=n_ubatch if options.n_ubatch == "auto" else options.n_ubatch,
    )
