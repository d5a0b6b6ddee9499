"""The plain fit: fills in what load options leave open, so that a model never loads into less memory than it needs.

When not everything fits: first a shorter context, then experts to the CPU, then whole layers to the CPU.
A value the user set is kept and only checked.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB, MIB, show_bytes
from qwendesk.hardware.demand import Demand, Placement, Situation, demand, usable_gpus
from qwendesk.hardware.estimate import split_weights

SPARE_GPU_BYTES = GIB
"""Left free on each GPU for the desktop, other programs and drift; llama.cpp's own fit leaves as much."""
LONG_CONTEXT = 32_768
"""The automatic context of a mixture of experts shrinks to this, no further, before experts leave the GPU: a layer's
experts cost more memory than it does, and little speed."""
SHORT_CONTEXT = 8_192
"""The automatic context shrinks to this before whole layers leave the GPU."""
TINY_MODEL_BYTES = 64 * MIB
"""Up to this size one thread is fastest: with more, they wait for each other longer than they work. Measured on the
demo model (3 MB): 5,000 tok/s with one thread on an idle PC, and with two a hundred times less on a busy one."""
SHORTEST_CONTEXT = 4_096
"""The automatic context never shrinks below this."""


def fit(
    facts: ModelFacts,
    mmproj: ModelFacts | None,
    devices: tuple[DeviceInfo, ...],
    available_ram_bytes: int,
    options: LoadOptions,
    physical_cores: int = 0,
) -> LoadOptions | LoadFailure:
    """`options` with n_ctx, n_gpu_layers, n_cpu_moe, load_mode and n_threads decided, or why the model cannot load.

    When the GPUs there are cannot help at all, `devices` becomes "none" and pictures move to the CPU.
    `physical_cores` 0 leaves n_threads to the worker. Failures: out_of_ram, out_of_vram (only for values the user
    set), bad_option (an override pattern that is no regular expression).
    """
    if options.vision == "off":
        mmproj = None
    try:
        weights = split_weights(facts, options.override_tensor)
    except re.error as error:
        return LoadFailure(
            "bad_option", "Bad tensor placement", f'"{error.pattern!s}" is no regular expression: {error.msg}.'
        )
    gpus = usable_gpus(devices, options)
    if options.n_gpu_layers == "auto":
        gpus = tuple(gpu for gpu in gpus if gpu.free_bytes is not None)
    situation = Situation(facts=facts, mmproj=mmproj, options=options, weights=weights, gpus=gpus)
    search = _Search(available_ram_bytes)
    chosen = search.first_that_fits(situation, _placements(situation))
    if chosen is None and gpus and options.n_gpu_layers == "auto" and not options.devices:
        without = msgspec.structs.replace(options, devices=("none",), vision="cpu" if mmproj else options.vision)
        situation = msgspec.structs.replace(situation, options=without, gpus=())
        chosen = search.first_that_fits(situation, _placements(situation))
    if chosen is None:
        return search.failure(situation)
    return _decided(situation, chosen, physical_cores)


def _placements(situation: Situation) -> Iterator[Placement]:
    """The placements worth trying, best first."""
    options, layers = situation.options, len(situation.weights.blocks) + 1
    contexts = _contexts(situation)
    if not situation.gpus or options.n_gpu_layers == 0:
        yield from (Placement(n_ctx, 0, _fixed_moe(options)) for n_ctx in contexts)
        return
    fixed = options.n_gpu_layers != "auto"
    on_gpu = min(options.n_gpu_layers, layers) if isinstance(options.n_gpu_layers, int) else layers
    moves = _expert_moves(situation)
    floor = LONG_CONTEXT if len(moves) > 1 else SHORT_CONTEXT
    yield from (Placement(n_ctx, on_gpu, moves[0]) for n_ctx in contexts if _at_least(n_ctx, floor, contexts))
    for n_ctx in contexts:
        if _at_most(n_ctx, LONG_CONTEXT, contexts):
            yield from (Placement(n_ctx, on_gpu, cpu_moe) for cpu_moe in moves[1:])
    if fixed:
        yield from (Placement(n_ctx, on_gpu, moves[-1]) for n_ctx in contexts)
        return
    for n_ctx in contexts:
        if _at_most(n_ctx, SHORT_CONTEXT, contexts):
            yield from (Placement(n_ctx, gpu_layers, moves[-1]) for gpu_layers in range(layers - 1, 0, -1))
    yield from (Placement(n_ctx, 0, _fixed_moe(options)) for n_ctx in contexts)


def _contexts(situation: Situation) -> tuple[int, ...]:
    """The context lengths to try, longest first."""
    if situation.options.n_ctx:
        return (situation.options.n_ctx,)
    trained = situation.facts.context_length or SHORT_CONTEXT
    steps = [2**power for power in range(32, 0, -1) if SHORTEST_CONTEXT <= 2**power < trained]
    return (trained, *steps)


def _at_least(n_ctx: int, limit: int, contexts: Sequence[int]) -> bool:
    return n_ctx >= limit or n_ctx == contexts[0]


def _at_most(n_ctx: int, limit: int, contexts: Sequence[int]) -> bool:
    return n_ctx <= limit or len(contexts) == 1


def _expert_moves(situation: Situation) -> Sequence[int]:
    """The values of n_cpu_moe to try, fewest first."""
    if situation.options.n_cpu_moe != "auto":
        return (situation.options.n_cpu_moe,)
    return range(situation.weights.expert_blocks + 1)


def _fixed_moe(options: LoadOptions) -> int:
    """n_cpu_moe when nothing is on the GPU: it changes nothing then, so only the user's own value is kept."""
    return 0 if options.n_cpu_moe == "auto" else options.n_cpu_moe


class _Search:
    """Tries placements and remembers by how much the nearest misses failed."""

    def __init__(self, available_ram_bytes: int) -> None:
        self._available = available_ram_bytes
        self._least_ram: int | None = None
        self._least_gpu: tuple[int, DeviceInfo, int] | None = None

    def first_that_fits(self, situation: Situation, placements: Iterator[Placement]) -> Placement | None:
        for placement in placements:
            asked = demand(situation, placement)
            over = self._too_much_for_a_gpu(situation, asked)
            if over is not None:
                self._least_gpu = min(self._least_gpu or over, over, key=lambda each: each[0])
                continue
            needed = asked.ram_other + (0 if situation.options.load_mode == "mmap" else asked.ram_weights)
            if needed <= self._available:
                return placement
            self._least_ram = min(self._least_ram or needed, needed)
        return None

    def _too_much_for_a_gpu(self, situation: Situation, asked: Demand) -> tuple[int, DeviceInfo, int] | None:
        """The GPU that misses most: (bytes missing, the GPU, bytes asked of it); None when all fit.

        What the user fixed may use the memory to the last byte; what we choose leaves some to others.
        """
        spare = SPARE_GPU_BYTES if situation.options.n_gpu_layers == "auto" else 0
        misses = [
            (n_bytes + spare - gpu.free_bytes, gpu, n_bytes)
            for gpu, n_bytes in zip(situation.gpus, asked.gpus, strict=True)
            if gpu.free_bytes is not None and n_bytes + spare > gpu.free_bytes
        ]
        return max(misses, key=lambda each: each[0], default=None)

    def failure(self, situation: Situation) -> LoadFailure:
        name = PurePath(situation.facts.path).name
        if self._least_ram is None and self._least_gpu is not None:
            _, gpu, asked = self._least_gpu
            return LoadFailure(
                "out_of_vram",
                "Not enough video memory",
                f"{name} with these settings needs {show_bytes(asked)} on {gpu.description or gpu.name}, which has "
                f"{show_bytes(gpu.free_bytes or 0)} free. Set GPU offload and Expert layers on CPU to auto, shorten "
                "the context, or choose a smaller quant.",
            )
        advice = "Close other programs, or choose a smaller quant or model."
        if situation.options.load_mode != "mmap":
            advice += " The load mode mmap would load it anyway and read from disk what does not fit: very slow."
        return LoadFailure(
            "out_of_ram",
            "Not enough memory",
            f"{name} needs {show_bytes(self._least_ram or 0)} of RAM, and {show_bytes(self._available)} is free. "
            + advice,
        )


def _decided(situation: Situation, placement: Placement, physical_cores: int) -> LoadOptions:
    options, layers = situation.options, len(situation.weights.blocks) + 1
    load_mode = options.load_mode
    if load_mode == "auto":
        load_mode = "none" if placement.gpu_layers and demand(situation, placement).experts_in_ram else "mmap"
    gpu_layers = options.n_gpu_layers
    if gpu_layers == "auto":
        gpu_layers = "all" if placement.gpu_layers == layers else placement.gpu_layers
    return msgspec.structs.replace(
        options,
        n_ctx=placement.n_ctx,
        n_gpu_layers=gpu_layers,
        n_cpu_moe=placement.cpu_moe,
        load_mode=load_mode,
        n_threads=options.n_threads or (1 if situation.facts.file_bytes <= TINY_MODEL_BYTES else physical_cores),
    )
