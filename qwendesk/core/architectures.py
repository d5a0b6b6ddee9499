"""The tables of model architectures and families. A new Qwen is a row or two here, and its files in the catalog.

Until it has them, a Qwen whose template, tokens and header are like a family's is treated as that one (`family_of`).

An architecture is what a GGUF header names as `general.architecture`; models of one architecture are loaded in the
same way. A family shares one model card: its sampling presets are from there. The numbers are from the Qwen3.5, 3.6 and
3.8 model cards; min_p is 0 and the repeat penalty 1 in all of them. Without a presence penalty of 1.5 the long
reasoning of Qwen3.5 may loop; Qwen3.6-27B and Qwen3.8 do not need it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from qwendesk.core.translation import mark


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about an architecture that no header of a file has."""

    attention: Literal["full", "hybrid", ""] = ""
    """True if each layer has attention, or most layers a recurrent state instead; "" if that isn't known."""
    has_mrope: bool = False
    """True if RoPE rotates sections of each head: time, height, width."""
    has_yarn: bool = False
    """True if YaRN reaches beyond the trained context: model cards describe it, or it was made for such models."""
    reads_table_lazily: bool = False
    """True if llama.cpp marks its table with TENSOR_READ_LAZY."""
    versions: tuple[str, ...] = ()
    """Versions of Qwen with this architecture, newest first. A model whose names say no version counts as the last."""

    @property
    def is_of_qwen35(self) -> bool:
        """Whether it came with Qwen3.5; Qwen3.6 and Qwen3.8-27B have it too.

        The rules on early files apply to no others: gpt-oss uses MXFP4 on purpose.
        """
        return "3.5" in self.versions


_UNKNOWN: Final = Architecture()
_ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType(
    {
        "qwen2": Architecture(attention="full", has_yarn=True),
        "qwen2moe": Architecture(attention="full", has_yarn=True),
        "qwen2vl": Architecture(attention="full", has_mrope=True),
        "qwen3": Architecture(attention="full", has_yarn=True),
        "qwen3moe": Architecture(attention="full", has_yarn=True),
        "qwen3vl": Architecture(attention="full", has_mrope=True),
        "qwen3vlmoe": Architecture(attention="full", has_mrope=True),
        "qwen3next": Architecture(attention="hybrid", has_yarn=True),
        "qwen35": Architecture(attention="hybrid", has_mrope=True, has_yarn=True, versions=("3.8", "3.6", "3.5")),
        "qwen35moe": Architecture(attention="hybrid", has_mrope=True, has_yarn=True, versions=("3.8", "3.6", "3.5")),
        "qwen4exp": Architecture(attention="hybrid", has_mrope=True, reads_table_lazily=True, versions=("3.8",)),
        "gemma4": Architecture(reads_table_lazily=True),
        # Llama, Mistral, SmolLM and many others: the plain RoPE in every layer for which YaRN was made.
        "llama": Architecture(has_yarn=True),
    }
)


def architecture_named(name: str) -> Architecture:
    """Return what is known of the architecture that a GGUF header names."""
    return _ARCHITECTURES.get(name, _UNKNOWN)


class OtherSampling(msgspec.Struct, frozen=True):
    """Values that somebody else publishes for the use of a preset, where they aren't the model card's."""

    values: Mapping[str, float | int]
    """Fields of GenerationOptions that differ from the preset."""
    source: str
    """For `tr`."""


class Preset(msgspec.Struct, frozen=True):
    """The sampling of one use of a model."""

    temperature: float
    top_p: float
    top_k: int
    presence_penalty: float
    min_p: float = 0.0
    others: tuple[OtherSampling, ...] = ()
    """Other published values. Nobody measured which are better."""


class ChatTraits(msgspec.Struct, frozen=True):
    """What a model's tokens and chat template tell of the family that it is like."""

    has_think_tokens: bool
    """Both `<think>` and `</think>` are single tokens."""
    can_switch_thinking: bool
    keeps_thinking: bool
    """The template can keep the thinking of earlier answers."""
    has_efforts: bool
    calls_in_xml: bool
    """Tool calls are written as functions with parameters, in tags of their own."""


def traits_of(template: str, *, has_think_tokens: bool) -> ChatTraits:
    """Return the traits of a file's chat template, as its text tells them."""
    return ChatTraits(
        has_think_tokens,
        can_switch_thinking="enable_thinking" in template,
        keeps_thinking="preserve_thinking" in template,
        has_efforts="reasoning_effort" in template,
        calls_in_xml="<function=" in template,
    )


# The versions of Qwen by what is special about their templates, newest first.
_TRAITS: Final[Mapping[str, ChatTraits]] = MappingProxyType(
    {
        "3.8": ChatTraits(True, True, True, True, True),
        "3.6": ChatTraits(True, True, True, False, True),
        "3.5": ChatTraits(True, True, False, False, True),
    }
)


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Models that share a model card."""

    version: str = ""
    """The version of Qwen, such as "3.5"; "" for the demo and for models without a card here."""
    marks: tuple[str, ...] = ()
    """Sizes in the names of models that this row is for; () for all that no row above is for."""
    thinking: Preset
    thinking_precise: Preset
    instruct: Preset
    instruct_precise: Preset


_THINKING = Preset(1.0, 0.95, 20, 1.5)
_CALM_THINKING = Preset(1.0, 0.95, 20, 0.0)
_CODING = Preset(0.6, 0.95, 20, 0.0)
_INSTRUCT = Preset(0.7, 0.8, 20, 1.5)
_SMALL_INSTRUCT = Preset(1.0, 1.0, 20, 2.0)
_REASONING = Preset(
    1.0, 1.0, 40, 2.0,
    others=(
        OtherSampling(
            {"top_p": 0.95, "top_k": 20, "presence_penalty": 1.5}, mark("an earlier version of the model card")
        ),
        OtherSampling({"presence_penalty": 1.5}, mark("guides by others")),
    ),
)  # fmt: skip
_OLLAMA = OtherSampling({"presence_penalty": 0.0}, "ollama#17197, 2026-07-15")
_STUDIO = OtherSampling({"temperature": 0.6, "presence_penalty": 1.5}, "Unsloth Studio, 2026-08-22")
_QWEN38_THINKING = msgspec.structs.replace(_CALM_THINKING, others=(_STUDIO,))
# The demo was trained on exact answers, so it needs the most likely token and no penalty for words of the question.
_GREEDY = Preset(0.0, 1.0, 0, 0.0)
# llama.cpp's defaults, for models whose card is not known.
_LLAMA_CPP = Preset(0.8, 0.95, 40, 0.0, min_p=0.05)

DEMO, OTHER = "demo", "other"
# By name. "other" is every model that is none of the others, such as a newer Qwen.
FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        # Its card has one preset with thinking and one without.
        "qwen3.8": Family(
            version="3.8", thinking=_QWEN38_THINKING, thinking_precise=_QWEN38_THINKING,
            instruct=_INSTRUCT, instruct_precise=_INSTRUCT,
        ),
        # The 3.6 cards have only one preset without thinking.
        "qwen3.6-27b": Family(
            version="3.6", marks=("27b",), thinking=_CALM_THINKING, thinking_precise=_CODING,
            instruct=_INSTRUCT, instruct_precise=_INSTRUCT,
        ),
        "qwen3.6": Family(
            version="3.6", thinking=msgspec.structs.replace(_THINKING, others=(_OLLAMA,)), thinking_precise=_CODING,
            instruct=_INSTRUCT, instruct_precise=_INSTRUCT,
        ),
        "qwen3.5-small": Family(
            version="3.5", marks=("-0.8b", "-2b"), thinking=_THINKING, thinking_precise=_CODING,
            instruct=_SMALL_INSTRUCT, instruct_precise=_SMALL_INSTRUCT,
        ),
        "qwen3.5": Family(
            version="3.5", thinking=_THINKING, thinking_precise=_CODING,
            instruct=_INSTRUCT, instruct_precise=_REASONING,
        ),
        DEMO: Family(thinking=_GREEDY, thinking_precise=_GREEDY, instruct=_GREEDY, instruct_precise=_GREEDY),
        OTHER: Family(
            thinking=_LLAMA_CPP, thinking_precise=_LLAMA_CPP, instruct=_LLAMA_CPP, instruct_precise=_LLAMA_CPP
        ),
    }
)  # fmt: skip

# A version in a file name without its dot, such as "qwen35" or "qwen3-5", but not the size in "qwen-35b".
_UNDOTTED = re.compile(r"qwen-?3[-.]?([5-9])(?![\db])")
_VERSION = re.compile(r"qwen-?(\d+(?:\.\d+)?)(?![\d.]*b\b)")


# An architecture of Qwen4 or later that has no row yet.
_LATER_QWEN = re.compile(r"qwen(?:[4-9]|[1-9]\d)(?!\d)")


def family_of(architecture: str, *names: str, traits: ChatTraits | None = None) -> str:
    """Return a model's family by its GGUF architecture and its names (general.name, basename, file name).

    A fine-tune with that architecture counts as Qwen3.5 if its names don't say otherwise. A version of Qwen that isn't
    known here is the newest one with the same `traits`, and "other" if there is none or they aren't known: each
    version's card had other numbers so far, and a template of another kind means another way to think and to call.
    """
    possible, text = architecture_named(architecture).versions, _joined(names)
    if possible and "qwendesk-demo" in text:
        return DEMO
    if is_new_qwen(architecture, *names):
        version = next((each for each, known in _TRAITS.items() if known == traits), "")
        return next(_families(version, text)) if version else OTHER
    said = _versions_in(text)
    if not possible or (said and not _known(said)):
        return OTHER
    version = next((each for each in possible if each in said), possible[-1])
    return next(_families(version, text))


def is_new_qwen(architecture: str, *names: str) -> bool:
    """Return whether this is a newer Qwen than those that have a row here, by its architecture or its names."""
    if not architecture_named(architecture).versions:
        return _LATER_QWEN.match(architecture) is not None
    said = _versions_in(_joined(names))
    return bool(said) and not _known(said) and max(map(float, said)) > min(map(float, _TRAITS))


def _known(versions: Iterable[str]) -> bool:
    """Return whether one of these versions has a row."""
    return any(version in _TRAITS for version in versions)


def _joined(names: Iterable[str]) -> str:
    return " ".join(names).lower().replace("_", "-").replace(" ", "-")


def _versions_in(text: str) -> list[str]:
    return _VERSION.findall(_UNDOTTED.sub(r"qwen3.\1", text))


def _families(version: str, text: str) -> Iterator[str]:
    for name, family in FAMILIES.items():
        if family.version == version and (not family.marks or any(each in text for each in family.marks)):
            yield name
