"""Rules for combinations of load options; the range of a single option is in its Setting (core/settings.py).

The inspector, `--set` and each load check them.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from qwendesk.core.errors import BadOption
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.number_format import show_count
from qwendesk.core.options import LoadOptions
from qwendesk.core.rope_scaling import longest_context, reached_context, with_rope_scaling
from qwendesk.core.settings import apply_assignments, check, table
from qwendesk.core.translation import tr

_UNQUANTISED = ("auto", "f16", "bf16", "f32")
# Values in one block of every quantised cache type.
CACHE_BLOCK = 32


class Conflict(msgspec.Struct, frozen=True):
    """A combination of options with which no model can be loaded."""

    keys: tuple[str, ...]
    """The options involved, the one to change first."""
    sentence: str
    """Why, and what to choose instead."""


def conflicts(options: LoadOptions, facts: ModelFacts | None = None) -> tuple[Conflict, ...]:
    """Return all conflicts between the options and, with `facts`, with the model."""
    found = [*_cache(options), *_batches(options), *_devices(options), *_placement(options), *_pictures(options)]
    if facts is not None:
        found += _of_model(options, facts)
    return tuple(found)


def check_combination(options: LoadOptions) -> None:
    """Raise BadOption for the first conflict."""
    for conflict in conflicts(options):
        raise BadOption(tr("These options conflict"), conflict.sentence)


def with_linked_changes(options: LoadOptions, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `changes` and any further changes they require: the evaluation batch must not be larger than the batch.

    If `changes` contains both sizes, neither is adjusted.
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


def with_changes(options: LoadOptions, changes: Mapping[str, Any]) -> LoadOptions:
    """Return `options` with `changes` and those linked to them.

    Raises BadOption if a key is unknown or a value is out of range.
    """
    rows = table(LoadOptions)
    for key, value in changes.items():
        if key not in rows or key == "model":
            raise BadOption(tr("Unknown option"), tr('There is no option "{0}" to change.', key))
        check(rows[key], value)
    return msgspec.structs.replace(options, **with_linked_changes(options, changes))


def parse_load_options(start: LoadOptions, assignments: Mapping[str, str]) -> LoadOptions:
    """Return `start` with the `key=value` texts of `--set` applied and checked. Raises BadOption."""
    options = apply_assignments(start, assignments)
    given = {key: getattr(options, key) for key in assignments}
    options = msgspec.structs.replace(options, **with_linked_changes(start, given))
    check_combination(options)
    return options


def lora_adapter(text: str) -> tuple[str, float]:
    """Return the path and the scale in one item of the option `lora`: FILE, or FILE=SCALE.

    Only a number after the last "=" is a scale, because a file name may contain "=" too.
    """
    path, _, scale = text.rpartition("=")
    try:
        number = float(scale)
    except ValueError:
        return text, 1.0
    return (path, number) if path and math.isfinite(number) else (text, 1.0)


def _cache(options: LoadOptions) -> Iterator[Conflict]:
    if options.type_v not in _UNQUANTISED and options.flash_attn == "off":
        yield Conflict(
            ("type_v", "flash_attn"),
            tr(
                "V cache type {0} needs flash attention. Set Flash attention to Auto or On, or V cache type to f16.",
                options.type_v,
            ),
        )
    if options.split_mode == "tensor" and options.flash_attn == "off":
        yield Conflict(
            ("split_mode", "flash_attn"),
            tr("Split mode Tensor needs flash attention. Set Flash attention to Auto or On, or Split mode to Layer."),
        )


def _batches(options: LoadOptions) -> Iterator[Conflict]:
    if isinstance(options.n_ubatch, int) and options.n_ubatch > options.n_batch:
        yield Conflict(
            ("n_ubatch", "n_batch"),
            tr(
                "Evaluation batch size ({0}) can't be larger than Batch size ({1}). Lower it, or raise Batch size.",
                show_count(options.n_ubatch),
                show_count(options.n_batch),
            ),
        )


def _devices(options: LoadOptions) -> Iterator[Conflict]:
    if options.tensor_split and options.split_mode == "none":
        yield Conflict(
            ("tensor_split", "split_mode"),
            tr("Split shares have no effect without a split mode. Set Split mode to Layer, or clear Split shares."),
        )
    if options.tensor_split and not any(options.tensor_split):
        yield Conflict(("tensor_split",), tr("At least one GPU needs a share above 0."))
    if any(share < 0 for share in options.tensor_split):
        yield Conflict(("tensor_split",), tr("Shares can't be negative."))
    if "none" in options.devices and len(options.devices) > 1:
        yield Conflict(("devices",), tr("The device none means no GPU, so it can't be combined with other devices."))
    named = tuple(name for name in options.devices if name != "none")
    if named and options.split_mode == "none" and options.main_gpu >= len(named):
        yield Conflict(
            ("main_gpu", "devices"),
            tr("Main GPU {0} doesn't exist: Devices lists {1}, and the first one is 0.", options.main_gpu, len(named)),
        )


def _placement(options: LoadOptions) -> Iterator[Conflict]:
    for text in options.override_tensor:
        pattern, separator, device = text.rpartition("=")
        if not separator or not pattern or not device:
            sentence = tr("“{0}” isn't like PATTERN=DEVICE, for example {1}.", text, r"blk\.0\.=CPU")
            yield Conflict(("override_tensor",), sentence)
            continue
        try:
            re.compile(pattern)
        except re.error as error:
            sentence = tr("“{0}” isn't a valid regular expression: {1}.", pattern, error.msg)
            yield Conflict(("override_tensor",), sentence)


def _pictures(options: LoadOptions) -> Iterator[Conflict]:
    low, high = options.image_min_tokens, options.image_max_tokens
    if high and low > high:
        yield Conflict(
            ("image_min_tokens", "image_max_tokens"),
            tr(
                "Fewest tokens per picture ({0}) can't be more than Most tokens per picture ({1}).",
                show_count(low),
                show_count(high),
            ),
        )


def _context_length(options: LoadOptions, facts: ModelFacts) -> Iterator[Conflict]:
    """Yield the conflict of a context that the model does not reach, not even with the planner's RoPE scaling."""
    trained = facts.context_length
    if not trained or options.n_ctx <= trained:
        return
    scaled = with_rope_scaling(options, facts)
    reached = reached_context(scaled, trained)
    if options.n_ctx <= reached:
        return
    if scaled.rope_freq_scale and reached > trained:
        yield Conflict(
            ("n_ctx", "rope_freq_scale"),
            tr("With these RoPE options, the model reaches {0} tokens. Choose a shorter context.", show_count(reached)),
        )
    elif (longest := longest_context(facts.architecture, trained)) > trained:
        yield Conflict(
            ("n_ctx", "rope_scaling"),
            tr(
                "The model was trained on {0} tokens and reaches {1} with YaRN. Choose a shorter context, or set RoPE "
                "scaling and RoPE frequency scale to their defaults.",
                show_count(trained),
                show_count(longest),
            ),
        )
    else:
        yield Conflict(
            ("n_ctx", "rope_scaling"),
            tr(
                "The model was trained on {0} tokens, and YaRN isn't known to work with it. Choose a shorter context, "
                "or set RoPE scaling to yarn to try.",
                show_count(trained),
            ),
        )


def _of_model(options: LoadOptions, facts: ModelFacts) -> Iterator[Conflict]:
    yield from _context_length(options, facts)
    heads = (("type_k", options.type_k, facts.key_length, "K"), ("type_v", options.type_v, facts.value_length, "V"))
    for key, kind, length, name in heads:
        if kind not in _UNQUANTISED and length % CACHE_BLOCK:
            yield Conflict(
                (key,),
                tr(
                    "The {0} cache type {1} needs attention heads of a multiple of {2} values, and this model's have "
                    "{3}. Choose f16.",
                    name,
                    kind,
                    CACHE_BLOCK,
                    length,
                ),
            )
