"""Texts about a pasted command. No widgets here."""

from collections.abc import Mapping
from typing import Any

from qwendesk.core.command_reader import ReadCommand
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table
from qwendesk.core.translation import tr
from qwendesk.widgets.rows.option_texts import value_text

_OTHER_FILES = frozenset({"model", "mmproj", "chat_template_file"})
"""Options that name files, which are others on this PC."""


def load_changes(found: ReadCommand) -> dict[str, Any]:
    """Return the load options to change. The files that the command names are not taken over."""
    return {key: value for key, value in found.load.items() if key not in _OTHER_FILES}


def changes_text(found: ReadCommand) -> str:
    """Return a line for each option that the command sets; a sentence if it sets none."""
    values: Mapping[str, Any] = {**load_changes(found), **found.answer}
    entries = {**table(LoadOptions), **table(GenerationOptions)}
    lines = [
        tr("{0}: {1}", tr(entries[key].setting.label), value_text(entries[key], value)) for key, value in values.items()
    ]
    if found.system_prompt:
        lines.append(tr("It has a system prompt, which belongs on the tab System."))
    return "\n".join(lines) if lines else tr("This sets no option.")


def model_text(found: ReadCommand) -> str:
    """Return which model the command names; "" if it names none."""
    return tr("Model: {0}", found.model.text) if found.model is not None else ""


def remarks_text(found: ReadCommand) -> str:
    """Return a line for everything that isn't taken over, with the reason; "" if there is nothing."""
    return "\n".join(tr("{0}: {1}", remark.words, remark.sentence) for remark in found.remarks)
