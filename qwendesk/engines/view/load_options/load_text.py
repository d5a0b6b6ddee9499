"""Texts and values of the Load tab. No widgets here."""

from collections.abc import Mapping
from typing import Any

from qwendesk.core.devices import Segment, number_equal_names
from qwendesk.core.model_titles import model_title
from qwendesk.core.plan import DevicePlan, Plan
from qwendesk.core.settings import Entry
from qwendesk.core.translation import tr, unbroken
from qwendesk.core.units import show_bytes, show_expected, show_rate, show_tokens
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.widgets.rows.option_texts import choice_text, edit_text

# Options for which a number means "auto", with that number.
AUTO_VALUES: Mapping[str, Any] = {
    "n_ctx": 0, "n_threads": 0, "n_threads_batch": 0, "rope_freq_scale": 0, "yarn_orig_ctx": 0
}  # fmt: skip


def is_auto(entry: Entry, value: Any) -> bool:
    return value == "auto" or (entry.key in AUTO_VALUES and value == AUTO_VALUES[entry.key])


def auto_text(entry: Entry, pending: PendingLoad) -> str:
    """Return a text such as "Auto: 0 of 40", or "Auto" while there is no plan."""
    decided = pending.decided
    if decided is None:
        return tr("Auto")
    value = getattr(decided, entry.key)
    if is_auto(entry, value):
        return tr("Auto")
    return tr("Auto: {0}", _chosen_text(entry, value, pending))


def context_remark(pending: PendingLoad) -> str:
    """Return what a context beyond the trained length costs; "" if the context is not that long."""
    requested, limits = pending.requested, pending.limits
    if requested is None or limits is None or not limits.n_ctx or requested.n_ctx <= limits.n_ctx:
        return ""
    return tr(
        "Longer than the {0} that the model was trained on. YaRN reaches further, but answers to short prompts get "
        "worse.",
        show_tokens(limits.n_ctx),
    )


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
    """Return a text such as "22.1 GB of 23.0 GB"."""
    if device.budget_bytes is None:
        return show_bytes(device.total_bytes)
    return tr("{0} of {1}", show_bytes(device.total_bytes), show_bytes(device.budget_bytes))


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


def speed_text(plan: Plan | None, measured_tok_s: float | None = None) -> str:
    """Return the speed that was measured on this PC with these options, or else the estimate; "" without a plan."""
    if plan is not None and measured_tok_s is not None:
        return unbroken(tr("Measured here: {0} tok/s", show_rate(measured_tok_s)))
    if plan is None or plan.speed is None:
        return ""
    start, long = show_expected(plan.speed.start), show_expected(plan.speed.long)
    return unbroken(tr("About {0} tok/s at the start, {1} in a long chat", start, long))


def reload_text(pending: PendingLoad) -> tuple[str, str]:
    """Return the text of the reload button and the sentence above it."""
    action = tr("Reload to apply") if pending.is_loaded else tr("Load")
    if pending.conflicts:  # the row of the option says why
        return action, ""
    if pending.refusal:
        return action, pending.refusal
    if pending.is_waiting:
        return tr("Waiting…"), tr("Reloads after the current answer. Your chat is kept.")
    if pending.other_loaded:
        return action, tr("Replaces {0}. Your chat is kept.", model_title(pending.other_loaded))
    return action, tr("Your chat is kept; the model will re-read it.") if pending.needs_reload else ""


def unloaded_text(pending: PendingLoad) -> str:
    """Return whose options are shown while that model isn't loaded; "" if it is, or if there is none."""
    if pending.requested is None or pending.is_loaded:
        return ""
    return tr(
        "Options for {0}, which isn't loaded. They're saved for its next load.", model_title(pending.requested.model)
    )
