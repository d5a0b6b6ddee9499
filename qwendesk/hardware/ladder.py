"""The steps down: what to give up, in which order, if a model needs more memory than there is.

Three parts of QwenDesk use the steps. The planner goes through every level of them in the order of `STEPS` until a
configuration fits (`candidates`). The retry after a failed load takes several levels at once, because each try takes
seconds (engines/load_decision.py). The spill remedies are single steps that free enough memory, in an order of their
own (meters/spill_remedies.py).

Values that the user set are no steps: the planner keeps them. If they miss by little, it spends the headroom and makes
batches smaller. If that isn't enough, it says what is missing and offers the nearest value that fits.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Literal

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.number_format import show_count
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.rope_scaling import without_rope_scaling
from qwendesk.core.translation import mark, tr, tr_n
from qwendesk.hardware.expert_layers import (
    count_cpu_expert_layers,
    cpu_expert_layers,
    own_patterns,
    with_cpu_expert_layers,
)
from qwendesk.hardware.layer_split import runs_of_layers

# Evaluation batches that are tried if the user set none. Smaller ones save little more.
_SMALLER_BATCHES = (512, 256)
# The fewest tokens of context that any step leaves: a chat with one or two pictures needs that much.
SHORTEST_CONTEXT = 4_096
# A longer automatic context is only tried with an f16 cache.
_LONGEST_QUANTIZED_CONTEXT = 131_072
# With the aim Balanced, the context isn't shortened below this before experts leave the GPU.
#
# It is enough for long chats and small code bases.
_BALANCED_CONTEXT = 65_536
# With the aim Speed, the context is shortened down to this to keep everything on the GPU.
_SPEED_CONTEXT = 16_384
# An automatic context is shortened to this before whole layers leave the GPU.
_SHORT_CONTEXT = 8_192
# Users reported for prompt processing with experts on the CPU: 458 tok/s with 512, 706 with 1024 and with 2048.
_UBATCH, _UBATCH_WITH_EXPERTS = 512, 1024

StepId = Literal["drafts", "kv", "experts", "vision", "context", "layers", "cpu"]


class ModelShape(msgspec.Struct, frozen=True):
    """The parts of a model that a step can move."""

    layers: int
    """Without the output layer; 0 if unknown."""
    expert_layers: int
    """The smallest `n_cpu_moe` that moves all experts; 0 for a dense model."""
    has_vision: bool


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A way to need less GPU memory."""

    id: StepId
    key: str
    """The load option that the step changes. The planner skips the step if the user set this option."""
    cost: str
    """Cost for the user, in an English sentence."""
    levels: Callable[[LoadOptions, ModelShape], Iterator[LoadOptions]]
    """Yields the options after each further level, the smallest change first; nothing if the step can't help.

    No option that a step changes may be "auto" in the given options.
    """


def _without_drafts(options: LoadOptions, _model: ModelShape) -> Iterator[LoadOptions]:
    if options.speculative in ("mtp", "lookup"):
        yield msgspec.structs.replace(options, speculative="off")


def _quantized_cache(options: LoadOptions, _model: ModelShape) -> Iterator[LoadOptions]:
    if options.type_k == "f16" and options.flash_attn != "off":
        type_v = "q8_0" if options.type_v == "f16" else options.type_v
        yield msgspec.structs.replace(options, type_k="q8_0", type_v=type_v)


def _experts_on_cpu(options: LoadOptions, model: ModelShape) -> Iterator[LoadOptions]:
    # The CPU computes faster with experts that were copied into RAM than with a mapped file.
    load_mode = "auto" if options.load_mode == "auto" else "none"
    moved = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    for n_cpu_moe in range(moved + 1, model.expert_layers + 1):
        yield msgspec.structs.replace(options, n_cpu_moe=n_cpu_moe, load_mode=load_mode)


def _vision_on_cpu(options: LoadOptions, model: ModelShape) -> Iterator[LoadOptions]:
    if model.has_vision and options.vision == "gpu":
        yield msgspec.structs.replace(options, vision="cpu")


def _shorter_context(options: LoadOptions, _model: ModelShape) -> Iterator[LoadOptions]:
    n_ctx = _power_of_two_below(options.n_ctx)
    options = without_rope_scaling(options)  # a shorter context may need a smaller YaRN factor, or none
    while n_ctx >= SHORTEST_CONTEXT:
        yield msgspec.structs.replace(options, n_ctx=n_ctx)
        n_ctx //= 2


def _power_of_two_below(n: int) -> int:
    """Return the largest power of two that is less than `n`; 1 if there is none."""
    power = 1
    while power * 2 < n:
        power *= 2
    return power


def _fewer_gpu_layers(options: LoadOptions, model: ModelShape) -> Iterator[LoadOptions]:
    for n_gpu_layers in range(layers_on_gpu(options, model) - 1, -1, -1):
        yield msgspec.structs.replace(options, n_gpu_layers=n_gpu_layers)


def _cpu_only(options: LoadOptions, model: ModelShape) -> Iterator[LoadOptions]:
    if layers_on_gpu(options, model):
        vision = "cpu" if options.vision == "gpu" else options.vision
        yield msgspec.structs.replace(options, devices=("none",), n_gpu_layers=0, vision=vision)


_SLOWER_ANSWERS = mark("Answers are slower. The context stays the same.")
# The step with the lowest cost comes first. Attention and shared experts stay on the GPU longest.
#
# The planner treats the smaller cache and the CPU alone apart (`_gpu_candidates`), and never takes drafts: they are
# added to a plan only where there is room for them (engines/load_planner.py).
STEPS = (
    Step(
        id="drafts",
        key="speculative",
        cost=mark("Answers may be slower. What they say stays the same."),
        levels=_without_drafts,
    ),
    Step(
        id="kv",
        key="type_k",
        cost=mark("Halves the memory of the chat. Small mistakes in formulas were reported in long chats."),
        levels=_quantized_cache,
    ),
    Step(id="experts", key="n_cpu_moe", cost=_SLOWER_ANSWERS, levels=_experts_on_cpu),
    Step(
        id="vision",
        key="vision",
        cost=mark("Pictures take seconds to process. Answers are as fast as before."),
        levels=_vision_on_cpu,
    ),
    Step(
        id="context",
        key="n_ctx",
        cost=mark("Long chats fill up sooner. Answers are as fast as before."),
        levels=_shorter_context,
    ),
    Step(id="layers", key="n_gpu_layers", cost=_SLOWER_ANSWERS, levels=_fewer_gpu_layers),
    Step(
        id="cpu",
        key="devices",
        cost=mark("Many times slower, but doesn't use the graphics driver."),
        levels=_cpu_only,
    ),
)


class StepDown(msgspec.Struct, frozen=True):
    """A configuration after one step down."""

    id: StepId
    options: LoadOptions

    @property
    def label(self) -> str:
        """Text for a button."""
        options = self.options
        match self.id:
            case "drafts":
                return tr("Without token drafts")
            case "kv":
                return tr("Smaller cache (q8_0)")
            case "experts":
                n_layers = count_cpu_expert_layers(options)
                return tr_n("{0} expert layer on the CPU", "{0} expert layers on the CPU", n_layers)
            case "vision":
                return tr("Pictures on the CPU")
            case "context":
                return tr("Context of {0} tokens", show_count(options.n_ctx))
            case "layers":
                return tr_n("{0} layer on the GPU", "{0} layers on the GPU", _number(options.n_gpu_layers))
            case "cpu":
                return tr("Load on the CPU alone")

    @property
    def cost(self) -> str:
        """What the user gives up, in a sentence."""
        return tr(self._step.cost)

    @property
    def assignment(self) -> str:
        """The changed option as `--set` takes it, such as "n_ctx=8192"."""
        is_pattern = self.id == "experts" and own_patterns(self.options) != self.options.override_tensor
        key = "override_tensor" if is_pattern else self._step.key
        value = getattr(self.options, key)
        return f"{key}={','.join(value) if isinstance(value, tuple) else value}"

    @property
    def _step(self) -> Step:
        return next(step for step in STEPS if step.id == self.id)


def _number(layers: str | int) -> int:
    return layers if isinstance(layers, int) else 0


def step_levels(step_id: StepId, options: LoadOptions, model: ModelShape) -> Iterator[LoadOptions]:
    """Return the levels of one step; see `Step.levels`."""
    return next(step for step in STEPS if step.id == step_id).levels(options, model)


def layers_on_gpu(options: LoadOptions, model: ModelShape) -> int:
    """Return how many layers are on the GPU; the output layer counts as one."""
    if options.devices == ("none",):
        return 0
    if isinstance(options.n_gpu_layers, int):
        return min(options.n_gpu_layers, model.layers + 1) if model.layers else options.n_gpu_layers
    return model.layers + 1


class LadderInput(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all configurations that the planner tries for one model."""

    facts: ModelFacts
    options: LoadOptions
    """The options as the user set them. Those that differ from their default are kept in every configuration."""
    expert_layers: int
    """The smallest `n_cpu_moe` that moves all experts; 0 for a dense model."""
    has_gpu: bool
    has_vision: bool
    is_split: bool = False
    """True if several GPUs share the layers. n_cpu_moe is then the most expert layers that may leave the GPUs:
    device_split.py decides how many do, and which."""
    is_unified: bool = False
    """True if the GPU uses the RAM as its memory. Moving a part of the model to the CPU then only helps where the GPU
    may use less than all that is free, so it is tried for each context."""

    @property
    def model(self) -> ModelShape:
        return ModelShape(self.facts.block_count, self.expert_layers, self.has_vision)


def candidates(given: LadderInput) -> Iterator[LoadOptions]:
    """Return the configurations that the planner tries, the best first.

    Only the load mode and the threads may still be undecided in them.
    """
    has_gpu = given.has_gpu and given.options.n_gpu_layers != 0
    return (
        _with_values_set(given, options) for options in (_gpu_candidates(given) if has_gpu else _ram_candidates(given))
    )


def _gpu_candidates(given: LadderInput) -> Iterator[LoadOptions]:
    options = _full_configuration(given, "all")
    for candidate in _with_all_on_gpu(given, options):
        yield candidate
        options = candidate  # the steps go on from the last one
    if not given.is_unified:
        yield from _steps_down(given, options, ("experts", "vision", "context", "layers"))
        return
    for context in (options, *_steps_down(given, options, ("context",))):
        yield context
        options = context
        for lower in _steps_down(given, context, ("experts", "vision")):
            yield lower
            options = lower
    yield from _steps_down(given, options, ("layers",))


def _steps_down(given: LadderInput, options: LoadOptions, step_ids: Collection[str]) -> Iterator[LoadOptions]:
    """Yield each level of some steps, in the order of `STEPS`. A step goes on from the last level of the one before."""
    for step in STEPS:
        is_taken = step.id in step_ids and _may_take(given, step)
        levels = tuple(step.levels(options, given.model)) if is_taken else ()
        for lower in levels[-1:] if step.id == "experts" and given.is_split else levels:
            if lower.n_gpu_layers == 0 or (step.id == "context" and lower.n_ctx < _shortest_context(given.options)):
                break
            options = lower
            yield options


def _may_take(given: LadderInput, step: Step) -> bool:
    """Return True if the planner may take a step. Whole layers don't move if the user set the number of expert layers:
    that would cost several times the speed to save what a few expert layers save."""
    are_experts_set = given.expert_layers > 0 and not _may_choose(given.options, "n_cpu_moe")
    return _may_choose(given.options, step.key) and not (step.id == "layers" and are_experts_set)


def _with_all_on_gpu(given: LadderInput, options: LoadOptions) -> Iterator[LoadOptions]:
    """Yield configurations with everything on the GPU for each context, with an f16 and often a quantized cache."""
    least = {"speed": _SPEED_CONTEXT, "balanced": _BALANCED_CONTEXT, "long_context": options.n_ctx}[options.aim]
    contexts = _with_contexts(given, options, least)
    is_wanted_long = bool(given.options.n_ctx) or options.aim == "long_context"
    for candidate in contexts:
        yield candidate
        if is_wanted_long or candidate.n_ctx <= _LONGEST_QUANTIZED_CONTEXT or len(contexts) == 1:
            yield from _with_quantized_cache(given, candidate)


def _ram_candidates(given: LadderInput) -> Iterator[LoadOptions]:
    """Yield configurations without a GPU. A quantized cache comes last, because it slows the CPU down."""
    options = _full_configuration(given, 0)
    for candidate in _with_contexts(given, options, SHORTEST_CONTEXT):
        yield candidate
        options = candidate  # the one with the shortest context
    yield from _with_quantized_cache(given, options)


def _full_configuration(given: LadderInput, n_gpu_layers: Literal["all", 0]) -> LoadOptions:
    """Return the configuration that gives up nothing."""
    requested = given.options
    type_k = "f16" if requested.type_k == "auto" else requested.type_k
    options = msgspec.structs.replace(
        requested,
        n_ctx=given.facts.context_length or _SHORT_CONTEXT,
        type_k=type_k,
        type_v="f16" if requested.flash_attn == "off" else type_k,
        n_cpu_moe=0,
        n_gpu_layers=n_gpu_layers,
        vision="gpu" if n_gpu_layers else "cpu",
    )
    return _with_values_set(given, options)


def _with_contexts(given: LadderInput, options: LoadOptions, least: int) -> tuple[LoadOptions, ...]:
    """Return `options`, then with each shorter context of `least` tokens or more, unless the user set the context."""
    shorter = _shorter_context(options, given.model) if _may_choose(given.options, "n_ctx") else ()
    return (options, *(each for each in shorter if each.n_ctx >= least))


def _with_quantized_cache(given: LadderInput, options: LoadOptions) -> Iterator[LoadOptions]:
    if _may_choose(given.options, "type_k"):
        yield from _quantized_cache(options, given.model)


def _shortest_context(requested: LoadOptions) -> int:
    """Return the shortest context that the planner tries before whole layers leave the GPU."""
    if not _may_choose(requested, "n_gpu_layers"):
        return SHORTEST_CONTEXT
    return _BALANCED_CONTEXT // 2 if requested.aim == "long_context" else _SHORT_CONTEXT


def _may_choose(requested: LoadOptions, key: str) -> bool:
    """Return True if the planner may choose this option, because it is at its default."""
    return bool(getattr(requested, key) == getattr(LoadOptions(model=""), key))


def _with_values_set(given: LadderInput, options: LoadOptions) -> LoadOptions:
    """Return `options` with the values that the user set, and with the evaluation batch decided."""
    requested = given.options
    keys = ("n_ctx", "type_k", "type_v", "n_cpu_moe", "n_gpu_layers", "vision", "load_mode")
    options = msgspec.structs.replace(
        options, **{key: getattr(requested, key) for key in keys if not _may_choose(requested, key)}
    )
    if requested.n_ubatch != "auto":
        return options
    shares_experts = options.n_cpu_moe and given.has_gpu and options.n_gpu_layers != 0
    return msgspec.structs.replace(options, n_ubatch=_UBATCH_WITH_EXPERTS if shares_experts else _UBATCH)


def experts_off_gpus(
    options: LoadOptions, model: ModelShape, n_gpus: int, short: Collection[int]
) -> Iterator[LoadOptions]:
    """Yield options with the experts of one more layer in RAM each: layers of the GPUs in `short`, by their numbers.

    Which layers a GPU has is known if there are several GPUs and tensor_split is set, as in every plan for them. Else
    the layers are counted from the first, as n_cpu_moe does.
    """
    runs = runs_of_layers(options, model.layers, n_gpus)
    if not runs:
        yield from step_levels("experts", options, model)
        return
    in_ram = list(cpu_expert_layers(options, model.layers))
    left = [[layer for layer in runs[gpu] if layer not in in_ram] for gpu in short]
    load_mode = "auto" if options.load_mode == "auto" else "none"  # as in the ladder
    for layer in (layer for row in zip_longest(*left) for layer in row if layer is not None):
        in_ram.append(layer)
        yield msgspec.structs.replace(with_cpu_expert_layers(options, in_ram), load_mode=load_mode)


def is_placed_by_hand(options: LoadOptions) -> bool:
    """Return True if the user set how the model is placed, and not that no GPU is used."""
    is_set = options.n_cpu_moe != "auto" or options.n_gpu_layers != "auto" or bool(options.tensor_split)
    return is_set and options.n_gpu_layers != 0


def are_experts_placed_by_hand(options: LoadOptions, model: ModelShape) -> bool:
    """Return True if the user set of how many layers the experts are in RAM, and the model has experts."""
    return options.n_cpu_moe != "auto" and model.expert_layers > 0


def closer_fits(machine: MachineMemory, options: LoadOptions) -> Iterator[tuple[MachineMemory, LoadOptions]]:
    """Yield what to try if `options` don't fit: with the headroom spent, then with smaller and smaller batches too."""
    machine = msgspec.structs.replace(machine, spends_headroom=True)
    yield machine, options
    for n_ubatch in _SMALLER_BATCHES if options.n_ubatch == "auto" else ():
        yield machine, msgspec.structs.replace(options, n_ubatch=n_ubatch)


def nearest_that_fits(
    options: LoadOptions, model: ModelShape, fits: Callable[[LoadOptions], bool]
) -> LoadOptions | None:
    """Return `options` with one value changed as little as possible so that it fits; None if no value does."""
    if are_experts_placed_by_hand(options, model):
        in_ram = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
        more = [msgspec.structs.replace(options, n_cpu_moe=n) for n in range(in_ram + 1, model.expert_layers + 1)]
        if found := _first_that_fits(more, fits):
            return found
    if options.n_gpu_layers != "auto":
        on_gpu = layers_on_gpu(options, model)
        fewer = [msgspec.structs.replace(options, n_gpu_layers=n) for n in range(on_gpu - 1, 0, -1)]
        if found := _first_that_fits(fewer, fits):
            return found
    return _first_that_fits([msgspec.structs.replace(options, tensor_split=())], fits) if options.tensor_split else None


def _first_that_fits(values: Sequence[LoadOptions], fits: Callable[[LoadOptions], bool]) -> LoadOptions | None:
    """Return the first that fits. Each needs less video memory than the one before."""
    at = bisect_left(values, True, key=fits)
    return values[at] if at < len(values) else None
