"""Compute buffers of this engine: what llama.cpp's scheduler reserves beside weights and caches while it works.

The formulas name the phase of a layer that needs most: its experts or feed-forward, its recurrence, or its attention.
They were found from what the pinned engine itself plans (no_alloc) for hollow models of Qwen3.5's real dimensions on
pretended cards; docs/measurements.md has the comparison. A real load's own numbers replace them.
"""

import math

import msgspec

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions

_FLOAT = 4
_PIPELINE_COPIES = 4
"""llama.cpp's GGML_SCHED_MAX_COPIES: several GPUs work on several batches at once, each with its own inputs."""


class Widths(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers per token that pass through one layer, in floats."""

    hidden: int
    channels: int
    """Of the recurrent layers' convolution."""
    queries: int
    keys: int
    heads: int
    widest_phase: int
    """Of experts, feed-forward and recurrence, the one that holds most at once; the layer's input not counted."""
    expert_phase: int
    """What runs beside experts that are copied from RAM."""
    vocabulary: int
    is_mixture: bool


class Moves(msgspec.Struct, frozen=True):
    """Bytes of weights that one GPU holds for a moment, because they lie in RAM and it computes with them."""

    expert_pair: int = 0
    """The two largest expert tensors of one layer whose experts alone are in RAM."""
    largest: int = 0
    """The largest tensor of a layer that is in RAM altogether."""
    layer_kv: int = 0
    """The KV cache of one such layer."""


def widths_of(facts: ModelFacts) -> Widths:
    """From the header; widths of the feed-forward from the tensors' shapes."""
    hidden = facts.embedding_length
    head = facts.key_length or (hidden // facts.head_count if facts.head_count else 0)
    used = facts.expert_used_count if facts.expert_count else 0
    width = _feed_forward_width(facts)
    channels = facts.ssm_inner_size + 2 * facts.ssm_group_count * facts.ssm_state_size
    recurrence = 3 * channels + facts.ssm_inner_size if facts.ssm_state_size else 0
    forward = used * hidden + 3 * used * width + 3 * hidden if used else 3 * width + 2 * hidden
    return Widths(
        hidden=hidden,
        channels=channels,
        queries=facts.head_count * head,
        keys=(facts.head_count_kv or facts.head_count) * head,
        heads=facts.head_count,
        widest_phase=max(forward, recurrence),
        expert_phase=2 * hidden + used * width + 2 * facts.expert_count,
        vocabulary=facts.vocab_size,
        is_mixture=bool(used),
    )


def on_cpu_alone(widths: Widths, n_ctx: int, n_ubatch: int, flash: bool) -> int:
    """Bytes in RAM when no GPU takes part."""
    mask = _mask(n_ctx, n_ubatch, flash)
    phase = mask + _FLOAT * n_ubatch * (widths.widest_phase + widths.hidden)
    if not flash:
        phase = max(phase, mask + _scores(widths, n_ctx, n_ubatch) + _attention(widths, n_ubatch, widths.hidden))
    return phase + _outputs(widths)


def in_host_memory(
    widths: Widths, n_ctx: int, n_ubatch: int, flash: bool, *, has_cpu_layers: bool, is_pipelined: bool
) -> int:
    """Bytes in RAM beside GPUs: masks and inputs, what CPU layers hand over, the output's logits."""
    row = _FLOAT * n_ubatch * widths.hidden
    mask = _mask(n_ctx, n_ubatch, flash) + (0 if flash else 2 * _FLOAT * widths.keys * n_ubatch)
    if is_pipelined:
        return _PIPELINE_COPIES * mask + (_PIPELINE_COPIES + 1) * row + _outputs(widths)
    handed = _FLOAT * n_ubatch * max(widths.channels - widths.hidden, 0) if has_cpu_layers else 0
    return mask + 2 * row + handed + _outputs(widths)


def on_gpu(
    widths: Widths, n_ctx: int, n_ubatch: int, flash: bool, cache_f16_bytes: int, moves: Moves, copies: int
) -> int:
    """Bytes on one GPU. `cache_f16_bytes`: one layer's cache as f16 if it is quantised (flash attention unpacks it),
    else 0. `copies`: 0, or when GPUs are pipelined the rows it holds four of: 1 on the first, 2 on the others."""
    mask, row = _mask(n_ctx, n_ubatch, flash), _FLOAT * n_ubatch
    phases = [row * widths.widest_phase]
    if moves.expert_pair and not moves.largest:
        phases.append(moves.expert_pair + row * widths.expert_phase)
    if flash and cache_f16_bytes:
        phases.append(cache_f16_bytes + row * (6 * widths.queries + widths.hidden))
    if not flash:
        scores = _scores(widths, n_ctx, n_ubatch)
        moved = moves.expert_pair * 2 // 5
        phases.append(scores + _attention(widths, n_ubatch, 0) // (2 if moved else 1) + moved)
    if moves.largest:
        phases.append(moves.largest + row * widths.widest_phase + mask // 4)
        phases.append(_cpu_layer(widths, n_ctx, n_ubatch, flash, moves))
    if not copies:
        return mask + max(phases)
    return _PIPELINE_COPIES * (mask + copies * row * widths.hidden) + max(phases)


def _cpu_layer(widths: Widths, n_ctx: int, n_ubatch: int, flash: bool, moves: Moves) -> int:
    """Attention of a layer in RAM that the GPU computes for it: its cache comes along with its weights."""
    handed = _attention(widths, n_ubatch, 2 * widths.hidden if widths.is_mixture else 0)
    if not flash:
        return _scores(widths, n_ctx, n_ubatch) + moves.layer_kv + handed
    if widths.is_mixture:
        return moves.layer_kv + max(moves.largest, moves.layer_kv // 2) + handed
    return moves.layer_kv * 13 // 10 + handed


def _mask(n_ctx: int, n_ubatch: int, flash: bool) -> int:
    return n_ctx * n_ubatch * (2 if flash else 4)


def _scores(widths: Widths, n_ctx: int, n_ubatch: int) -> int:
    """Without flash attention: one float for each head, token of the batch and token of the context."""
    return _FLOAT * widths.heads * n_ctx * n_ubatch


def _attention(widths: Widths, n_ubatch: int, more: int) -> int:
    return _FLOAT * n_ubatch * (4 * widths.queries + 6 * widths.keys + more)


def _outputs(widths: Widths) -> int:
    """Only a prompt's last token is sampled from (n_outputs_max is 1)."""
    return _FLOAT * widths.vocabulary


def ubatch_of(options: LoadOptions, n_ctx: int) -> int:
    """Tokens in one evaluation batch: at most those of a batch and of the context; 512 when it is left open."""
    return min(512 if options.n_ubatch == "auto" else options.n_ubatch, options.n_batch, n_ctx)


def _feed_forward_width(facts: ModelFacts) -> int:
    """Width of one expert, or of the dense feed-forward: what the down matrix starts from."""
    marks = ("ffn_down_exps.weight",) if facts.expert_count else ("ffn_down.weight",)
    for tensor in facts.tensors:
        if tensor.name.endswith(marks) and len(tensor.shape) > 1:
            return tensor.shape[0]
    return math.ceil(facts.embedding_length * (0.25 if facts.expert_count else 3.4))
