"""Finds header values with which the engine would abort, divide by zero or loop forever, before it loads the file.

Each rule corresponds to a line of llama.cpp as of llama-cpp-python 0.3.36: an assertion, a division or a loop that
would crash or block the engine process. Values that llama.cpp itself refuses with an error are not checked here.
"""

import math
from collections.abc import Iterator

from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.hub.gguf_header import GgufHeader, HeaderValue

MAX_BLOCKS = 512
"""LLAMA_MAX_LAYERS, the length of llama.cpp's tables with one entry per layer."""
_MAX_EXPERTS = 1024
"""LLAMA_MAX_EXPERTS."""
_ATTENTION = ("qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe")
_HYBRID = ("qwen3next", "qwen35", "qwen35moe", "qwen4exp")
_MROPE = ("qwen2vl", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe", "qwen4exp")
"""Architectures with multimodal RoPE, which rotates sections of the head: time, height, width."""
_NOT_NEGATIVE = (
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.group_norm_epsilon",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
)


def crashing_value(header: GgufHeader, architecture: str) -> str:
    """Return a sentence on a value of this model's header that would crash the engine; "" if there is none."""
    values = _Values(header, f"{architecture}.")
    rules = [_fractions(values), _layers(values), _experts(values)]
    if architecture in (*_ATTENTION, *_HYBRID):
        rules += [_heads(values), _rotation(values, has_sections=architecture in _MROPE)]
    if architecture in _HYBRID:
        rules.append(_recurrent(values))
    return next((reason for rule in rules for reason in rule), "")


def crashing_vision_value(header: GgufHeader) -> str:
    """Return a sentence on a value of this mmproj header that would crash the engine; "" if there is none."""
    values = _Values(header, "clip.vision.")
    width, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    reasons = list(_fractions(values))
    if heads is not None and (heads < 1 or (width or 0) % heads):
        reasons.append(
            values.reason(
                "attention.head_count", tr("it must divide the embedding length of {0}", show_count(width or 0))
            )
        )
    return next(iter(reasons), "")


class _Values:
    """The header values of one architecture; keys are given without its name."""

    def __init__(self, header: GgufHeader, prefix: str) -> None:
        self._values, self._prefix = header.values, prefix

    def get(self, key: str) -> HeaderValue | None:
        return self._values.get(self._prefix + key)

    def whole(self, key: str) -> int | None:
        """Return a whole number; None if there is none, or a list with one for each layer."""
        value = self.get(key)
        return int(value) if isinstance(value, int) else None

    def numbers(self, key: str) -> tuple[int | float | bool, ...]:
        """Return the numbers of a list, or a single one; () if there are none."""
        value = self.get(key)
        if isinstance(value, tuple):
            return value
        return (value,) if isinstance(value, int | float) else ()

    def reason(self, key: str, rule: str) -> str:
        return tr("Its header sets {0} to {1}, but {2}.", self._prefix + key, self.get(key), rule)


def _fractions(values: _Values) -> Iterator[str]:
    """Yield problems of numbers that must be finite and not negative.

    ggml asserts `eps >= 0.0f` in every norm; a rotation by NaN or infinity makes every number NaN.
    """
    for key in _NOT_NEGATIVE:
        if not all(math.isfinite(number) and number >= 0 for number in values.numbers(key)):
            yield values.reason(key, tr("it must be a number of 0 or more"))


def _layers(values: _Values) -> Iterator[str]:
    """Yield problems of the numbers of layers.

    llama_model_base::load_hparams asserts `n_layer_all > 0` and `n_layer_nextn <= n_layer_all`.
    """
    blocks, nextn = values.whole("block_count"), values.whole("nextn_predict_layers") or 0
    if blocks is None:
        return
    if not 0 < blocks <= MAX_BLOCKS:
        yield values.reason("block_count", tr("it must be between 1 and {0}", MAX_BLOCKS))
    if nextn > blocks:
        yield values.reason("nextn_predict_layers", tr("the model has {0} layers", blocks))


def _experts(values: _Values) -> Iterator[str]:
    """Yield problems of the numbers of experts, all asserted in llama_model_base::load_hparams."""
    count, used = values.whole("expert_count") or 0, max(values.numbers("expert_used_count"), default=0)
    groups, groups_used = values.whole("expert_group_count") or 0, values.whole("expert_group_used_count") or 0
    if count > _MAX_EXPERTS:
        yield values.reason("expert_count", tr("it must be at most {0}", show_count(_MAX_EXPERTS)))
    if used > count or (count and used < 1):
        yield values.reason("expert_used_count", tr("the model has {0} experts", show_count(count)))
    if groups and groups >= count:
        yield values.reason("expert_group_count", tr("the model has {0} experts", show_count(count)))
    elif groups > 1 and (count % groups or not 0 < groups_used < groups):
        yield values.reason(
            "expert_group_count", tr("{0} of them are used for {1} experts", groups_used, show_count(count))
        )


def _heads(values: _Values) -> Iterator[str]:
    """Yield problems of the attention heads.

    llama.cpp asserts that the matrices can be multiplied, and that keys and values of a head have the same length.
    """
    heads, kv_heads = values.whole("attention.head_count"), values.whole("attention.head_count_kv")
    if heads == 0:
        yield values.reason("attention.head_count", tr("it must be above 0"))
    if heads and kv_heads is not None and (kv_heads < 1 or heads % kv_heads):
        yield values.reason("attention.head_count_kv", tr("it must divide the {0} heads", heads))
    key, value = values.whole("attention.key_length"), values.whole("attention.value_length")
    if key == 0:
        yield values.reason("attention.key_length", tr("it must be above 0"))
    if key is not None and value is not None and key != value:
        yield values.reason("attention.value_length", tr("it must be the key length of {0}", key))


def _rotation(values: _Values, *, has_sections: bool) -> Iterator[str]:
    """Yield problems of the rotary position embedding (RoPE).

    With 0 dimensions ggml_compute_forward_rope_flt never returns. It asserts that their number is even and not too
    large. The sum of the sections is a divisor in ggml_mrope_cache_init.
    """
    head = _head_length(values)
    for key in ("rope.dimension_count", "rope.dimension_count_swa"):
        count = values.whole(key)
        if count is not None and (count < 1 or count % 2 or (head and count > head)):
            yield values.reason(key, tr("it must be an even number up to {0}", head or tr("the length of a head")))
    if values.numbers("rope.freq_base") == (0,):
        yield values.reason("rope.freq_base", tr("it must be above 0"))
    sections = values.numbers("rope.dimension_sections")
    if has_sections and sections and (min(sections) < 0 or not 0 < sum(sections) <= (head or math.inf)):
        yield values.reason(
            "rope.dimension_sections", tr("they must add up to at most {0}", head or tr("the length of a head"))
        )


def _head_length(values: _Values) -> int:
    """Return the key length of a head; 0 if the file doesn't say."""
    stated, heads = values.whole("attention.key_length"), values.whole("attention.head_count")
    return stated or ((values.whole("embedding_length") or 0) // heads if heads else 0)


def _recurrent(values: _Values) -> Iterator[str]:
    """Yield problems of the recurrent layers.

    The interval and the number of value heads are divisors; the gated delta rule asserts the rest.
    """
    if values.whole("full_attention_interval") == 0 and values.get("attention.recurrent_layers") is None:
        yield values.reason("full_attention_interval", tr("it must be above 0"))
    for key in ("ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"):
        if values.whole(key) == 0:
            yield values.reason(key, tr("it must be above 0"))
    state, inner = values.whole("ssm.state_size"), values.whole("ssm.inner_size")
    heads, groups = values.whole("ssm.time_step_rank"), values.whole("ssm.group_count")
    if heads and groups and heads % groups:
        yield values.reason("ssm.group_count", tr("it must divide the {0} value heads", heads))
    if heads and state and inner is not None and inner != heads * state:
        yield values.reason("ssm.inner_size", tr("it must be {0} heads of {1}", heads, state))
