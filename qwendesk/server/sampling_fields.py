"""The fields of requests that change how an answer is generated, and whether and how much the model thinks.

OpenAI has `reasoning_effort` and `reasoning`, Anthropic `thinking` and `output_config`, Ollama `think`, vLLM, SGLang
and llama-server the variables of the chat template and budgets, others the same words in other places. Fields are known
by their names, without underscores and capitals.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import REASONING_EFFORTS, GenerationOptions
from qwendesk.core.settings import check, table
from qwendesk.server.fields import Fields, encode_json


def _named(kind: type) -> Mapping[str, str]:
    """Return the names in requests of numbers of one kind, and the options that they set.

    Those beyond OpenAI's are llama-server's and vLLM's. The seed is read in another way.
    """
    return {
        name: key
        for key, entry in table(GenerationOptions).items()
        if entry.type is kind and key != "seed" and (entry.setting.openai or entry.setting.llama_server)
        for name in (entry.setting.openai, entry.setting.llama_server, entry.setting.vllm)
        if name
    }


_NUMBERS, _WHOLE = _named(float), _named(int)
# What clients send to turn an option off, where the engine has another number for it.
_OFF: Mapping[tuple[str, float], float] = {("repeat_penalty", 0): 1.0, ("top_k", -1): 0, ("max_tokens", -2): -1}
_SEEDS = 2**32 - 1


def read_sampling(body: Fields, *length_names: str) -> dict[str, Any]:
    """Return the options that a request sets. `length_names` are its names for the longest output. Raise Refused."""
    found: dict[str, Any] = {}
    for name, option in _NUMBERS.items():
        if (number := body.number(name)) is not None:
            found[option] = _checked(body, name, option, _OFF.get((option, number), float(number)))
    for name, option in (*_WHOLE.items(), *((name, "max_tokens") for name in length_names)):
        if (whole := body.whole(name)) is not None:
            most = table(GenerationOptions)[option].setting.high or whole  # clients send 2^31 - 1 for no limit
            found[option] = _checked(body, name, option, _OFF.get((option, whole), min(whole, int(most))))
    if (seed := body.whole("seed")) is not None:
        found["seed"] = seed % _SEEDS if seed >= 0 else -1
    if body.has("logit_bias"):
        found["logit_bias"] = tuple(_bias(body, token) for token in body.object("logit_bias").value)
    if grammar := body.text("grammar"):
        found["grammar"] = grammar
    if body.has("json_schema"):
        found["json_schema"] = encode_json(body.object("json_schema").value)
    return found


def read_stop_texts(body: Fields, name: str) -> dict[str, Any]:
    stop = tuple(text for text in body.texts(name) if text)
    return {"stop": stop} if stop else {}


def read_format(form: Fields) -> dict[str, Any]:
    """Return the options for an answer in a format. Its schema may stand in it, or as in OpenAI's chats deeper."""
    kind = form.text("type", "text")
    if kind == "text":
        return {}
    if kind not in ("json_object", "json_schema"):
        raise form.refuse("type", f'{form.path("type")} must be "text", "json_object" or "json_schema".')
    place = form.object("json_schema") if form.has("json_schema") else form
    if kind == "json_object" and not place.has("schema"):
        return {"json_schema": '{"type":"object"}'}
    place.required("schema")
    return {"json_schema": encode_json(place.object("schema").value)}


def _checked(body: Fields, name: str, option: str, value: float) -> float:
    try:
        check(table(GenerationOptions)[option], value)
    except BadOption as error:
        raise body.refuse(name, error.sentence) from error
    return value


def _bias(body: Fields, token: str) -> str:
    bias = body.object("logit_bias")
    if not token.isdecimal():
        raise bias.refuse(token, f"{bias.path(token)}: the names in logit_bias are token ids.")
    value = bias.number(token)
    return f"{token}={'-inf' if value is not None and value <= -100 else value or 0}"


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
_NO_THINKING = frozenset({"off", "false", "no", "none", "never", "disabled", "disable", "0", "minimal"})
_ON = frozenset({"on", "true", "yes", "always", "enabled", "enable", "1", "auto", "adaptive", "dynamic", "default"})
_MOST_TOKENS = int(table(GenerationOptions)["thinking_budget"].setting.high or 0)


class Thinking(msgspec.Struct):
    """The thinking that a request asks for."""

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
    if word in _NO_THINKING:
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
    if isinstance(value, bool | str) and str(value).strip().lower() in _NO_THINKING:
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
