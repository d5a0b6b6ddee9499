"""Calculates from its header how many bytes a model needs and which memory they go to. Each number has its source."""

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.core.architectures import architecture_named
from qwendesk.core.model_facts import EXPERT_TENSORS, LAZY_TABLE, ModelFacts, TensorFacts
from qwendesk.core.options import CacheType, LoadOptions
from qwendesk.core.units import MIB
from qwendesk.hardware.compute_buffers import ubatch_of

AutoCacheType = Literal["auto"] | CacheType
# For each cache type the elements and the bytes of one block (ggml's block sizes).
QUANT_BLOCKS: Mapping[AutoCacheType, tuple[int, int]] = MappingProxyType(
    {
        "auto": (1, 2),
        "f32": (1, 4),
        "f16": (1, 2),
        "bf16": (1, 2),
        "q8_0": (32, 34),
        "q5_1": (32, 24),
        "q5_0": (32, 22),
        "q4_1": (32, 20),
        "q4_0": (32, 18),
        "iq4_nl": (32, 18),
    }
)
# llama.cpp rounds the context length up to a multiple of this.
_CONTEXT_STEP = 256
_VISION_COMPUTE_BYTES = 560 * MIB
# Width of the encoder that _VISION_COMPUTE_BYTES was measured with; a narrower one needs proportionally less.
#
# The most measured for one image was 559 MiB (1472 x 1472 pixels, without flash attention).
_VISION_WIDTH = 1152
_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERT = re.compile(rf"\.{EXPERT_TENSORS}")
# llama.cpp always keeps these tensors in RAM.
_INPUT_TENSORS = ("token_embd", "per_layer_token_embd", "position_embd", "token_types")


def weights_bytes(facts: ModelFacts) -> int:
    """Return the bytes of all tensors that the engine loads. It skips those of next-token (MTP) layers."""
    return sum(tensor.n_bytes for tensor in facts.tensors if not _is_skipped(facts, tensor))


def layer_kv_bytes(
    facts: ModelFacts,
    n_tokens: int,
    type_k: AutoCacheType = "f16",
    type_v: AutoCacheType = "f16",
    layer: int | None = None,
) -> int:
    """Return the bytes of one layer's KV cache that keeps `n_tokens`, with the keys of an indexer.

    Without `layer`, of one without a sliding window. Matches llama.cpp's logs (35B-A3B with 10 such layers, 32,768,
    f16: 640 MiB).
    """
    if layer is None and facts.layer_heads_kv:
        whole = [each for each in range(facts.block_count) if not _slides(facts, each)] or range(facts.block_count)
        layer = max(whole, key=facts.layer_heads_kv.__getitem__)
    slides = layer is not None and _slides(facts, layer)
    heads = facts.head_count_kv or facts.head_count
    if layer is not None and facts.layer_heads_kv:
        heads = facts.layer_heads_kv[layer]
    default_length = facts.embedding_length // facts.head_count if facts.head_count else 0
    key_length, value_length = facts.key_length or default_length, facts.value_length or default_length
    if slides:
        key_length, value_length = facts.sliding_key_length or key_length, facts.sliding_value_length or value_length
    key, value = _cache_row_bytes(heads * key_length, type_k), _cache_row_bytes(heads * value_length, type_v)
    indexer = _cache_row_bytes(facts.indexer_key_length, type_k)
    padded = -(-n_tokens // _CONTEXT_STEP) * _CONTEXT_STEP
    return padded * (key + value + indexer)


def kv_layers(facts: ModelFacts, options: LoadOptions, n_ctx: int) -> tuple[int, ...]:
    """Return the bytes of the KV cache of each layer of the file, 0 for a layer that has none.

    A layer with a sliding window keeps the tokens of the window and of one evaluation batch.
    """
    n_kept = n_ctx if options.swa_full else min(n_ctx, facts.sliding_window + ubatch_of(options, n_ctx))
    kinds = [(_slides(facts, layer), facts.layer_heads_kv[layer : layer + 1]) for layer in range(facts.block_count)]
    sizes = {
        kind: layer_kv_bytes(facts, n_kept if kind[0] else n_ctx, options.type_k, options.type_v, kinds.index(kind))
        for kind in set(kinds)
    }
    return tuple(sizes[kind] if _has_kv(facts, layer) else 0 for layer, kind in enumerate(kinds))


def kv_bytes(facts: ModelFacts, options: LoadOptions, n_ctx: int) -> int:
    """Return the bytes of the KV cache of all layers for `n_ctx` tokens."""
    return sum(kv_layers(facts, options, n_ctx))


def checkpoint_bytes(facts: ModelFacts, options: LoadOptions, n_ctx: int) -> int:
    """Return the bytes of one checkpoint: what can't be rolled back, the recurrent state and sliding windows."""
    caches = kv_layers(facts, options, n_ctx)
    windows = sum(n_bytes for n_bytes, slides in zip(caches, facts.sliding_layers, strict=False) if slides)
    return recurrent_bytes(facts) + windows


def recurrent_bytes(facts: ModelFacts, n_sequences: int = 1) -> int:
    """Return the bytes of the recurrent state: f32, independent of the context. Matches logs (35B-A3B: 62.81 MiB)."""
    channels = facts.ssm_inner_size + 2 * facts.ssm_group_count * facts.ssm_state_size
    convolution = max(facts.ssm_conv_kernel - 1, 0) * channels
    state = facts.ssm_state_size * facts.ssm_inner_size
    return n_sequences * facts.recurrent_layers * 4 * (convolution + state)


def state_bytes(facts: ModelFacts, options: LoadOptions) -> int:
    """Return the bytes of the recurrent state and of its snapshots, one for each token that may be drafted at once."""
    n_drafts = 0 if options.speculative in ("auto", "off") else options.draft_n_max
    if options.n_ubatch != "auto":  # the engine needs an evaluation batch of two tokens more
        n_drafts = max(0, min(n_drafts, options.n_ubatch - 2))
    return recurrent_bytes(facts, 1 + n_drafts)


def lazy_table_bytes(facts: ModelFacts) -> int:
    """Return the bytes of the table that llama.cpp can read row by row from the file; 0 if the model has none."""
    if not architecture_named(facts.architecture).reads_table_lazily:
        return 0
    return sum(tensor.n_bytes for tensor in facts.tensors if tensor.name == LAZY_TABLE)


def vision_bytes(mmproj: ModelFacts | None) -> int:
    """Return the bytes of the vision encoder and its compute buffer; 0 if there is none."""
    if mmproj is None:
        return 0
    width = mmproj.embedding_length or _VISION_WIDTH
    return weights_bytes(mmproj) + _VISION_COMPUTE_BYTES * width // _VISION_WIDTH


class LayerWeights(msgspec.Struct, frozen=True):
    """Weights of one layer in bytes, and whether it has a KV cache (else a recurrent state)."""

    experts: int
    rest: int
    has_kv: bool
    expert_pair: int = 0
    """The two largest expert tensors. A GPU copies that much temporarily if they are in RAM."""
    pinned_expert_pair: int = 0
    """The same for expert tensors that a placement pattern keeps on the CPU."""
    pinned_experts: int = 0
    """All expert tensors that a placement pattern keeps on the CPU. They are not part of `experts`."""
    largest: int = 0


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The weights in bytes, grouped by where llama.cpp can put them."""

    layers: tuple[LayerWeights, ...]
    """One for each layer of the file. Layers that are not loaded have 0 bytes."""
    output: int
    """The output weights, which are placed like a layer after the last one."""
    tied: int
    """Part of `output` that is a copy of the token embeddings. The copy is only needed on a GPU."""
    always_in_ram: int
    """Weights that always stay in RAM, with `lazy_table`."""
    lazy_table: int = 0
    """The table that llama.cpp can read row by row from the file (hardware/memory_estimate.py)."""
    pinned: tuple[tuple[str, int], ...] = ()
    """Device name and bytes that a placement pattern puts there, independent of the layers."""
    draft: int = 0
    """Weights of the next-token (MTP) layers, which are only loaded for drafting."""

    @property
    def expert_layers(self) -> int:
        """The smallest n_cpu_moe that moves all experts; 0 for a dense model."""
        return max((index + 1 for index, layer in enumerate(self.layers) if layer.experts), default=0)


@functools.lru_cache(maxsize=16)
def split_weights(facts: ModelFacts, override_tensor: tuple[str, ...] = ()) -> Weights:
    """Return the weights of `facts` by place. Tensors that `override_tensor` puts on the CPU count as in RAM.

    Raises re.error if a pattern is not a valid regular expression. Results are cached, because moving a slider asks
    for the same file many times.
    """
    pairs = (each.rpartition("=") for each in override_tensor)
    overrides = [(re.compile(pattern), place) for pattern, _, place in pairs]
    sums = [_LayerSums() for _ in range(facts.block_count)]
    output = always_in_ram = draft = 0
    pinned: dict[str, int] = {}
    for tensor in facts.tensors:
        layer = _layer(tensor.name)
        if _is_skipped(facts, tensor):
            draft += tensor.n_bytes
            continue
        place = next((place for pattern, place in overrides if pattern.search(tensor.name)), "")
        of_layer = sums[layer] if layer is not None and layer < facts.block_count else None
        is_expert = _EXPERT.search(tensor.name) is not None
        if of_layer is not None and is_expert:
            (of_layer.pinned_tensors if place.upper().startswith("CPU") else of_layer.expert_tensors).append(
                0 if place and not place.upper().startswith("CPU") else tensor.n_bytes
            )
        if place.upper().startswith("CPU"):
            always_in_ram += tensor.n_bytes
        elif place:
            pinned[place] = pinned.get(place, 0) + tensor.n_bytes
        elif of_layer is not None:
            of_layer.rest += 0 if is_expert else tensor.n_bytes
            of_layer.largest = max(of_layer.largest, tensor.n_bytes)
        elif tensor.name.startswith(_INPUT_TENSORS):
            always_in_ram += tensor.n_bytes
        else:
            output += tensor.n_bytes
    tied = _tied_output_bytes(facts)
    return Weights(
        layers=tuple(each.weights(_has_kv(facts, index)) for index, each in enumerate(sums)),
        output=output + tied,
        tied=tied,
        always_in_ram=always_in_ram,
        lazy_table=lazy_table_bytes(facts),
        pinned=tuple(pinned.items()),
        draft=draft,
    )


class _LayerSums:
    """Adds up the weights of one layer."""

    def __init__(self) -> None:
        self.rest = self.largest = 0
        self.expert_tensors: list[int] = []
        self.pinned_tensors: list[int] = []

    def weights(self, has_kv: bool) -> LayerWeights:
        return LayerWeights(
            experts=sum(self.expert_tensors),
            rest=self.rest,
            has_kv=has_kv,
            expert_pair=sum(sorted(self.expert_tensors)[-2:]),
            pinned_expert_pair=sum(sorted(self.pinned_tensors)[-2:]),
            pinned_experts=sum(self.pinned_tensors),
            largest=self.largest,
        )


def _tied_output_bytes(facts: ModelFacts) -> int:
    """Return the bytes of the token embeddings, which are copied if the file has no output matrix; 0 if it has one."""
    sizes = {tensor.name: tensor.n_bytes for tensor in facts.tensors}
    return 0 if "output.weight" in sizes else sizes.get("token_embd.weight", 0)


@functools.lru_cache(maxsize=8192)
def _layer(tensor_name: str) -> int | None:
    found = _BLOCK.match(tensor_name)
    return int(found.group(1)) if found else None


def _is_skipped(facts: ModelFacts, tensor: TensorFacts) -> bool:
    layer = _layer(tensor.name)
    return layer is not None and facts.nextn_layers > 0 and layer >= facts.block_count - facts.nextn_layers


def _has_kv(facts: ModelFacts, layer: int) -> bool:
    interval = facts.full_attention_interval
    n_with_kv = facts.block_count - facts.nextn_layers - facts.shared_kv_layers
    return layer < n_with_kv and (interval <= 1 or (layer + 1) % interval == 0)


def _slides(facts: ModelFacts, layer: int) -> bool:
    """Return True for a layer with a sliding window."""
    return layer < len(facts.sliding_layers) and facts.sliding_layers[layer]


def _cache_row_bytes(elements: int, cache_type: AutoCacheType) -> int:
    block, n_bytes = QUANT_BLOCKS[cache_type]
    return -(-elements // block) * n_bytes
