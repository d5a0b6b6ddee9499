"""The fields of requests that change how an answer is generated."""

from collections.abc import Mapping
from typing import Any

from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import GenerationOptions
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
