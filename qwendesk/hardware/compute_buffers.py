"""Formulas for compute buffers: what llama.cpp's scheduler reserves in addition to weights and caches.

They use the phase of a layer that needs most memory: experts or feed-forward, recurrence, or attention. They were
derived from dry runs (no_alloc) of the pinned engine on simulated cards, with models that have Qwen3.5's dimensions
but no weights; docs/measurements.md has the comparison. The numbers of a real load replace them.
"""

import math

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions

_FLOAT = 4
# llama.cpp's GGML_SCHED_MAX_COPIES: pipelined GPUs work on several batches at once, each with its own inputs.
_PIPELINE_COPIES = 4


# How often all residual streams of Qwen3.8-Flash-Next exist at once: in a layer, and in that with n-grams.
#
# Like the next, from dry runs on the CPU, with 2K to 262K tokens of context and batches of 128 to 2048.
_KEPT_STREAMS, _NGRAM_STREAMS = 4, 9
# For each token of the batch and of the context, to choose the tokens that sparse attention looks at.
#
# Their scores and the sum with the mask (4 each), the new mask (2), and a quarter of 4 for the bias of the blocks.
_SELECTION_BYTES = 11


class Widths(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of the activations in one layer, in floats per token."""

    hidden: int
    channels: int
    """Channels of the convolution in recurrent layers."""
    queries: int
    keys: int
    heads: int
    widest_phase: int
    """The phase (experts, feed-forward or recurrence) that needs most, without the layer's input."""
    expert_phase: int
    """The expert phase while experts are copied from RAM."""
    vocabulary: int
    is_mixture: bool
    streams: int = 0
    """All residual streams of a model that has several side by side; else 0."""
    indexer_key: int = 0
    """Length of an indexer's key; 0 without sparse attention."""
    top_k: int = 0
    """Tokens that sparse attention chooses; 0 without it."""


class RamCopies(msgspec.Struct, frozen=True):
    """Bytes that one GPU copies from RAM temporarily, to compute with weights and caches that are there."""

    expert_pair: int = 0
    """The two largest expert tensors of a layer of which only the experts are in RAM."""
    largest: int = 0
    """The largest tensor of a layer that is entirely in RAM."""
    layer_kv: int = 0
    """The KV cache of one layer whose cache is in RAM."""


def activation_widths(facts: ModelFacts) -> Widths:
    """Return the widths from the header, and that of the feed-forward from the shapes of its tensors."""
    hidden = facts.embedding_length
    head = facts.key_length or (hidden // facts.head_count if facts.head_count else 0)
    used = facts.expert_used_count if facts.expert_count else 0
    width = _feed_forward_width(facts)
    channels = facts.ssm_inner_size + 2 * facts.ssm_group_count * facts.ssm_state_size
    recurrence = 3 * channels + facts.ssm_inner_size if facts.ssm_state_size else 0
    forward = used * hidden + 3 * used * width + 3 * hidden if used else 3 * width + 2 * hidden
    streams = facts.hyper_connections * hidden if facts.hyper_connections > 1 else 0
    ngrams = _NGRAM_STREAMS * streams + 2 * hidden if streams else 0
    return Widths(
        hidden=hidden,
        channels=channels,
        queries=facts.head_count * head,
        keys=(facts.head_count_kv or facts.head_count) * head,
        heads=facts.head_count,
        widest_phase=max(max(forward, recurrence) + _KEPT_STREAMS * streams, ngrams),
        expert_phase=2 * hidden + used * width + 2 * facts.expert_count + 2 * streams,
        vocabulary=facts.vocab_size,
        is_mixture=bool(used),
        streams=streams,
        indexer_key=facts.indexer_key_length,
        top_k=facts.indexer_top_k,
    )


def cpu_only_bytes(widths: Widths, n_ctx: int, n_ubatch: int, flash_attn: bool) -> int:
    """Return the bytes in RAM if no GPU is used."""
    mask = _mask(n_ctx, n_ubatch, flash_attn)
    phase = mask + _FLOAT * n_ubatch * (widths.widest_phase + widths.hidden)
    if not flash_attn or widths.top_k:
        scores = _scores(widths, n_ctx, n_ubatch, flash_attn)
        phase = max(phase, mask + scores + _attention(widths, n_ubatch, widths.hidden))
    return max(phase, _pooled(widths, n_ctx)) + _outputs(widths)


def host_bytes(
    widths: Widths, n_ctx: int, n_ubatch: int, flash_attn: bool, *, has_cpu_layers: bool, is_pipelined: bool
) -> int:
    """Return the bytes in RAM if GPUs are used: masks, inputs, results passed on by CPU layers, and logits."""
    row = _FLOAT * n_ubatch * widths.hidden
    mask = _mask(n_ctx, n_ubatch, flash_attn) + (0 if flash_attn else 2 * _FLOAT * widths.keys * n_ubatch)
    if is_pipelined:
        return _PIPELINE_COPIES * mask + (_PIPELINE_COPIES + 1) * row + _outputs(widths)
    passed_on = _FLOAT * n_ubatch * max(widths.channels - widths.hidden, 0) if has_cpu_layers else 0
    return mask + 2 * row + passed_on + _outputs(widths)


def gpu_bytes(
    widths: Widths,
    n_ctx: int,
    n_ubatch: int,
    flash_attn: bool,
    cache_f16_bytes: int,
    ram_copies: RamCopies,
    copies: int,
) -> int:
    """Return the bytes on one GPU.

    `cache_f16_bytes` is the size of one layer's cache as f16 if the cache is quantized, because flash attention unpacks
    it; else 0. `copies` is the number of input rows that pipelined GPUs keep several copies of: 1 on the first GPU, 2
    on the others; 0 without pipelining.
    """
    mask, row = _mask(n_ctx, n_ubatch, flash_attn), _FLOAT * n_ubatch
    phases = [row * widths.widest_phase]
    if ram_copies.expert_pair and not ram_copies.largest:
        phases.append(ram_copies.expert_pair + row * widths.expert_phase)
    if flash_attn and cache_f16_bytes:
        phases.append(cache_f16_bytes + row * (6 * widths.queries + widths.hidden))
    if not flash_attn or widths.top_k:
        scores = max(_scores(widths, n_ctx, n_ubatch, flash_attn), _pooled(widths, n_ctx))
        moved = ram_copies.expert_pair * 2 // 5
        phases.append(scores + _attention(widths, n_ubatch, 0) // (2 if moved else 1) + moved)
    if ram_copies.largest:
        phases.append(ram_copies.largest + row * widths.widest_phase + mask // 4)
        phases.append(_cpu_layer(widths, n_ctx, n_ubatch, flash_attn, ram_copies))
    if not copies:
        return mask + max(phases)
    return _PIPELINE_COPIES * (mask + copies * row * widths.hidden) + max(phases)


def output_only_bytes(widths: Widths, n_ubatch: int, *, is_pipelined: bool) -> int:
    """Return the bytes on a GPU that has no layer of the main context, only the output, and perhaps the draft head."""
    rows = _PIPELINE_COPIES + 1 if is_pipelined else 1
    return rows * _FLOAT * n_ubatch * widths.hidden + _outputs(widths)


def _cpu_layer(widths: Widths, n_ctx: int, n_ubatch: int, flash_attn: bool, ram_copies: RamCopies) -> int:
    """Return the bytes on the GPU for the attention of a layer in RAM, whose cache is copied with its weights."""
    passed_on = _attention(widths, n_ubatch, 2 * widths.hidden if widths.is_mixture else 0)
    if not flash_attn:
        return _scores(widths, n_ctx, n_ubatch, flash_attn) + ram_copies.layer_kv + passed_on
    if widths.is_mixture:
        return ram_copies.layer_kv + max(ram_copies.largest, ram_copies.layer_kv // 2) + passed_on
    return ram_copies.layer_kv * 13 // 10 + passed_on


def _mask(n_ctx: int, n_ubatch: int, flash_attn: bool) -> int:
    return n_ctx * n_ubatch * (2 if flash_attn else 4)


def _scores(widths: Widths, n_ctx: int, n_ubatch: int, flash_attn: bool) -> int:
    """Return the bytes of the scores of each token of the batch with each of the context.

    Without flash attention, they are a float for each head. Sparse attention has its own, to choose the tokens.
    """
    selection = _SELECTION_BYTES * n_ctx * n_ubatch if widths.top_k else 0
    return selection + (0 if flash_attn else _FLOAT * widths.heads * n_ctx * n_ubatch)


def _attention(widths: Widths, n_ubatch: int, more: int) -> int:
    streams = _KEPT_STREAMS * widths.streams + widths.top_k
    return _FLOAT * n_ubatch * (4 * widths.queries + 6 * widths.keys + more + streams)


def _pooled(widths: Widths, n_ctx: int) -> int:
    """Return the bytes of the indexer's keys while they are averaged in blocks, independent of the batch."""
    return 13 * widths.indexer_key * n_ctx // 2


def _outputs(widths: Widths) -> int:
    """Return the bytes of the logits. Only the prompt's last token has logits (n_outputs_max is 1)."""
    return _FLOAT * widths.vocabulary


def ubatch_of(options: LoadOptions, n_ctx: int) -> int:
    """Return the tokens in one evaluation batch, at most n_batch and the context; "auto" is llama.cpp's default 512."""
    return min(512 if options.n_ubatch == "auto" else options.n_ubatch, options.n_batch, n_ctx)


def _feed_forward_width(facts: ModelFacts) -> int:
    """Return the width of one expert or of the dense feed-forward: the input size of the down matrix."""
    marks = ("ffn_down_exps.weight",) if facts.expert_count else ("ffn_down.weight",)
    for tensor in facts.tensors:
        if tensor.name.endswith(marks) and len(tensor.shape) > 1:
            return tensor.shape[0]
    return math.ceil(facts.embedding_length * (0.25 if facts.expert_count else 3.4))
