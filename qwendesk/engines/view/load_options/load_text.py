"""Texts and values of the Load tab and of the sheet with all options, and what they show at all."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qwendesk.core.devices import Segment, default_gpus, number_equal_names
from qwendesk.core.everyday_units import pages_text
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_count
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DevicePlan, Plan
from qwendesk.core.settings import Entry
from qwendesk.core.translation import join_sentences, tr, unbroken
from qwendesk.core.units import show_bytes, show_duration, show_expected, show_rate, show_tokens
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.hardware.model_memory import QUANT_BLOCKS
from qwendesk.widgets.rows.option_texts import choice_text, edit_text, value_text
from qwendesk.widgets.vram_bar import segment_name

# Options for which a number means "auto", with that number.
AUTO_VALUES: Mapping[str, Any] = {
    "n_ctx": 0, "n_threads": 0, "n_threads_batch": 0, "rope_freq_scale": 0, "yarn_orig_ctx": 0
}  # fmt: skip
_FOR_PICTURES = frozenset({"vision", "image_min_tokens", "image_max_tokens"})
_FOR_A_GPU = frozenset(
    {"n_gpu_layers", "n_cpu_moe", "override_tensor", "devices", "offload_kqv", "op_offload", "reserve_gb"}
)
_FOR_SEVERAL_GPUS = frozenset({"split_mode", "tensor_split", "main_gpu"})
_CONTEXTS = (4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576)


def unusable_options(pending: PendingLoad) -> frozenset[str]:
    """Return the options that this model or this PC can't use, without those that the user changed."""
    requested, limits, found = pending.requested, pending.limits, set[str]()
    if requested is not None and not requested.mmproj:
        found |= _FOR_PICTURES
    if limits is not None:
        has = {
            "n_cpu_moe": limits.has_experts, "swa_full": limits.has_sliding_window, "lazy_mode": limits.has_lazy_table
        }  # fmt: skip
        found |= {key for key, is_usable in has.items() if not is_usable}
    if not pending.has_gpu:
        found |= _FOR_A_GPU | _FOR_SEVERAL_GPUS
    elif pending.devices and len(default_gpus(pending.devices)) < 2:
        found |= _FOR_SEVERAL_GPUS
    return frozenset(found - pending.changed)


def is_auto(entry: Entry, value: Any) -> bool:
    return value == "auto" or (entry.key in AUTO_VALUES and value == AUTO_VALUES[entry.key])


def auto_text(entry: Entry, pending: PendingLoad) -> str:
    """Return what Auto takes for an option, or its default if it has no Auto; "" if that isn't known.

    While the user has set the option, it isn't known what Auto would take.
    """
    if not is_auto(entry, entry.default):
        return value_text(entry, entry.default) if edit_text(entry.default) else ""
    decided, requested = pending.decided, pending.requested
    if decided is None or (requested is not None and not is_auto(entry, getattr(requested, entry.key))):
        return ""
    value = getattr(decided, entry.key)
    return "" if is_auto(entry, value) else _chosen_text(entry, value, pending)


class PanelChoice(NamedTuple):
    """A value of a control: its words, and the load options that it sets."""

    text: str
    changes: Mapping[str, Any]
    more: str = ""
    """What a menu says beside it."""
    kind: str = ""
    """What the engine calls it, which the menu and the field say behind the words."""

    @property
    def text_with_kind(self) -> str:
        return tr("{0} · {1}", self.text, self.kind) if self.kind else self.text


class Control(NamedTuple):
    """One of the controls of the Load tab, each for one question."""

    key: str
    """The option that it is about, by which the sheet with all options finds it."""
    label: str
    choices: tuple[PanelChoice, ...]
    """The first is Auto; () if there is nothing to choose."""
    chosen: int
    """The number of the choice in effect; -1 if the options were set to something else."""
    text: str
    """What the field shows."""
    note: str

    def is_changed(self, pending: PendingLoad) -> bool:
        return bool(self.choices) and not pending.changed.isdisjoint(self.choices[0].changes)


def controls(pending: PendingLoad) -> tuple[Control, ...]:
    """Return the controls that make sense for this model on this PC."""
    requested = pending.requested
    if requested is None:
        return ()
    made = [_length_control(requested, pending), _placement_control(requested, pending)]
    if pending.limits is None or pending.limits.can_quantise_cache:
        made.append(_cache_control(requested, pending))
    if requested.mmproj:
        made.append(_picture_control(requested, pending))
    return tuple(made)


def _control(
    requested: LoadOptions,
    key: str,
    label: str,
    choices: tuple[PanelChoice, ...],
    *,
    auto: str,
    custom: str,
    note: str,
) -> Control:
    """Return a control. `auto` says what Auto takes now, `custom` stands for values that are none of the choices."""
    chosen = next(
        (
            number
            for number, choice in enumerate(choices)
            if all(getattr(requested, each) == value for each, value in choice.changes.items())
        ),
        -1,
    )
    if chosen == 0:
        text = tr("Auto · {0}", auto) if auto else tr("Auto")
    else:
        text = custom if chosen < 0 else choices[chosen].text_with_kind
    return Control(key, label, choices, chosen, text, note)


def _length_control(requested: LoadOptions, pending: PendingLoad) -> Control:
    limits, decided = pending.limits, pending.decided
    stops: tuple[int, ...] = ()
    if limits is not None and limits.n_ctx:
        shorter = (each for each in _CONTEXTS if each < limits.longest_ctx)
        stops = tuple(sorted({*shorter, limits.n_ctx, limits.longest_ctx}))
    choices = tuple(PanelChoice(show_tokens(each), {"n_ctx": each}, pages_text(each)) for each in stops)
    n_ctx = requested.n_ctx or (decided.n_ctx if decided is not None else 0)
    note = context_remark(pending)
    if not note and n_ctx:
        note = tr("About {0}. Longer needs more memory.", pages_text(n_ctx))
    return _control(
        requested, "n_ctx", tr("Context length"), (PanelChoice(tr("Auto"), {"n_ctx": 0}), *choices),
        auto=show_tokens(n_ctx) if n_ctx else "", custom=length_text(requested.n_ctx), note=note,
    )  # fmt: skip


def length_text(n_ctx: int) -> str:
    """Return a context length that the user typed: "96K", or "400,000" if it isn't a round number of K."""
    return show_tokens(n_ctx) if n_ctx % 1024 == 0 else show_count(n_ctx)


def context_remark(pending: PendingLoad) -> str:
    """Return what a context beyond the trained length costs; "" if the context is not that long."""
    requested, limits = pending.requested, pending.limits
    if requested is None or limits is None or not limits.n_ctx or requested.n_ctx <= limits.n_ctx:
        return ""
    return tr(
        "Longer than the {0} that the model was trained on. It is stretched for that (YaRN), and answers to short "
        "prompts get worse.",
        show_tokens(limits.n_ctx),
    )


def _placement_control(requested: LoadOptions, pending: PendingLoad) -> Control:
    """Return the control of where the model is. Without a GPU there is nothing to choose."""
    limits, plan = pending.limits, pending.plan
    has_experts = limits is not None and limits.has_experts
    n_layers = limits.n_layers if limits is not None else 0

    def changes(n_gpu_layers: str | int, n_cpu_moe: str | int) -> dict[str, Any]:
        return {"n_gpu_layers": n_gpu_layers, **({"n_cpu_moe": n_cpu_moe} if has_experts else {})}

    choices: tuple[PanelChoice, ...] = ()
    if pending.has_gpu:
        experts = (PanelChoice(tr("Experts in RAM"), changes("all", n_layers)),) if has_experts else ()
        choices = (
            PanelChoice(tr("Auto"), changes("auto", "auto")), PanelChoice(tr("All on the GPU"), changes("all", 0)),
            *experts, PanelChoice(tr("All in RAM"), changes(0, "auto")),
        )  # fmt: skip
    places = {"vram": tr("GPU"), "cpu": tr("RAM"), "disk": tr("RAM + disk")}
    place = places.get(plan.kind, tr("GPU + RAM")) if plan is not None else ""
    return _control(
        requested, "n_gpu_layers", tr("Memory for the model"), choices, auto=place, custom=tr("Set by hand"), note=""
    )


def _cache_control(requested: LoadOptions, pending: PendingLoad) -> Control:
    """Return the control of the KV cache's types. The guide's page about options has what is reported of each."""
    words = {"f16": tr("Exact"), "q8_0": tr("Half size"), "q4_0": tr("Quarter size")}
    choices = tuple(PanelChoice(text, {"type_k": kind, "type_v": kind}, kind=kind) for kind, text in words.items())
    now, decided = (requested.type_k, requested.type_v), pending.decided
    taken = (decided.type_k, decided.type_v) if decided is not None else now
    auto = words.get(taken[0], "") if taken[0] == taken[1] else ""
    notes = {
        "q8_0": tr("The KV cache in 8 bits. Small mistakes in formulas are reported in very long chats."),
        "q4_0": tr("The KV cache in 4 bits, for very long chats. Answers get a little less exact."),
    }
    saved = _saved_by_half(pending.plan) if taken == ("f16", "f16") else 0
    size = tr("The KV cache. “Half size” saves {0} and costs little accuracy.", show_bytes(saved)) if saved else ""
    note = size or (notes.get(taken[0], "") if taken[0] == taken[1] else "") or tr("The KV cache.")
    return _control(
        requested, "type_k", tr("Chat memory"),
        (PanelChoice(tr("Auto"), {"type_k": "auto", "type_v": "auto"}), *choices),
        auto=auto, custom=" / ".join(now), note=note,
    )  # fmt: skip


def _saved_by_half(plan: Plan | None) -> int:
    """Return how many bytes less a KV cache of q8_0 takes than that of the plan, which is of f16."""
    if plan is None:
        return 0
    n_values, n_bytes = QUANT_BLOCKS["q8_0"]
    cache = sum(device.kv_bytes for device in (*plan.memory.gpus, plan.memory.ram))
    return round(cache * (1 - n_bytes / n_values / 2))


def _picture_control(requested: LoadOptions, pending: PendingLoad) -> Control:
    decided, plan = pending.decided, pending.plan
    kinds = ("auto", "gpu", "cpu", "off") if pending.has_gpu else ("auto", "cpu", "off")
    taken = decided.vision if decided is not None else ""
    n_bytes = sum(gpu.vision_bytes for gpu in plan.memory.gpus) if plan is not None else 0
    note = ""
    if taken == "off":
        note = tr("The model doesn't see pictures now.")
    elif taken == "gpu" and n_bytes:
        note = tr("On the CPU, pictures take longer, and {0} of the GPU's memory is free.", show_bytes(n_bytes))
    elif taken == "cpu" and pending.has_gpu:
        note = tr("On the CPU, pictures take longer, and the GPU's memory is free for the model.")
    choices = tuple(PanelChoice(choice_text(kind), {"vision": kind}) for kind in kinds)
    return _control(
        requested, "vision", tr("Pictures"), choices, auto=choice_text(taken) if taken else "",
        custom=choice_text(requested.vision), note=note,
    )  # fmt: skip


def _chosen_text(entry: Entry, value: Any, pending: PendingLoad) -> str:
    n_layers = pending.limits.n_layers if pending.limits is not None else 0
    if entry.key == "n_cpu_moe" and n_layers:
        return tr("{0} of {1}", min(pending.cpu_expert_layers, n_layers), n_layers)
    if entry.key == "n_gpu_layers" and n_layers and isinstance(value, int):
        return tr("{0} of {1}", min(value, n_layers + 1), n_layers + 1)
    if entry.key == "n_ctx":
        return show_tokens(value)
    return choice_text(value) if value in entry.choices else edit_text(value)


def segments(device: DevicePlan) -> tuple[Segment, ...]:
    """Return the parts of a device's bar. The free part is 0 if the rest doesn't fit."""
    parts = (
        Segment("weights", device.weights_bytes + device.draft_bytes),
        Segment("context", device.kv_bytes + device.recurrent_bytes),
        Segment("buffers", device.compute_bytes + device.other_bytes),
        Segment("vision", device.vision_bytes),
    )
    free = max((device.budget_bytes or 0) - device.total_bytes, 0)
    return (*parts, Segment("free", free))


def device_names(plan: Plan) -> Mapping[str, str]:
    """Return the name of each device for people by the engine's name. Equal cards are numbered."""
    gpus = plan.memory.gpus
    names = number_equal_names([gpu.description or gpu.name for gpu in gpus])
    ram = tr("Shared memory") if plan.memory.is_unified else tr("RAM")
    return {gpu.name: name for gpu, name in zip(gpus, names, strict=True)} | {plan.memory.ram.name: ram}


def amount_text(device: DevicePlan) -> str:
    """Return a text such as "22.1 GB of the free 23.0 GB": what the plan takes of what other programs leave to it."""
    if device.budget_bytes is None:
        return show_bytes(device.total_bytes)
    return tr("{0} of the free {1}", show_bytes(device.total_bytes), show_bytes(device.budget_bytes))


def fit_text(device: DevicePlan) -> tuple[str, str]:
    """Return whether the plan fits into this device's memory: text and tone."""
    if device.budget_bytes is None:
        return tr("memory unknown"), "warn"
    if device.missing_bytes:
        return tr("{0} over", show_bytes(device.missing_bytes)), "bad"
    return tr("fits"), "good"


def shown_devices(plan: Plan) -> tuple[DevicePlan, ...]:
    """Return the GPUs in use, and the RAM if no GPU is used, if experts are there, or if it is too small.

    If GPU and CPU share one memory, return it, and before it a GPU that may use less of it than all that is free.
    """
    gpus = tuple(gpu for gpu in plan.memory.gpus if gpu.total_bytes)
    ram = plan.memory.ram
    if plan.memory.is_unified:
        shared = plan.memory.shared
        return (*(gpu for gpu in gpus if (gpu.budget_bytes or 0) < (shared.budget_bytes or 0)), shared)
    return (*gpus, ram) if not gpus or plan.memory.experts_in_ram or ram.missing_bytes else gpus


def source_text(plan: Plan | None, *, is_loaded: bool) -> str:
    """Return the source of the displayed numbers: estimate or engine. "" without a plan."""
    if plan is None:
        return ""
    if plan.source == "engine":
        return tr("Exact numbers of the loaded model.") if is_loaded else tr("Exact numbers.")
    return tr("Estimated.")


def own_text(devices: Sequence[DevicePlan]) -> str:
    """Return how much of the memory of these devices isn't for the model: the meters count that as other memory."""
    own = sum(device.other_bytes for device in devices)
    return tr("{0} of it is for the engine itself.", show_bytes(own)) if own else ""


def part_lines(device: DevicePlan) -> list[str]:
    """Return how much each part of a device's bar needs."""
    shown = ((each.kind, each.n_bytes) for each in segments(device))
    sizes = ((kind, n_bytes - (device.other_bytes if kind == "buffers" else 0)) for kind, n_bytes in shown)
    lines = [tr("{0}: {1}", segment_name(kind), show_bytes(n_bytes)) for kind, n_bytes in sizes if n_bytes]
    return [*lines, tr("The engine itself: {0}", show_bytes(device.other_bytes))] if device.other_bytes else lines


def speed_text(pending: PendingLoad) -> str:
    """Return the speed that was measured on this PC with these options, or with others, or else the estimate.

    "" without a plan.
    """
    plan = pending.plan
    if plan is not None and pending.measured_tok_s is not None:
        return unbroken(tr("Measured here: {0} tok/s", show_rate(pending.measured_tok_s)))
    if plan is None or plan.speed is None:
        return ""
    expected = pending.expected or plan.speed
    start, long = show_expected(expected.start), show_expected(expected.long)
    text = tr("About {0} tok/s at the start, {1} in a long chat", start, long)
    if start == long:
        text = tr("About {0} tok/s, in a long chat too", start)
    return unbroken(tr("{0}. Measured with other options.", text) if pending.expected is not None else text)


def reload_text(pending: PendingLoad) -> str:
    """Return the text of the button that applies the options."""
    if pending.is_waiting:
        return tr("Waiting…")
    if pending.is_loading:
        return tr("Loading…")
    if not pending.is_loaded:
        return tr("Load")
    action = tr("Reload to apply")
    return f"{action} · {show_duration(pending.last_load_s)}" if pending.last_load_s else action


class FootVerdict(NamedTuple):
    """Whether the options can be loaded, and what that would do."""

    text: str
    is_bad: bool = False


def verdict(pending: PendingLoad, to_correct: str = "") -> FootVerdict:
    """Return what to say above the button that applies the options; `to_correct` is the label of a refused value."""
    if to_correct:
        return FootVerdict(tr("Correct this option first: {0}.", to_correct), is_bad=True)
    if pending.conflicts:
        return FootVerdict(join_sentences(*(each.sentence for each in pending.conflicts)), is_bad=True)
    plan = pending.plan
    if pending.refusal:
        devices = (*plan.memory.gpus, plan.memory.ram) if plan is not None else ()
        missing = max((each.missing_bytes for each in devices), default=0)
        more = tr("Needs {0} more.", show_bytes(missing)) if missing else ""
        return FootVerdict(join_sentences(more, pending.refusal), is_bad=True)
    if pending.problem:
        return FootVerdict(pending.problem, is_bad=True)
    if pending.is_waiting:
        return FootVerdict(tr("Reloads after the current answer. Your chat is kept."))
    if plan is None or (pending.is_loaded and not pending.needs_reload):
        return FootVerdict("")
    fits = tr("Fits.") if plan.fits else tr("Fits, but takes what was to stay free.")
    kept = tr("Replaces {0}. Your chat is kept.", model_title(pending.other_loaded)) if pending.other_loaded else ""
    return FootVerdict(join_sentences(fits, _speed_change(pending), kept))


def _speed_change(pending: PendingLoad) -> str:
    """Return how fast answers would be, and how fast they are; "" if that can't be estimated."""
    if pending.measured_tok_s is not None:
        speed = show_rate(pending.measured_tok_s)
    elif pending.plan is not None and pending.plan.speed is not None:
        speed = show_expected((pending.expected or pending.plan.speed).start)
    else:
        return ""
    if pending.loaded_tok_s is None or not pending.is_loaded:
        return tr("About {0} tok/s.", speed)
    now = show_rate(pending.loaded_tok_s)
    if speed in (now, show_expected((pending.loaded_tok_s, pending.loaded_tok_s))):
        return tr("About as fast as now: {0} tok/s.", now)
    return tr("About {0} tok/s, now {1}.", speed, now)


def unloaded_text(pending: PendingLoad) -> str:
    """Return whose options are shown while that model isn't loaded; "" if it is, soon will be, or if there is none."""
    if pending.requested is None or pending.is_loaded or pending.is_loading:
        return ""
    return tr(
        "Options for {0}, which isn't loaded. They're saved for its next load.", model_title(pending.requested.model)
    )
