"""Words in a system prompt that stand for something that changes."""

import datetime

VARIABLES = ("{date}", "{model}")
"""`{date}`: today, as 2026-02-27. `{model}`: the loaded model's name. Other braces are only characters."""


def fill(text: str, *, today: datetime.date, model: str) -> str:
    """`text` with its variables replaced. A model's name may hold braces itself: it is not looked through again."""
    values = {"{date}": today.isoformat(), "{model}": model}
    pieces, rest = [], text
    while rest:
        found = [(rest.find(name), name) for name in VARIABLES if name in rest]
        if not found:
            break
        start, name = min(found)
        pieces += [rest[:start], values[name]]
        rest = rest[start + len(name) :]
    return "".join([*pieces, rest])
