"""Sampling presets of each model family (core/architectures.py), as its model card recommends them.

A family without a preset there has the values that its file recommends in its header, or else llama.cpp's.
"""

import math
import types
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Literal

import msgspec

from qwendesk.core.architectures import (
    FAMILIES,
    OTHER,
    OtherSampling,
    Preset,
    family_of,
    is_new_qwen,
    traits_of,
)
from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.settings import check, table

# Selects, together with thinking, one of the four presets. "precise" is shown as Coding if the model thinks and as
# Reasoning if it does not; "custom" leaves the options unchanged.
Style = Literal["general", "precise", "custom"]

# Where a preset's numbers are from: the family's model card, that of a family which a new model is like, the file's
# header, or llama.cpp's defaults.
PresetSource = Literal["card", "alike", "file", "llama.cpp"]

_QWEN_BUDGET_SENTENCE = (
    "\n\nConsidering the limited time by the user, I have to give the solution based on the thinking directly now."
    "\n</think>\n\n"
)
_BARE_CLOSE = "\n</think>\n\n"


# Options, and the keys after "general.sampling." in which a GGUF header recommends them.
_HEADER_KEYS: Mapping[str, str] = types.MappingProxyType(
    {
        "temperature": "temp",
        "top_k": "top_k",
        "top_p": "top_p",
        "min_p": "min_p",
        "repeat_penalty": "penalty_repeat",
    }
)


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


def preset_source(family: str, recommended: Mapping[str, float | int], *, is_new: bool = False) -> PresetSource:
    """Return where the numbers of the family's preset are from; `recommended` are those of the file's header.

    `is_new` is whether the model is only like those of the family.
    """
    if family != OTHER and not (is_new and recommended):
        return "alike" if is_new else "card"
    return "file" if recommended else "llama.cpp"


def sampling(family: str, style: Style, *, thinking: bool) -> dict[str, float | int]:
    """Return the fields of GenerationOptions that the preset sets, by name; empty for "custom"."""
    if style == "custom":
        return {}
    values = msgspec.structs.asdict(_preset(family, style, thinking=thinking))
    del values["others"]
    return {**values, "repeat_penalty": 1.0}


def other_sampling(family: str, style: Style, *, thinking: bool) -> tuple[OtherSampling, ...]:
    """Return what others publish instead of the preset's values."""
    return () if style == "custom" else _preset(family, style, thinking=thinking).others


def _preset(family: str, style: Style, *, thinking: bool) -> Preset:
    card = FAMILIES[family]
    if thinking:
        return card.thinking if style == "general" else card.thinking_precise
    return card.instruct if style == "general" else card.instruct_precise


def preset_of_file(facts: ModelFacts, *, thinking: bool) -> GenerationOptions:
    """Return the general preset for a model that isn't loaded; without `thinking`, too, if its template has none."""
    family, is_new = family_of_file(facts)
    thinks = thinking and facts.has_think_token and "enable_thinking" in facts.chat_template
    recommended = dict(facts.recommended_sampling)
    return preset(GenerationOptions(), family, "general", thinking=thinks, recommended=recommended, is_new=is_new)


def family_of_file(facts: ModelFacts) -> tuple[str, bool]:
    """Return the family of a file by its header and name, and whether the model is new and only like that family."""
    names = facts.architecture, facts.name, facts.basename, PurePath(facts.path).name
    traits = traits_of(facts.chat_template, has_think_tokens=facts.has_think_token)
    return family_of(*names, traits=traits), is_new_qwen(*names)


def closing_text(family: str) -> str:
    """Return the text to insert when the thinking budget is used up or the user chooses Answer now.

    For Qwen3.5, 3.6 and 3.8 it contains the sentence from their model card. The demo and unknown models don't know the
    sentence (the demo answers a different question after it), so they get only the end of the reasoning.
    """
    return _BARE_CLOSE if not FAMILIES[family].version else _QWEN_BUDGET_SENTENCE


def preset(
    options: GenerationOptions,
    family: str,
    style: Style,
    *,
    thinking: bool,
    recommended: Mapping[str, float | int] = types.MappingProxyType({}),
    is_new: bool = False,
) -> GenerationOptions:
    """Return `options` with thinking on or off, the family's closing text, and the preset's sampling, if any.

    `recommended` is the sampling of the file's header. It counts for families without a preset of their own, and for a
    model that `is_new` and only like those of the family.
    """
    values = sampling(family, style, thinking=thinking)
    if (family == OTHER or is_new) and values:
        values |= recommended
    return msgspec.structs.replace(
        options,
        enable_thinking=thinking,
        thinking_close=closing_text(family),
        **values,
    )
