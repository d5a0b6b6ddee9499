"""What the Load tab says of a draft. No widgets here."""

from collections.abc import Mapping
from typing import Any

from qwendesk.core.plan import DevicePlan, Plan
from qwendesk.core.settings import Entry
from qwendesk.core.units import show_bytes, show_expected, show_tokens
from qwendesk.services.engine.draft import Draft
from qwendesk.services.meters.bars import Segment
from qwendesk.ui.kit.text import tr, unbroken
from qwendesk.ui.settings.rows.words import choice_text, edit_text

AUTO_VALUES: Mapping[str, Any] = {"n_ctx": 0, "n_threads": 0, "n_threads_batch": 0}
"""Options that are left to the app by a number instead of by the word auto."""


def is_auto(entry: Entry, value: Any) -> bool:
    return value == "auto" or (entry.key in AUTO_VALUES and value == AUTO_VALUES[entry.key])


def auto_text(entry: Entry, draft: Draft) -> str:
    """ "Auto: 0 of 40" once it is known what Auto chose, else "Auto"."""
    decided = draft.decided
    if decided is None:
        return tr("Auto")
    value = getattr(decided, entry.key)
    if is_auto(entry, value):
        return tr("Auto")
    return tr("Auto: {0}", _chosen_text(entry, value, draft))


def _chosen_text(entry: Entry, value: Any, draft: Draft) -> str:
    n_layers = draft.limits.n_layers if draft.limits is not None else 0
    if entry.key == "n_cpu_moe" and n_layers:
        return tr("{0} of {1}", min(value, n_layers), n_layers)
    if entry.key == "n_gpu_layers" and n_layers and isinstance(value, int):
        return tr("{0} of {1}", min(value, n_layers + 1), n_layers + 1)
    if entry.key == "n_ctx":
        return show_tokens(value)
    return choice_text(value) if value in entry.choices else edit_text(value)


def segments(device: DevicePlan) -> tuple[Segment, ...]:
    """The parts of a device's bar. What does not fit pushes the free part out."""
    parts = (
        Segment("weights", device.weights_bytes + device.draft_bytes),
        Segment("context", device.kv_bytes + device.recurrent_bytes),
        Segment("buffers", device.compute_bytes + device.drift_bytes),
        Segment("vision", device.vision_bytes),
    )
    free = max((device.budget_bytes or 0) - device.total_bytes, 0)
    return (*parts, Segment("free", free))


def device_name(device: DevicePlan) -> str:
    return tr("RAM") if device.name == "CPU" else device.description or device.name


def amount_text(device: DevicePlan) -> str:
    """ "22.1 of 23.0 GB"."""
    if device.budget_bytes is None:
        return show_bytes(device.total_bytes)
    return tr("{0} of {1}", show_bytes(device.total_bytes), show_bytes(device.budget_bytes))


def fit_text(device: DevicePlan) -> tuple[str, str]:
    """Words and tone."""
    if device.budget_bytes is None:
        return tr("memory unknown"), "warn"
    if device.missing_bytes:
        return tr("{0} over", show_bytes(device.missing_bytes)), "bad"
    return tr("fits"), "good"


def shown_devices(plan: Plan) -> tuple[DevicePlan, ...]:
    """The GPUs, and RAM when something of weight lies there."""
    gpus = tuple(gpu for gpu in plan.prices.gpus if gpu.total_bytes)
    ram = plan.prices.ram
    return (*gpus, ram) if not gpus or plan.prices.experts_in_ram or ram.missing_bytes else gpus


def source_text(draft: Draft) -> str:
    """Whose the numbers are."""
    plan = draft.plan
    if plan is None:
        return ""
    if plan.source == "engine":
        return tr("The engine's own numbers.") if draft.needs_reload else tr("The engine's own numbers, as loaded.")
    return tr("Estimates; the engine knows to the byte.")


def speed_text(plan: Plan | None) -> str:
    if plan is None or plan.speed is None:
        return ""
    start, long = show_expected(plan.speed.start), show_expected(plan.speed.long)
    return unbroken(tr("about {0} tok/s at the start, {1} when long", start, long))


def reload_text(draft: Draft) -> tuple[str, str]:
    """The button at the foot, and the sentence over it."""
    if draft.conflicts:
        return tr("Reload to apply"), " ".join(conflict.sentence for conflict in draft.conflicts)
    if draft.refusal:
        return tr("Reload to apply"), draft.refusal
    if draft.is_waiting:
        return tr("Waiting…"), tr("Reloads when the answer has ended. The chat stays.")
    if not draft.is_loaded:
        return tr("Load"), ""
    return tr("Reload to apply"), tr("The chat stays; its text is read again.") if draft.needs_reload else ""
