"""Texts about a pasted command. No widgets here."""

from collections.abc import Mapping
from typing import Any

from qwendesk.commands.command_reader import ReadCommand
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_titles import model_title
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table
from qwendesk.core.translation import tr
from qwendesk.engines.command_preview import CommandPreview, load_changes
from qwendesk.widgets.rows.option_texts import value_text

_MOST_SHOWN = 300
"""How many characters of a system prompt are shown."""


def changes_text(found: ReadCommand) -> str:
    """Return a line for each option that the command sets; a sentence if it sets none."""
    values: Mapping[str, Any] = {**load_changes(found), **found.answer}
    entries = {**table(LoadOptions), **table(GenerationOptions)}
    lines = [
        tr("{0}: {1}", tr(entries[key].setting.label), value_text(entries[key], value)) for key, value in values.items()
    ]
    if found.system_prompt:
        lines.append(tr("System prompt of the open chat: {0}", _shortened(found.system_prompt)))
    return "\n".join(lines) if lines else tr("This sets no option.")


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN].rstrip()}…"


def model_text(found: ReadCommand) -> str:
    """Return which model the command names; "" if it names none."""
    return tr("Model: {0}", found.model.text) if found.model is not None else ""


def target_text(found: ReadCommand, preview: CommandPreview) -> str:
    """Return to which model on this PC the options would be applied."""
    sentences = []
    if found.model is not None and not preview.is_named_model:
        sentences.append(tr("This model isn't on this PC."))
    if preview.target is not None:
        sentences.append(tr("Applies to {0}:", model_title(preview.target.model)))
    elif load_changes(found):
        sentences.append(tr("Choose a model first to apply load options to it."))
    return " ".join(sentences)


def problem_text(preview: CommandPreview) -> str:
    """Return why the model can't be loaded with these options; "" if it can."""
    pending = preview.pending
    if pending is None:
        return preview.problem
    return " ".join(conflict.sentence for conflict in pending.conflicts) or pending.refusal


def remarks_text(found: ReadCommand) -> str:
    """Return a line for everything that isn't taken over, with the reason; "" if there is nothing."""
    return "\n".join(tr("{0}: {1}", remark.words, remark.sentence) for remark in found.remarks)
