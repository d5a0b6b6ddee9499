"""Chooses what auto-tune measures: the options it varies, their values, and which come next by the speeds so far.
Pure.

It is coordinate descent: one option is changed at a time, in the order of expected gain, and a change stays if it
gains more than the measurements scatter, twice. The rounds end when none of the options gains any more, or with the
time. At the end the user's own settings are measured once more, so that luck isn't taken for a gain.
"""

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from qwendesk.core.benchmarks import SpeedSamples
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.translation import tr, tr_n

# Load options by key that differ from the user's own settings.
Changes = Mapping[str, Any]
# The typical turn whose time is to become short: a question with a document or some history, and its answer.
PROMPT_TOKENS, ANSWER_TOKENS = 1500, 300
# A smaller share of the time isn't worth a change, however exactly it was measured.
LEAST_GAIN = 0.02
# Answers that are faster by less than this aren't worth slower prompts.
_LEAST_TRADE = 0.1
_MOST_ROUNDS = 3


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """An option, or options that change together, with the values worth measuring."""

    steps: tuple[dict[str, Any], ...]
    """Changes of each value to the user's settings; empty for their own value, which is among them."""
    is_scale: bool = False
    """True if the steps are in the order of a quantity. Then neighbours of the best value are measured, in one
    direction as long as it gains; otherwise every step is."""

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for step in self.steps for key in step)

    def position(self, changes: Changes) -> int:
        """Return which step `changes` contain."""
        own = {key: value for key, value in changes.items() if key in self.keys}
        return self.steps.index(own)

    def moved(self, changes: Changes, position: int) -> dict[str, Any]:
        """Return `changes` with another step of this dimension."""
        others = {key: value for key, value in changes.items() if key not in self.keys}
        return {**others, **self.steps[position]}


class Speed(msgspec.Struct, frozen=True):
    """The measured speeds of one set of options."""

    prompt: SpeedSamples
    decode: SpeedSamples

    @property
    def turn_s(self) -> float:
        """Seconds of a typical turn."""
        return PROMPT_TOKENS / self.prompt.median + ANSWER_TOKENS / self.decode.median

    @property
    def turn_spread_s(self) -> float:
        """By how many seconds `turn_s` scatters, from the standard deviations of both speeds."""
        prompt = PROMPT_TOKENS * self.prompt.spread / self.prompt.median**2
        return math.hypot(prompt, ANSWER_TOKENS * self.decode.spread / self.decode.median**2)


class TriedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One set of options that was tried."""

    changes: dict[str, Any]
    speed: Speed | None = None
    why_not: str = ""
    """Reason why there is no speed, in a sentence: it doesn't fit, it spilled, or the engine failed."""
    spilled: bool = False
    options: DecidedOptions | None = None
    """With which it was measured; None if there is no speed."""
    seconds: float = 0.0
    """Duration with the load."""


def gains(new: Speed | None, old: Speed | None) -> bool:
    """Return whether `new` is faster than `old` by more than both scatter."""
    if new is None or old is None:
        return False
    gained_s = old.turn_s - new.turn_s
    return gained_s > max(new.turn_spread_s + old.turn_spread_s, LEAST_GAIN * old.turn_s)


def percent_faster(new: SpeedSamples, old: SpeedSamples) -> int:
    """Return by how many percent `new` is faster than `old`; negative if it is slower."""
    return round(100 * (new.median / old.median - 1))


def scatter_percent(new: Speed, old: Speed) -> float:
    """Return by how much a typical turn, or answers, must differ to be clearly faster or slower, in percent of `old`.

    The larger of both.
    """
    turn = (new.turn_spread_s + old.turn_spread_s) / old.turn_s
    return 100 * max(turn, (new.decode.spread + old.decode.spread) / old.decode.median)


def faster_answers(trials: Sequence[TriedOptions], than: Speed) -> TriedOptions | None:
    """Return the changes with the fastest answers, if they are clearly faster than those of `than`; else None.

    A typical turn may be no faster with them, because prompts are slower. Then the user has to choose.
    """
    old = than.decode
    best: TriedOptions | None = None
    fastest = 0.0
    for trial in measured(trials):
        if not trial.changes or trial.speed is None or gains(trial.speed, than):
            continue
        new = trial.speed.decode
        if new.median - old.median > max(new.spread + old.spread, _LEAST_TRADE * old.median) and new.median > fastest:
            best, fastest = trial, new.median
    return best


def next_candidate(
    dimensions: Sequence[Dimension], trials: Sequence[TriedOptions], left_s: float
) -> dict[str, Any] | None:
    """Return the changes to measure next; None if nothing is left to try, or not enough of the time.

    The first ones are none at all: the user's own settings. What gains is measured once more.
    """
    if not trials:
        return {}
    longest_s = max((trial.seconds for trial in trials if trial.speed is not None), default=0.0)
    # Two more are for measuring once more what gained, and the user's own settings.
    if left_s >= 3 * longest_s:
        wanted = _next_new(dimensions, trials)
        if wanted is not None:
            return wanted
    return _next_confirmation(trials) if left_s >= longest_s else None


def best_trial(trials: Sequence[TriedOptions]) -> TriedOptions | None:
    """Return the fastest trial, where a later one counts as faster only if it `gains`; None without any speed."""
    best: TriedOptions | None = None
    for trial in measured(trials):
        if best is None or gains(trial.speed, best.speed):
            best = trial
    return best


def best_confirmed(trials: Sequence[TriedOptions]) -> TriedOptions | None:
    """Return the fastest of the user's own settings and of what was measured at least twice."""
    return best_trial(confirmed(trials))


def confirmed(trials: Sequence[TriedOptions]) -> tuple[TriedOptions, ...]:
    """Return the trials of the user's own settings, and those of what was measured at least twice."""
    return tuple(trial for trial in trials if not trial.changes or _count(trial.changes, trials) > 1)


def measured(trials: Sequence[TriedOptions]) -> tuple[TriedOptions, ...]:
    """Return one trial for each set of options that has a speed, with the samples of all its measurements."""
    found: list[TriedOptions] = []
    for trial in trials:
        if trial.speed is None:
            continue
        at = next((at for at, each in enumerate(found) if each.changes == trial.changes), None)
        if at is None:
            found.append(trial)
        else:
            found[at] = msgspec.structs.replace(found[at], speed=_joined(found[at].speed, trial.speed))
    return tuple(found)


def _joined(first: Speed | None, second: Speed) -> Speed:
    if first is None:
        return second
    return Speed(_joined_samples(first.prompt, second.prompt), _joined_samples(first.decode, second.decode))


def _joined_samples(first: SpeedSamples, second: SpeedSamples) -> SpeedSamples:
    return SpeedSamples(
        tok_s=(*first.tok_s, *second.tok_s),
        drafted=first.drafted + second.drafted,
        accepted=first.accepted + second.accepted,
    )


def _next_new(dimensions: Sequence[Dimension], trials: Sequence[TriedOptions]) -> dict[str, Any] | None:
    """Go through the search with the results of all trials, and return what it asks for after them."""
    search = _descend(dimensions)
    wanted = next(search)
    try:
        while (known := _known(wanted, trials)) is not None:
            wanted = search.send(known)
    except StopIteration:
        return None
    return wanted.changes


class _Wanted(msgspec.Struct, frozen=True):
    """A set of options whose first or second measurement the search needs."""

    changes: dict[str, Any]
    is_second: bool = False


_Search = Generator[_Wanted, TriedOptions, TriedOptions]


def _known(wanted: _Wanted, trials: Sequence[TriedOptions]) -> TriedOptions | None:
    """Return the wanted measurement; None if it wasn't made."""
    found = [trial for trial in trials if trial.changes == wanted.changes]
    return found[wanted.is_second] if len(found) > wanted.is_second else None


def _next_confirmation(trials: Sequence[TriedOptions]) -> dict[str, Any] | None:
    """Return what will be offered if it was measured once, then the user's settings; None if all are confirmed."""
    best = best_trial(trials)
    if best is None or best.speed is None:
        return None
    offered = [each for each in (best, faster_answers(trials, best.speed)) if each is not None and each.changes]
    wanted = [*(each.changes for each in offered), {}] if offered else []
    return next((changes for changes in wanted if _count(changes, trials) < 2), None)


def _count(changes: Changes, trials: Sequence[TriedOptions]) -> int:
    return sum(trial.changes == changes for trial in trials)


def _descend(dimensions: Sequence[Dimension]) -> Generator[_Wanted, TriedOptions, None]:
    """Yield what to measure, and receive the results."""
    best = yield _Wanted({})
    if best.speed is None:
        return
    for _ in range(_MOST_ROUNDS):
        before = best
        for dimension in dimensions:
            best = yield from (_along if dimension.is_scale else _among)(dimension, best)
        if best is before:
            return


def _try(changes: dict[str, Any], best: TriedOptions) -> _Search:
    """Measure changes, and once more if they gain: of many measurements, some are fast by luck."""
    trial = yield _Wanted(changes)
    if not gains(trial.speed, best.speed):
        return trial
    again = yield _Wanted(changes, is_second=True)
    return measured((trial, again))[0] if gains(again.speed, best.speed) else again


def _among(dimension: Dimension, best: TriedOptions) -> _Search:
    """Try every other step."""
    base = best
    for position in range(len(dimension.steps)):
        if position != dimension.position(base.changes):
            trial = yield from _try(dimension.moved(base.changes, position), best)
            best = trial if gains(trial.speed, best.speed) else best
    return best


def _along(dimension: Dimension, best: TriedOptions) -> _Search:
    """Go up as long as it gains, or else down. One step without a difference is passed over."""
    start = dimension.position(best.changes)
    for direction in (1, -1):
        position, was_flat, has_gained = start + direction, False, False
        while 0 <= position < len(dimension.steps):
            trial = yield from _try(dimension.moved(best.changes, position), best)
            if gains(trial.speed, best.speed):
                best, was_flat, has_gained = trial, False, True
            elif trial.speed is None or was_flat or gains(best.speed, trial.speed):
                break
            else:
                was_flat = True
            position += direction
        if has_gained:
            break
    return best


# Options that stay as the plan of the user's settings has them, because answers would be worse otherwise.
PINNED = ("n_ctx", "type_k", "type_v", "vision")
_UBATCHES = (128, 256, 512, 1024, 2048, 4096)
# Expert layers on the CPU, beyond those of the plan. Fewer need free memory, which the planner may not count on.
_EXPERT_STEPS = (-4, -2, -1, 0, 1, 2, 4)
_DRAFTED = (2, 3, 5)
# Shares of the model that move from the second GPU to the first.
_SHIFTS = (-0.1, -0.05, 0.0, 0.05, 0.1)


class TuneInput(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which options are worth trying."""

    plan: Plan
    """Of the user's own settings."""
    can_draft: bool
    """True if the model has a draft head."""
    n_layers: int
    n_prompt: int
    """Tokens of the prompt that is measured: larger evaluation batches make no difference."""
    physical_cores: int
    logical_cores: int
    may_change_answers: bool = False
    """True if options that make answers a little worse may be tried."""


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
    """Return each change in a few plain words, such as "6 CPU threads"."""
    is_lookup = changes.get("speculative") == "lookup"  # for which only one number of tokens is tried
    hidden = {*_WITH_OTHERS, "draft_n_max"} if is_lookup else _WITH_OTHERS
    return tuple(_text(key, value) for key, value in changes.items() if key not in hidden)


def _text(key: str, value: Any) -> str:
    match key:
        case "n_threads":
            return tr_n("{0} CPU thread", "{0} CPU threads", value)
        case "n_threads_batch":
            return tr_n("{0} CPU thread for prompts", "{0} CPU threads for prompts", value)
        case "n_ubatch":
            return tr("prompts read {0} tokens at a time", value)
        case "n_cpu_moe":
            return tr_n("{0} expert layer in RAM", "{0} expert layers in RAM", value)
        case "type_k":
            return tr("chat memory {0}", value)
        case "speculative":
            off, lookup = tr("no guesses ahead (token drafts)"), tr("guesses ahead from the chat (token drafts)")
            return {"off": off, "lookup": lookup}.get(value, tr("guesses ahead by the draft head (token drafts)"))
        case "draft_n_max":
            return tr_n("up to {0} token at once", "up to {0} tokens at once", value)
        case "flash_attn":
            return tr("flash attention {0}", value)
        case "tensor_split":
            return tr("split {0}", " : ".join(f"{share:g}" for share in value))
    return f"{key} {value}"


# Options that always change with another one, which names the change.
_WITH_OTHERS = frozenset({"n_batch", "type_v"})


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
