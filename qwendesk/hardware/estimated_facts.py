"""Estimates the facts of a model file that isn't downloaded yet, from its architecture and the file's size.

This way a plan can be made before the download. It is accurate to a few percent: some matrices get more bits than
others, and only the file's header says which (hub/remote_header.py reads it).
"""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from qwendesk.core.model_facts import Hyperparameters, ModelFacts, TensorFacts

_BITS: Mapping[str, float] = MappingProxyType(
    {"F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8.5, "Q6_K": 6.5625, "Q5_K": 5.5, "Q4_K": 4.5, "Q3_K": 3.4375}
)
"""Bits per weight, from ggml's block sizes."""
_TIED_UP_TO_PARAMS_B = 6.0
"""Qwen3.5 models up to 4B use the token embeddings as the output matrix too; the limit is in billions."""
_WIDTH_STEP = 64


class TensorShape(msgspec.Struct, frozen=True):
    """A tensor of an architecture. Only tensors with `is_matrix` are quantized; the others stay F32."""

    name: str
    shape: tuple[int, ...]
    is_matrix: bool


class Dimensions(Hyperparameters, frozen=True, kw_only=True):
    """Everything that determines the sizes of the tensors."""

    feed_forward_length: int = 0
    """Width of the feed-forward, or of each expert in a mixture."""
    is_tied: bool = False
    """The token embeddings are used as the output matrix too."""
    nextn_layers: int = 0


def dimensions_of(numbers: Hyperparameters, params_b: float = 0.0) -> Dimensions:
    """Return the dimensions of a model in the catalog.

    The catalog has no feed-forward width: it is calculated from `params_b`, the number of parameters in billions.
    """
    tied = bool(params_b) and params_b < _TIED_UP_TO_PARAMS_B
    dimensions = Dimensions(**msgspec.structs.asdict(numbers), is_tied=tied)
    if not params_b:
        return dimensions
    other = sum(math.prod(each.shape) for each in tensor_shapes(dimensions))
    wide = 3 * dimensions.embedding_length * dimensions.block_count * (dimensions.expert_count + 1)
    width = max(params_b * 1e9 - other, 0) / wide
    return msgspec.structs.replace(dimensions, feed_forward_length=max(round(width / _WIDTH_STEP), 1) * _WIDTH_STEP)


def tensor_shapes(dimensions: Dimensions) -> Iterator[TensorShape]:
    """Yield the tensors of a qwen35 or qwen35moe file. Shapes have ggml's order: the fastest dimension first."""
    hidden = dimensions.embedding_length
    yield TensorShape("token_embd.weight", (hidden, dimensions.vocab_size), True)
    yield TensorShape("output_norm.weight", (hidden,), False)
    if not dimensions.is_tied:
        yield TensorShape("output.weight", (hidden, dimensions.vocab_size), True)
    for layer in range(dimensions.block_count + dimensions.nextn_layers):
        block = f"blk.{layer}"
        is_draft = layer >= dimensions.block_count
        yield TensorShape(f"{block}.attn_norm.weight", (hidden,), False)
        yield TensorShape(f"{block}.post_attention_norm.weight", (hidden,), False)
        has_attention = is_draft or (layer + 1) % max(dimensions.full_attention_interval, 1) == 0
        yield from _attention(block, dimensions) if has_attention else _recurrence(block, dimensions)
        yield from _experts(block, dimensions) if dimensions.expert_count else _feed_forward(block, dimensions)
        if is_draft:
            yield TensorShape(f"{block}.nextn.eh_proj.weight", (2 * hidden, hidden), True)
            for name in ("enorm", "hnorm", "shared_head_norm"):
                yield TensorShape(f"{block}.nextn.{name}.weight", (hidden,), False)


def estimate_facts(
    dimensions: Dimensions, architecture: str, file_bytes: int, *, path: str = "", quant: str = "", name: str = ""
) -> ModelFacts:
    """Return the facts of a file with `file_bytes`, assuming the same number of bits per weight in all matrices."""
    shapes = tuple(tensor_shapes(dimensions))
    plain = sum(4 * math.prod(each.shape) for each in shapes if not each.is_matrix)
    elements = sum(math.prod(each.shape) for each in shapes if each.is_matrix)
    bytes_each = max(file_bytes - plain, 0) / max(elements, 1)
    kind = _nearest_type(8 * bytes_each)
    tensors = tuple(
        TensorFacts(
            each.name,
            kind if each.is_matrix else "F32",
            each.shape,
            round(math.prod(each.shape) * bytes_each) if each.is_matrix else 4 * math.prod(each.shape),
        )
        for each in shapes
    )
    numbers = {key: getattr(dimensions, key) for key in Hyperparameters.__struct_fields__ if key != "block_count"}
    return ModelFacts(
        path=path,
        file_bytes=file_bytes,
        kind="model",
        architecture=architecture,
        name=name,
        quant=quant,
        block_count=dimensions.block_count + dimensions.nextn_layers,
        nextn_layers=dimensions.nextn_layers,
        tensors=tensors,
        **numbers,
    )


def _nearest_type(bits: float) -> str:
    return min(_BITS, key=lambda name: abs(_BITS[name] - bits))


def _attention(block: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    hidden, head = dimensions.embedding_length, dimensions.key_length
    queries, keys = dimensions.head_count * head, dimensions.head_count_kv * head
    yield TensorShape(f"{block}.attn_q.weight", (hidden, 2 * queries), True)
    yield TensorShape(f"{block}.attn_k.weight", (hidden, keys), True)
    yield TensorShape(f"{block}.attn_v.weight", (hidden, dimensions.head_count_kv * dimensions.value_length), True)
    yield TensorShape(f"{block}.attn_output.weight", (queries, hidden), True)
    yield TensorShape(f"{block}.attn_q_norm.weight", (head,), False)
    yield TensorShape(f"{block}.attn_k_norm.weight", (head,), False)


def _recurrence(block: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    hidden, inner, length = dimensions.embedding_length, dimensions.ssm_inner_size, dimensions.ssm_state_size
    channels, heads = inner + 2 * dimensions.ssm_group_count * length, inner // max(length, 1)
    yield TensorShape(f"{block}.attn_qkv.weight", (hidden, channels), True)
    yield TensorShape(f"{block}.attn_gate.weight", (hidden, inner), True)
    yield TensorShape(f"{block}.ssm_conv1d.weight", (dimensions.ssm_conv_kernel, channels), False)
    yield TensorShape(f"{block}.ssm_dt.bias", (heads,), False)
    yield TensorShape(f"{block}.ssm_a", (heads,), False)
    yield TensorShape(f"{block}.ssm_alpha.weight", (hidden, heads), True)
    yield TensorShape(f"{block}.ssm_beta.weight", (hidden, heads), True)
    yield TensorShape(f"{block}.ssm_norm.weight", (length,), False)
    yield TensorShape(f"{block}.ssm_out.weight", (inner, hidden), True)


def _experts(block: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    hidden, width, count = dimensions.embedding_length, dimensions.feed_forward_length, dimensions.expert_count
    yield TensorShape(f"{block}.ffn_gate_inp.weight", (hidden, count), False)
    yield TensorShape(f"{block}.ffn_gate_inp_shexp.weight", (hidden,), False)
    for part in ("gate", "up"):
        yield TensorShape(f"{block}.ffn_{part}_exps.weight", (hidden, width, count), True)
        yield TensorShape(f"{block}.ffn_{part}_shexp.weight", (hidden, width), True)
    yield TensorShape(f"{block}.ffn_down_exps.weight", (width, hidden, count), True)
    yield TensorShape(f"{block}.ffn_down_shexp.weight", (width, hidden), True)


def _feed_forward(block: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    hidden, width = dimensions.embedding_length, dimensions.feed_forward_length
    yield TensorShape(f"{block}.ffn_gate.weight", (hidden, width), True)
    yield TensorShape(f"{block}.ffn_up.weight", (hidden, width), True)
    yield TensorShape(f"{block}.ffn_down.weight", (width, hidden), True)
