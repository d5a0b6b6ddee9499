"""Whether the model is to think, and how much: read in every form in which clients say it.

OpenAI has `reasoning_effort` and `reasoning`, Anthropic `thinking` and `output_config`, Ollama `think`, vLLM, SGLang
and llama-server the variables of the chat template and budgets, others the same words in other places. Fields are known
by their names, without underscores and capitals.
"""

from typing import Any

import msgspec

from qwendesk.core.generation_options import REASONING_EFFORTS, GenerationOptions
from qwendesk.core.settings import table
from qwendesk.server.fields import Fields

_SWITCHES = frozenset(
    {
        "enablethinking", "enablereasoning", "think", "thinking", "thinkingenabled", "thinkingmode", "reasoning",
        "reasoningenabled", "reasoningmode", "usethinking", "usereasoning",
    }
)  # fmt: skip
_OPPOSITES = frozenset({"disablethinking", "disablereasoning", "nothink", "nothinking"})
_EFFORTS = frozenset({"reasoningeffort", "thinkingeffort", "reasoninglevel", "thinkinglevel"})
_BUDGETS = frozenset(
    f"{before}{after}"
    for before in ("thinking", "reasoning")
    for after in ("budget", "budgettokens", "tokenbudget", "maxtokens", "tokens")
) | {"budgettokens", "maxthinkingtokens", "maxreasoningtokens"}
# Objects with such fields. The switches may be objects too.
_GROUPS = frozenset({"chattemplatekwargs", "chattemplateargs", "thinkingconfig", "reasoningconfig", "outputconfig"})
# What names mean inside of such an object.
_INSIDE = {
    "type": "switch", "enabled": "switch", "mode": "switch", "effort": "effort", "level": "effort",
    "maxtokens": "budget", "budget": "budget", "tokens": "budget",
}  # fmt: skip

# "minimal" is the least that OpenAI's models can; those here can do without.
_OFF = frozenset({"off", "false", "no", "none", "never", "disabled", "disable", "0", "minimal"})
_ON = frozenset({"on", "true", "yes", "always", "enabled", "enable", "1", "auto", "adaptive", "dynamic", "default"})
_MOST_TOKENS = int(table(GenerationOptions)["thinking_budget"].setting.high or 0)


class Thinking(msgspec.Struct):
    """What a request says of it."""

    is_on: bool | None = None
    effort: str = ""
    budget: int | None = None
    preserve: bool | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """The options that it sets."""
        found = {"reasoning_effort": self.effort or None, "thinking_budget": self.budget}
        kept = {} if self.is_on is False else {name: value for name, value in found.items() if value is not None}
        return kept | ({} if self.preserve is None else {"preserve_thinking": self.preserve})


def read_thinking(body: Fields) -> Thinking:
    """Return what a request says. If its fields disagree, it doesn't think. Raise Refused for an impossible budget."""
    found = Thinking()
    _read(body, found, {})
    return found


def _read(fields: Fields, found: Thinking, inside: dict[str, str]) -> None:
    for name in fields.names():
        plain = name.lower().replace("_", "").replace("-", "")
        kind = inside.get(plain, "")
        if isinstance(fields.peek(name), dict):
            if plain in _SWITCHES or plain in _GROUPS:
                _read(fields.object(name), found, _INSIDE)
        elif plain in _SWITCHES or plain in _EFFORTS or kind in ("switch", "effort"):
            _read_word(fields, name, found)
        elif plain in _OPPOSITES and isinstance(fields.peek(name), bool):
            found.is_on = False if fields.flag(name) else found.is_on
        elif plain in _BUDGETS or kind == "budget":
            _read_budget(fields, name, found)
        elif plain == "preservethinking" and isinstance(fields.peek(name), bool):
            found.preserve = fields.flag(name)


def _read_word(fields: Fields, name: str, found: Thinking) -> None:
    """Take a switch or an effort; each may stand for the other. What is neither stays unread."""
    value = fields.peek(name)
    value = bool(value) if value in (0, 1) else value
    word = str(value).strip().lower() if isinstance(value, str | bool) else ""
    if word in _OFF:
        found.is_on = False
    elif word in _ON:
        found.is_on = found.is_on is not False
    elif word in REASONING_EFFORTS:
        found.effort = word
    elif value != "":
        return
    fields.any(name)


def _read_budget(fields: Fields, name: str, found: Thinking) -> None:
    value = fields.peek(name)
    if isinstance(value, bool | str) and str(value).strip().lower() in _OFF:
        fields.any(name)
        found.is_on = False
        return
    budget = fields.whole(name)
    if budget is None:
        return
    if budget < -1:
        raise fields.refuse(name, f"{fields.path(name)} must be at least 0, or -1 for no limit.")
    if budget == 0:
        found.is_on = False
    elif budget > 0:
        found.budget = min(budget, _MOST_TOKENS, found.budget or _MOST_TOKENS)
