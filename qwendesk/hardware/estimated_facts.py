"""Estimates the facts of a model file that isn't downloaded yet, from its architecture and the file's size.

This way a plan can be made before the download. It is accurate to a few percent: some matrices get more bits than
others, and only the file's header says which (hub/remote_header.py reads it).
"""

import functools
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from qwendesk.core.model_facts import LAZY_TABLE, Hyperparameters, ModelFacts, TensorFacts

# Bits per weight, from ggml's block sizes.
_BITS: Mapping[str, float] = MappingProxyType(
    {"F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8.5, "Q6_K": 6.5625, "Q5_K": 5.5, "Q4_K": 4.5, "Q3_K": 3.4375}
)
# Qwen3.5 models up to 4B use the token embeddings as the output matrix too; the limit is in billions.
_TIED_UP_TO_PARAMS_B = 6.0
_WIDTH_STEP = 64
# The layer of Qwen3.8-Flash-Next that has n-gram embeddings.
NGRAM_LAYER = 1
_NGRAM_CONVOLUTION = 4
_TABLE_BITS, _LARGE_TABLE_BITS = 4.5, 8.5
# Bits of the n-gram table: IQ4_NL in Unsloth's files up to UD-Q4_K_XL, Q8_0 in the larger ones.
#
# With the small table, more bits than this would be left for each other weight of the larger ones. ggml-org's Q8_0
# leaves 8.50 with the small one, which is right.
_MOST_BITS_BESIDE_TABLE = 6.5


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
    """Yield the tensors of a qwen35, qwen35moe or qwen4exp file. Shapes have ggml's order: fastest dimension first."""
    hidden = dimensions.embedding_length
    has_streams = dimensions.hyper_connections > 0
    yield TensorShape("token_embd.weight", (hidden, dimensions.vocab_size), True)
    if has_streams:
        yield from _streams("output_hc", dimensions)
    else:
        yield TensorShape("output_norm.weight", (hidden,), False)
    if dimensions.ngram_rows:
        yield TensorShape(LAZY_TABLE, (dimensions.ngram_row_length, dimensions.ngram_rows), True)
    if not dimensions.is_tied:
        yield TensorShape("output.weight", (hidden, dimensions.vocab_size), True)
    for layer in range(dimensions.block_count + dimensions.nextn_layers):
        block = f"blk.{layer}"
        is_draft = layer >= dimensions.block_count
        if has_streams:
            for part in ("attn", "ffn"):
                yield from _streams(f"{block}.hc_{part}", dimensions)
                inject = (hidden * dimensions.hyper_connections, dimensions.hyper_connections)
                yield TensorShape(f"{block}.hc_{part}_inject.weight", inject, False)
        else:
            yield TensorShape(f"{block}.attn_norm.weight", (hidden,), False)
            yield TensorShape(f"{block}.post_attention_norm.weight", (hidden,), False)
        has_attention = is_draft or (layer + 1) % max(dimensions.full_attention_interval, 1) == 0
        yield from _attention(block, dimensions) if has_attention else _recurrence(block, dimensions)
        if has_attention and dimensions.indexer_key_length:
            yield from _indexer(block, dimensions)
        if dimensions.ngram_rows and layer == NGRAM_LAYER:
            yield from _ngrams(block, dimensions)
        yield from _experts(block, dimensions) if dimensions.expert_count else _feed_forward(block, dimensions)
        if is_draft:
            yield TensorShape(f"{block}.nextn.eh_proj.weight", (2 * hidden, hidden), True)
            for name in ("enorm", "hnorm", "shared_head_norm"):
                yield TensorShape(f"{block}.nextn.{name}.weight", (hidden,), False)


@functools.lru_cache(maxsize=32)
def _shapes(dimensions: Dimensions) -> tuple[TensorShape, ...]:
    """Return the tensors, which all quants of a model share."""
    return tuple(tensor_shapes(dimensions))


def estimate_facts(
    dimensions: Dimensions, architecture: str, file_bytes: int, *, quant: str = "", name: str = ""
) -> ModelFacts:
    """Return the facts of a file with `file_bytes`, assuming the same number of bits per weight in all matrices."""
    shapes = _shapes(dimensions)
    plain = sum(4 * math.prod(each.shape) for each in shapes if not each.is_matrix)
    elements = sum(math.prod(each.shape) for each in shapes if each.is_matrix)
    table = dimensions.ngram_rows * dimensions.ngram_row_length
    bytes_each, table_bytes_each = _bytes_each(max(file_bytes - plain, 0), elements - table, table)
    kind, table_kind = _nearest_type(8 * bytes_each), _nearest_type(8 * table_bytes_each)
    tensors = tuple(
        _tensor(each, table_kind, table_bytes_each) if each.name == LAZY_TABLE else _tensor(each, kind, bytes_each)
        for each in shapes
    )
    numbers = {
        key: getattr(dimensions, key)
        for key in Hyperparameters.__struct_fields__
        if key in ModelFacts.__struct_fields__ and key != "block_count"
    }
    return ModelFacts(
        path="",
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


def _bytes_each(n_bytes: int, elements: int, table: int) -> tuple[float, float]:
    """Return the bytes of each weight in the matrices and in the n-gram table, which share `n_bytes`."""
    small, large = (
        8 * max(n_bytes - table * bits / 8, 0) / max(elements, 1) for bits in (_TABLE_BITS, _LARGE_TABLE_BITS)
    )
    if not table or small <= _MOST_BITS_BESIDE_TABLE or abs(small - _BITS["Q8_0"]) < 0.05:
        return small / 8, _TABLE_BITS / 8
    if large < _BITS["Q8_0"] + 0.05:
        return large / 8, _LARGE_TABLE_BITS / 8
    return (n_bytes / (elements + table),) * 2


def _tensor(shape: TensorShape, kind: str, bytes_each: float) -> TensorFacts:
    elements = math.prod(shape.shape)
    if not shape.is_matrix:
        return TensorFacts(shape.name, "F32", shape.shape, 4 * elements)
    return TensorFacts(shape.name, kind, shape.shape, round(elements * bytes_each))


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


def _streams(prefix: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    """Yield what mixes the residual streams (hyper-connections)."""
    wide, rank = dimensions.embedding_length * dimensions.hyper_connections, dimensions.hyper_connection_rank
    yield TensorShape(f"{prefix}_norm.weight", (wide,), False)
    yield TensorShape(f"{prefix}_down.weight", (wide, rank), True)
    yield TensorShape(f"{prefix}_up.weight", (rank, wide), True)


def _indexer(block: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    hidden, length = dimensions.embedding_length, dimensions.indexer_key_length
    yield TensorShape(f"{block}.indexer.q_proj.weight", (hidden, dimensions.indexer_head_count * length), True)
    yield TensorShape(f"{block}.indexer.k_proj.weight", (hidden, length), True)
    yield TensorShape(f"{block}.indexer.q_norm.weight", (length,), False)
    yield TensorShape(f"{block}.indexer.k_norm.weight", (length,), False)


def _ngrams(block: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    """Yield what the layer with n-gram embeddings has in addition."""
    hidden, wide = dimensions.embedding_length, dimensions.embedding_length * dimensions.hyper_connections
    yield TensorShape(f"{block}.ple_key.weight", (hidden, wide), True)
    yield TensorShape(f"{block}.ple_value.weight", (hidden, hidden), True)
    for name in ("norm_key", "norm_query", "norm_conv"):
        yield TensorShape(f"{block}.ple_{name}.weight", (wide,), False)
    yield TensorShape(f"{block}.ple_conv1d.weight", (_NGRAM_CONVOLUTION, wide), False)


def _feed_forward(block: str, dimensions: Dimensions) -> Iterator[TensorShape]:
    hidden, width = dimensions.embedding_length, dimensions.feed_forward_length
    yield TensorShape(f"{block}.ffn_gate.weight", (hidden, width), True)
    yield TensorShape(f"{block}.ffn_up.weight", (hidden, width), True)
    yield TensorShape(f"{block}.ffn_down.weight", (width, hidden), True)
