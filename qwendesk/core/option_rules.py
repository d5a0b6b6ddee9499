"""Combinations of load options that cannot be, each with its reason; and options that move together.

Ranges of single options are in the table (core/settings.py). Asked by the inspector, by `--set` and before a load.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from qwendesk.core.errors import BadOption
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import apply_assignments

_UNQUANTISED = ("auto", "f16", "bf16", "f32")
_CACHE_BLOCK = 32
"""Values in one block of every quantised cache type."""


class Conflict(msgspec.Struct, frozen=True):
    """One combination that cannot be loaded."""

    keys: tuple[str, ...]
    """The options it is about, the one to change first."""
    sentence: str
    """Why, and what to choose instead."""


def conflicts(options: LoadOptions, facts: ModelFacts | None = None) -> tuple[Conflict, ...]:
    """All that cannot be; with `facts` also what this model rules out."""
    found = [*_cache(options), *_batches(options), *_devices(options), *_placement(options), *_pictures(options)]
    if facts is not None:
        found += _of_model(options, facts)
    return tuple(found)


def check_combination(options: LoadOptions, facts: ModelFacts | None = None) -> None:
    """Raises BadOption with the reason of the first combination that cannot be."""
    for conflict in conflicts(options, facts):
        raise BadOption("Impossible combination", conflict.sentence)


def linked(options: LoadOptions, changes: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` with what moves along: an evaluation batch is never larger than the batch.

    Where both are among `changes`, both were meant and stay.
    """
    together = dict(changes)
    after = msgspec.structs.replace(options, **changes)
    if not isinstance(after.n_ubatch, int) or after.n_ubatch <= after.n_batch:
        return together
    if "n_ubatch" in changes and "n_batch" not in changes:
        together["n_batch"] = after.n_ubatch
    elif "n_batch" in changes and "n_ubatch" not in changes:
        together["n_ubatch"] = after.n_batch
    return together


def load_options_of(start: LoadOptions, assignments: Mapping[str, str]) -> LoadOptions:
    """`start` with `key=value` texts as `--set` has them, linked and checked. Raises BadOption."""
    options = apply_assignments(start, assignments)
    given = {key: getattr(options, key) for key in assignments}
    options = msgspec.structs.replace(options, **linked(start, given))
    check_combination(options)
    return options


def _cache(options: LoadOptions) -> Iterator[Conflict]:
    if options.type_v not in _UNQUANTISED and options.flash_attn == "off":
        yield Conflict(
            ("type_v", "flash_attn"),
            f"A V cache of type {options.type_v} needs flash attention. Set flash attention to auto or on, or the V "
            "cache type to f16.",
        )
    if options.split_mode == "tensor" and options.flash_attn == "off":
        yield Conflict(
            ("split_mode", "flash_attn"),
            "Split mode tensor needs flash attention. Set flash attention to auto or on, or split by layer.",
        )


def _batches(options: LoadOptions) -> Iterator[Conflict]:
    if isinstance(options.n_ubatch, int) and options.n_ubatch > options.n_batch:
        yield Conflict(
            ("n_ubatch", "n_batch"),
            f"The evaluation batch ({options.n_ubatch}) cannot be larger than the batch ({options.n_batch}). Raise the "
            "batch size, or lower the evaluation batch size.",
        )


def _devices(options: LoadOptions) -> Iterator[Conflict]:
    if options.tensor_split and options.split_mode == "none":
        yield Conflict(
            ("tensor_split", "split_mode"),
            "Split shares need a split mode: with none, one GPU takes the whole model. Choose layer, or clear the "
            "shares.",
        )
    if options.tensor_split and not any(options.tensor_split):
        yield Conflict(("tensor_split",), "At least one GPU must have a share above 0.")
    if any(share < 0 for share in options.tensor_split):
        yield Conflict(("tensor_split",), "A share cannot be below 0.")
    if "none" in options.devices and len(options.devices) > 1:
        yield Conflict(("devices",), "The device none stands alone: it means that no GPU is used.")
    named = tuple(name for name in options.devices if name != "none")
    if named and options.split_mode == "none" and options.main_gpu >= len(named):
        yield Conflict(
            ("main_gpu", "devices"),
            f"Main GPU {options.main_gpu} is not among the {len(named)} devices that are named; the first is 0.",
        )


def _placement(options: LoadOptions) -> Iterator[Conflict]:
    for text in options.override_tensor:
        pattern, separator, device = text.rpartition("=")
        if not separator or not pattern or not device:
            yield Conflict(("override_tensor",), f'"{text}" must look like PATTERN=DEVICE, for example blk\\.0\\.=CPU.')
            continue
        try:
            re.compile(pattern)
        except re.error as error:
            yield Conflict(("override_tensor",), f'"{pattern}" is no regular expression: {error.msg}.')


def _pictures(options: LoadOptions) -> Iterator[Conflict]:
    low, high = options.image_min_tokens, options.image_max_tokens
    if high and low > high:
        yield Conflict(
            ("image_min_tokens", "image_max_tokens"),
            f"The fewest tokens of a picture ({low}) cannot be more than the most ({high}).",
        )


def _of_model(options: LoadOptions, facts: ModelFacts) -> Iterator[Conflict]:
    trained = facts.context_length
    reaches_further = options.rope_scaling in ("yarn", "linear") or options.rope_freq_scale
    if trained and options.n_ctx > trained and not reaches_further:
        yield Conflict(
            ("n_ctx", "rope_scaling"),
            f"The model was trained on {trained:,} tokens of context. Choose a shorter one, or set RoPE scaling to "
            "yarn, which reaches further and hurts short texts.",
        )
    heads = (("type_k", options.type_k, facts.key_length, "K"), ("type_v", options.type_v, facts.value_length, "V"))
    for key, kind, length, name in heads:
        if kind not in _UNQUANTISED and length % _CACHE_BLOCK:
            yield Conflict(
                (key,),
                f"A {name} cache of type {kind} needs heads of a multiple of {_CACHE_BLOCK} values; this model's have "
                f"{length}. Choose f16.",
            )
