"""The options that auto-tune varies for a plan, and the values it may try. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from qwendesk.bench.tune_rules import Changes, Dimension
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.translation import tr, tr_n

PINNED = ("n_ctx", "type_k", "type_v", "vision")
"""Options that stay as the plan of the user's settings has them, because answers would be worse otherwise."""
_UBATCHES = (128, 256, 512, 1024, 2048, 4096)
_EXPERT_STEPS = (-4, -2, -1, 0, 1, 2, 4)
"""Expert layers on the CPU, beyond those of the plan. Fewer need free memory, which the planner may not count on."""
_DRAFTED = (2, 3, 5)
_SHIFTS = (-0.1, -0.05, 0.0, 0.05, 0.1)
"""Shares of the model that move from the second GPU to the first."""


class TuneInput(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which options are worth trying."""

    plan: Plan
    """Of the user's own settings."""
    can_draft: bool
    """Whether the model has a draft head."""
    n_layers: int
    n_prompt: int
    """Tokens of the prompt that is measured: larger evaluation batches make no difference."""
    physical_cores: int
    logical_cores: int
    may_change_answers: bool = False
    """Whether options that make answers a little worse may be tried."""


def pinned(requested: LoadOptions, plan: Plan) -> LoadOptions:
    """Return the user's options with `PINNED` as in the plan; the planner decides the rest for each candidate."""
    return msgspec.structs.replace(requested, **{key: getattr(plan.options, key) for key in PINNED})


def dimensions(found: TuneInput) -> tuple[Dimension, ...]:
    """Return what to vary, with the greatest expected gain first."""
    uses_gpu = found.plan.kind not in ("cpu", "disk")
    on_gpu = [_drafts(found), _experts(found), *_split(found), _ubatch(found), _threads(found)]
    on_cpu = [_threads(found), _drafts(found), _ubatch(found)]
    rest = [_prompt_threads(found), _cache(found), _flash_attention(found), _helper(found)]
    return tuple(each for each in (*(on_gpu if uses_gpu else on_cpu), *rest) if len(each.steps) > 1)


def change_texts(changes: Changes) -> tuple[str, ...]:
    """Return each change in a few words, such as "6 threads" and "n_ubatch 1024"."""
    return tuple(_text(key, value) for key, value in changes.items() if key not in _WITH_OTHERS)


def _text(key: str, value: Any) -> str:
    match key:
        case "n_threads":
            return tr_n("{0} thread", "{0} threads", value)
        case "n_threads_batch":
            return tr_n("{0} thread for prompts", "{0} threads for prompts", value)
        case "type_k":
            return tr("KV cache {0}", value)
        case "speculative":
            return {"off": tr("no drafts"), "lookup": tr("drafts from the text")}.get(value, tr("drafts by the head"))
        case "draft_n_max":
            return tr_n("{0} token ahead", "{0} tokens ahead", value)
        case "flash_attn":
            return tr("flash attention {0}", value)
        case "tensor_split":
            return tr("split {0}", " : ".join(f"{share:g}" for share in value))
    return f"{key} {value}"


_WITH_OTHERS = frozenset({"n_batch", "type_v"})
"""Options that always change with another one, which names the change."""


def _steps(values: Iterable[dict[str, Any]], own: Changes) -> tuple[dict[str, Any], ...]:
    """Return the values as changes: what the user has already is none."""
    return tuple({} if value == own else value for value in values)


def _scale(key: str, values: Iterable[int], own: int) -> Dimension:
    ordered = sorted({*values, own})
    return Dimension(steps=_steps(({key: value} for value in ordered), {key: own}), is_scale=True)


def _threads(found: TuneInput) -> Dimension:
    own, cores = found.plan.options.n_threads or found.physical_cores, found.physical_cores
    if found.plan.kind == "vram" or not cores:
        return Dimension(steps=({},))  # the CPU computes nothing
    values = {1, 2, cores // 2, cores - 2, cores - 1, cores, found.logical_cores}
    return _scale("n_threads", (value for value in values if 0 < value <= found.logical_cores), own)


def _prompt_threads(found: TuneInput) -> Dimension:
    options = found.plan.options
    if found.plan.kind == "vram" or not found.physical_cores:
        return Dimension(steps=({},))
    own = options.n_threads_batch or options.n_threads or found.physical_cores
    return _scale("n_threads_batch", {found.physical_cores, found.logical_cores}, own)


def _ubatch(found: TuneInput) -> Dimension:
    options = found.plan.options
    longest = min(found.n_prompt, options.n_ctx or found.n_prompt)
    values = sorted({*(value for value in _UBATCHES if value <= longest), options.n_ubatch})
    changes = [
        {"n_ubatch": value} if value <= options.n_batch else {"n_ubatch": value, "n_batch": value} for value in values
    ]
    return Dimension(steps=_steps(changes, {"n_ubatch": options.n_ubatch}), is_scale=True)


def _experts(found: TuneInput) -> Dimension:
    options = found.plan.options
    if not options.n_cpu_moe or options.override_tensor:
        return Dimension(steps=({},))
    values = {options.n_cpu_moe + step for step in _EXPERT_STEPS}
    return _scale("n_cpu_moe", (value for value in values if 0 <= value <= found.n_layers), options.n_cpu_moe)


def _drafts(found: TuneInput) -> Dimension:
    options = found.plan.options
    own: dict[str, Any] = {"speculative": options.speculative}
    if options.speculative != "off":
        own["draft_n_max"] = options.draft_n_max
    values: list[dict[str, Any]] = [own, {"speculative": "off"}]
    values += [{"speculative": "mtp", "draft_n_max": n} for n in _DRAFTED if found.can_draft]
    values.append({"speculative": "lookup", "draft_n_max": _DRAFTED[-1]})
    return Dimension(steps=tuple(_without_repeats(_steps(values, own))))


def _without_repeats(steps: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for index, step in enumerate(steps):
        if step not in steps[:index]:
            yield step


def _split(found: TuneInput) -> Iterator[Dimension]:
    """Yield how several GPUs share the model: the mode, then the shares of two."""
    gpus, options = found.plan.memory.gpus, found.plan.options
    if len(gpus) < 2:
        return
    modes: list[dict[str, Any]] = [{"split_mode": mode} for mode in ("layer", "row", "tensor")]
    modes += [{"split_mode": "none", "main_gpu": index} for index in range(len(gpus))]
    own: dict[str, Any] = {"split_mode": options.split_mode}
    if options.split_mode == "none":
        own["main_gpu"] = options.main_gpu
    yield Dimension(steps=tuple(_without_repeats(_steps([own, *modes], own))))
    shares, total = options.tensor_split, sum(options.tensor_split)
    if len(shares) == len(gpus) == 2 and options.split_mode == "layer" and total and not options.override_tensor:
        first = shares[0] / total
        values = [first + shift for shift in _SHIFTS if 0 < first + shift < 1]
        changes = [{} if value == first else {"tensor_split": _as_shares(value)} for value in values]
        yield Dimension(steps=tuple(changes), is_scale=True)


def _as_shares(first: float) -> tuple[float, float]:
    return round(100 * first, 1), round(100 * (1 - first), 1)


def _cache(found: TuneInput) -> Dimension:
    options = found.plan.options
    own: dict[str, Any] = {"type_k": options.type_k, "type_v": options.type_v}
    if not found.may_change_answers or options.flash_attn == "off":
        return Dimension(steps=({},))
    values: list[dict[str, Any]] = [own, *({"type_k": kind, "type_v": kind} for kind in ("f16", "q8_0"))]
    return Dimension(steps=tuple(_without_repeats(_steps(values, own))))


def _flash_attention(found: TuneInput) -> Dimension:
    """Return flash attention on and off. Off isn't possible with a quantised V cache."""
    options = found.plan.options
    others = ("on",) if options.flash_attn == "off" else ("off",) if options.type_v in ("f16", "bf16", "f32") else ()
    return Dimension(steps=({}, *({"flash_attn": value} for value in others)))


def _helper(found: TuneInput) -> Dimension:
    """Return whether the GPU computes large batches of experts that are in RAM."""
    if not found.plan.memory.gpus or not found.plan.memory.experts_in_ram:
        return Dimension(steps=({},))
    return Dimension(steps=({}, {"op_offload": not found.plan.options.op_offload}))
