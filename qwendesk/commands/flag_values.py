"""Converts the values of other programs' flags to those of our options."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from qwendesk.core.errors import BadOption
from qwendesk.core.flag_table import Flag
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import check, parse, table
from qwendesk.core.translation import tr

# From this number on, people mean all layers.
_ALL_LAYERS = 99
_SWITCHES = MappingProxyType({"1": "on", "true": "on", "0": "off", "false": "off", "": "on"})
# vLLM's suffixes: small letters are decimal.
_UNITS = MappingProxyType({"k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2})


def flag_value(flag: Flag, name: str, text: str) -> Any:
    """Return the value that the option `flag.key` gets from `text`, written after the flag `name`.

    Raises BadOption for a text that is not a valid value.
    """
    entry = {**table(LoadOptions), **table(GenerationOptions)}[flag.key]
    if flag.value:
        return parse(entry, flag.value)
    convert = _BY_NAME.get(name) or _BY_KEY.get(flag.key)
    try:
        value = convert(text) if convert is not None else text
    except (ValueError, ZeroDivisionError):
        raise BadOption(tr("Bad value"), tr("“{0}” isn't a valid value.", text)) from None
    if isinstance(value, str):
        return parse(entry, value)
    check(entry, value)
    return value


def _gpu_layers(text: str) -> str:
    if text == "-1":
        return "auto"
    return "all" if text.isdecimal() and int(text) >= _ALL_LAYERS else text


def _count(text: str) -> str | int:
    number = re.fullmatch(r"([\d.]+)([kKmM])", text)
    return round(float(number[1]) * _UNITS[number[2]]) if number else "0" if text in ("auto", "-1") else text


def _unlimited(text: str) -> str:
    """Return -1 for Ollama's -2, which means until the context is full."""
    return "-1" if text == "-2" else text


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _shares(text: str) -> tuple[float, ...]:
    return tuple(float(item) for item in re.split(r"[,/]", text) if item.strip())


def _bias(text: str) -> tuple[str, ...]:
    found = re.fullmatch(r"(\d+)([+-].+)", text)
    if found is None:
        raise ValueError(text)
    return (f"{found[1]}={found[2].removeprefix('+')}",)


def _scaled_adapter(text: str) -> tuple[str, ...]:
    pairs = [item.rpartition(":") for item in _items(text)]
    return tuple(f"{path}={float(scale):g}" for path, _, scale in pairs)


def _closing(text: str) -> str:
    return f"\n\n{text}\n</think>\n\n"


_BY_KEY: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {
        "n_ctx": _count,
        "n_gpu_layers": _gpu_layers,
        "n_threads": lambda text: "0" if text == "-1" else text,
        "n_threads_batch": lambda text: "0" if text == "-1" else text,
        "max_tokens": _unlimited,
        "flash_attn": lambda text: _SWITCHES.get(text, text),
        "enable_thinking": lambda text: "on" if text in ("", "auto", "high", "medium", "low") else text,
        "override_tensor": _items,
        "kv_overrides": _items,
        "devices": _items,
        "tensor_split": _shares,
        "lora": _items,
        "logit_bias": _bias,
        "stop": lambda text: (text,),
        "thinking_close": _closing,
    }
)
_BY_NAME: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {"--rope-scale": lambda text: 1 / float(text), "--lora-scaled": _scaled_adapter}
)
