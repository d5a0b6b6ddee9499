"""Sampling presets of each model family, as its model card recommends them.

A family without a preset here has the values that its file recommends in its header, or else llama.cpp's.
The numbers are from the Qwen3.5, 3.6 and 3.8 model cards; min_p is 0 and the repeat penalty 1 in all of them.
Without a presence penalty of 1.5 the long reasoning of Qwen3.5 may loop; Qwen3.6-27B and Qwen3.8 do not need it.
"""

import math
import re
import types
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Literal

import msgspec

from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.settings import check, table
from qwendesk.core.translation import mark

Style = Literal["general", "precise", "custom"]
"""Selects, together with thinking, one of the four presets. "precise" is shown as Coding if the model thinks and as
Reasoning if it does not; "custom" leaves the options unchanged."""

Family = Literal["demo", "qwen3.5", "qwen3.5-small", "qwen3.6", "qwen3.6-27b", "qwen3.8", "other"]
"""Models that share presets. "qwen3.5-small" is 0.8B and 2B; "other" is every model that is neither a
Qwen3.5, 3.6 or 3.8 nor the demo, such as a newer Qwen."""

PresetSource = Literal["card", "file", "llama.cpp"]
"""Where a preset's numbers are from: the family's model card, the file's header, or llama.cpp's defaults."""

_QWEN_BUDGET_SENTENCE = (
    "\n\nConsidering the limited time by the user, I have to give the solution based on the thinking directly now."
    "\n</think>\n\n"
)
_BARE_CLOSE = "\n</think>\n\n"


class OtherSampling(msgspec.Struct, frozen=True):
    """Values that somebody else publishes for the use of a preset, where they aren't the model card's."""

    values: Mapping[str, float | int]
    """Fields of GenerationOptions that differ from the preset."""
    source: str
    """For `tr`."""


class _Sampling(msgspec.Struct, frozen=True):
    temperature: float
    top_p: float
    top_k: int
    presence_penalty: float
    min_p: float = 0.0
    repeat_penalty: float = 1.0


class _Presets(msgspec.Struct, frozen=True):
    thinking: _Sampling
    thinking_precise: _Sampling
    instruct: _Sampling
    instruct_precise: _Sampling


_THINKING = _Sampling(1.0, 0.95, 20, 1.5)
_CALM_THINKING = _Sampling(1.0, 0.95, 20, 0.0)
_CODING = _Sampling(0.6, 0.95, 20, 0.0)
_INSTRUCT = _Sampling(0.7, 0.8, 20, 1.5)
_REASONING = _Sampling(1.0, 1.0, 40, 2.0)
_SMALL_INSTRUCT = _Sampling(1.0, 1.0, 20, 2.0)
# The demo was trained on exact answers, so it needs the most likely token and no penalty for words of the question.
_GREEDY = _Sampling(0.0, 1.0, 0, 0.0)
# llama.cpp's defaults, for models whose card is not known.
_LLAMA_CPP = _Sampling(0.8, 0.95, 40, 0.0, min_p=0.05)

_HEADER_KEYS: Mapping[str, str] = types.MappingProxyType(
    {
        "temperature": "temp",
        "top_k": "top_k",
        "top_p": "top_p",
        "min_p": "min_p",
        "repeat_penalty": "penalty_repeat",
    }
)
"""Options, and the keys after "general.sampling." in which a GGUF header recommends them."""
_KNOWN_VERSIONS = frozenset({"3.5", "3.6", "3.8"})
_UNDOTTED = re.compile(r"qwen-?3[-.]?([568])(?![\db])")
"""A version in a file name without its dot, such as "qwen35" or "qwen3-5", but not the size in "qwen-35b"."""
_VERSION = re.compile(r"qwen-?(\d+(?:\.\d+)?)(?![\d.]*b\b)")

_PRESETS: Mapping[Family, _Presets] = types.MappingProxyType(
    {
        "demo": _Presets(_GREEDY, _GREEDY, _GREEDY, _GREEDY),
        "qwen3.5": _Presets(_THINKING, _CODING, _INSTRUCT, _REASONING),
        "qwen3.5-small": _Presets(_THINKING, _CODING, _SMALL_INSTRUCT, _SMALL_INSTRUCT),
        # The 3.6 cards have only one preset without thinking.
        "qwen3.6": _Presets(_THINKING, _CODING, _INSTRUCT, _INSTRUCT),
        "qwen3.6-27b": _Presets(_CALM_THINKING, _CODING, _INSTRUCT, _INSTRUCT),
        # Its card has one preset with thinking and one without.
        "qwen3.8": _Presets(_CALM_THINKING, _CALM_THINKING, _INSTRUCT, _INSTRUCT),
        "other": _Presets(_LLAMA_CPP, _LLAMA_CPP, _LLAMA_CPP, _LLAMA_CPP),
    }
)
_STUDIO = OtherSampling({"temperature": 0.6, "presence_penalty": 1.5}, "Unsloth Studio, 2026-08-22")
_OTHERS: Mapping[tuple[Family, bool, Style], tuple[OtherSampling, ...]] = types.MappingProxyType(
    {
        ("qwen3.5", False, "precise"): (
            OtherSampling(
                {"top_p": 0.95, "top_k": 20, "presence_penalty": 1.5}, mark("an earlier version of the model card")
            ),
            OtherSampling({"presence_penalty": 1.5}, mark("guides by others")),
        ),
        ("qwen3.6", True, "general"): (OtherSampling({"presence_penalty": 0.0}, "ollama#17197, 2026-07-15"),),
        ("qwen3.8", True, "general"): (_STUDIO,),
        ("qwen3.8", True, "precise"): (_STUDIO,),
    }
)
"""By family, thinking and style. Nobody measured which values are better."""


def family_of(architecture: str, *names: str) -> Family:
    """Return a model's family by its GGUF architecture and its names (general.name, basename, file name).

    A fine-tune with that architecture counts as Qwen3.5 if its names don't say otherwise. A version of Qwen that isn't
    known here is "other", because each version's card had other numbers so far.
    """
    if not architecture.startswith(("qwen35", "qwen4exp")):
        return "other"
    text = " ".join(names).lower().replace("_", "-").replace(" ", "-")
    if "qwendesk-demo" in text:
        return "demo"
    versions = _VERSION.findall(_UNDOTTED.sub(r"qwen3.\1", text))
    if versions and not _KNOWN_VERSIONS.intersection(versions):
        return "other"
    if "3.8" in versions or architecture == "qwen4exp":
        return "qwen3.8"
    if "3.6" in versions:
        return "qwen3.6-27b" if "27b" in text else "qwen3.6"
    return "qwen3.5-small" if "-0.8b" in text or "-2b" in text else "qwen3.5"


def read_recommended(header_value: Callable[[str], str]) -> dict[str, float | int]:
    """Return the sampling that a GGUF header recommends, by names of GenerationOptions; empty if it recommends none.

    `header_value` returns the text of a header value, "" if there is none. Values that no option accepts are left out.
    """
    found: dict[str, float | int] = {}
    for option, key in _HEADER_KEYS.items():
        entry = table(GenerationOptions)[option]
        try:
            value = float(header_value(f"general.sampling.{key}"))
            check(entry, value)
        except (ValueError, BadOption):
            continue
        if math.isfinite(value):
            found[option] = round(value) if entry.type is int else value
    return found


def preset_source(family: Family, recommended: Mapping[str, float | int]) -> PresetSource:
    """Return where the numbers of the family's preset are from; `recommended` are those of the file's header."""
    if family != "other":
        return "card"
    return "file" if recommended else "llama.cpp"


def sampling(family: Family, style: Style, *, thinking: bool) -> dict[str, float | int]:
    """Return the fields of GenerationOptions that the preset sets, by name; empty for "custom"."""
    if style == "custom":
        return {}
    presets = _PRESETS[family]
    if thinking:
        chosen = presets.thinking if style == "general" else presets.thinking_precise
    else:
        chosen = presets.instruct if style == "general" else presets.instruct_precise
    return msgspec.structs.asdict(chosen)


def other_sampling(family: Family, style: Style, *, thinking: bool) -> tuple[OtherSampling, ...]:
    """Return what others publish instead of the preset's values."""
    return _OTHERS.get((family, thinking, style), ())


def preset_of_file(facts: ModelFacts, *, thinking: bool) -> GenerationOptions:
    """Return the general preset for a model that isn't loaded; without `thinking`, too, if its template has none."""
    family = family_of(facts.architecture, facts.name, facts.basename, PurePath(facts.path).name)
    thinks = thinking and facts.has_think_token and "enable_thinking" in facts.chat_template
    recommended = dict(facts.recommended_sampling)
    return preset(GenerationOptions(), family, "general", thinking=thinks, recommended=recommended)


def closing_text(family: Family) -> str:
    """Return the text to insert when the thinking budget is used up or the user chooses Answer now.

    For Qwen3.5, 3.6 and 3.8 it contains the sentence from their model card. The demo and unknown models don't know the
    sentence (the demo answers a different question after it), so they get only the end of the reasoning.
    """
    return _BARE_CLOSE if family in ("demo", "other") else _QWEN_BUDGET_SENTENCE


def preset(
    options: GenerationOptions,
    family: Family,
    style: Style,
    *,
    thinking: bool,
    recommended: Mapping[str, float | int] = types.MappingProxyType({}),
) -> GenerationOptions:
    """Return `options` with thinking on or off, the family's closing text, and the preset's sampling, if any.

    `recommended` is the sampling of the file's header. It counts for families without a preset of their own.
    """
    values = sampling(family, style, thinking=thinking)
    if family == "other" and values:
        values |= recommended
    return msgspec.structs.replace(
        options,
        enable_thinking=thinking,
        thinking_close=closing_text(family),
        **values,
    )
