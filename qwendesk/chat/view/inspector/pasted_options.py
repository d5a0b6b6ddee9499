"""Sets generation options and the system prompt of a pasted command for the open chat."""

from collections.abc import Mapping
from typing import Any

import msgspec

from qwendesk.chat.chat_settings import with_foreign_values
from qwendesk.chat.service import ChatService
from qwendesk.widgets.rows.option_texts import edit_text


def set_options(chat: ChatService, values: Mapping[str, Any]) -> None:
    """Set generation options and `system_prompt`, given by key, for the open chat.

    Raises QwenDeskError if they can't be used.
    """
    settings = chat.settings
    overrides = dict(settings.overrides)
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key == "enable_thinking":
            changes["thinking"] = value
        elif key in ("json_schema", "system_prompt"):
            changes[key] = value
        else:
            overrides[key] = edit_text(value)
    changed = msgspec.structs.replace(settings, overrides=overrides, **changes)
    chat.change_settings(with_foreign_values(changed, values))
