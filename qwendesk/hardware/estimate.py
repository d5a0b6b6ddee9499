"""How many bytes a model takes, and where they lie, from its header alone. Sources stand at each number."""

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import CacheType, LoadOptions
from qwendesk.core.units import MIB

AutoCacheType = Literal["auto"] | CacheType
_CACHE_BLOCKS: Mapping[AutoCacheType, tuple[int, int]] = MappingProxyType(
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
"""Elements and bytes of one block of each cache type (ggml's block sizes)."""
_CONTEXT_STEP = 256
"""llama.cpp rounds the context length up to a multiple of this."""
_GPU_COMPUTE_EXTRA_BYTES = 96 * MIB
"""Most that compute buffers of Qwen3.5 were seen to take beyond one float for each token of the vocabulary and each
token of the evaluation batch: 574 MiB in all for 35B-A3B and 579 for 27B at n_ubatch 512, where that is 485."""
_VISION_COMPUTE_BYTES = 560 * MIB
_VISION_WIDTH = 1152
"""The most seen for encoding one picture (559 MiB, 1472 x 1472 pixels, without flash attention), and the width of
that encoder; narrower ones take less in proportion."""
_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERTS = re.compile(r"\.ffn_(up|down|gate|gate_up)_(ch|)exps")
"""llama.cpp's own pattern for what n_cpu_moe moves."""
_INPUT_TENSORS = ("token_embd", "per_layer_token_embd", "position_embd", "token_types")
"""llama.cpp keeps these in RAM wherever the layers are."""


def weights_bytes(facts: ModelFacts) -> int:
    """Bytes of all tensors the engine loads: those of next-token layers (MTP) are skipped."""
    return sum(tensor.n_bytes for tensor in facts.tensors if not _is_skipped(facts, tensor))


def kv_bytes(facts: ModelFacts, n_ctx: int, type_k: AutoCacheType = "f16", type_v: AutoCacheType = "f16") -> int:
    """Bytes of the KV cache for `n_ctx` tokens. Matches llama.cpp's logs (35B-A3B, 32,768, f16: 640 MiB)."""
    heads = facts.head_count_kv or facts.head_count
    default_length = facts.embedding_length // facts.head_count if facts.head_count else 0
    key = _cache_row_bytes(heads * (facts.key_length or default_length), type_k)
    value = _cache_row_bytes(heads * (facts.value_length or default_length), type_v)
    padded = -(-n_ctx // _CONTEXT_STEP) * _CONTEXT_STEP
    return padded * facts.attention_layers * (key + value)


def recurrent_bytes(facts: ModelFacts, n_sequences: int = 1) -> int:
    """Bytes of the recurrent state: f32, independent of the context. Matches the logs (35B-A3B: 62.81 MiB)."""
    channels = facts.ssm_inner_size + 2 * facts.ssm_group_count * facts.ssm_state_size
    convolution = max(facts.ssm_conv_kernel - 1, 0) * channels
    state = facts.ssm_state_size * facts.ssm_inner_size
    return n_sequences * facts.recurrent_layers * 4 * (convolution + state)


def host_compute_bytes(facts: ModelFacts, n_ctx: int, n_ubatch: int) -> int:
    """Bytes of the buffers that stay in RAM while the GPU computes: the attention mask and the inputs (from logs)."""
    return n_ctx * n_ubatch * 2 + 8 * facts.embedding_length * n_ubatch


def device_compute_bytes(facts: ModelFacts, n_ctx: int, options: LoadOptions) -> int:
    """An allowance for the compute buffer of each device that holds layers; the upper end of what logs show.

    Without flash attention the scores of one layer come on top: one float for each head, token of the batch and
    token of the context.
    """
    n_ubatch = ubatch(options)
    scores = 4 * facts.head_count * n_ubatch * n_ctx if options.flash_attn == "off" else 0
    return 4 * facts.vocab_size * n_ubatch + _GPU_COMPUTE_EXTRA_BYTES + scores


def ubatch(options: LoadOptions) -> int:
    """Tokens in one evaluation batch, at most those of a batch; llama.cpp's 512 when that is left open."""
    return min(512 if options.n_ubatch == "auto" else options.n_ubatch, options.n_batch)


def vision_bytes(mmproj: ModelFacts | None) -> int:
    """Bytes of the picture encoder with its compute buffer; 0 without one."""
    if mmproj is None:
        return 0
    width = mmproj.embedding_length or _VISION_WIDTH
    return weights_bytes(mmproj) + _VISION_COMPUTE_BYTES * width // _VISION_WIDTH


class Block(msgspec.Struct, frozen=True):
    """Weights of one layer, in bytes, and which kind of memory it needs while it runs."""

    experts: int
    rest: int
    has_kv: bool
    pair: int = 0
    """The two largest expert tensors: what a GPU holds of them for a moment when they are in RAM."""
    pinned_pair: int = 0
    """The same of those that a placement pattern keeps on the CPU."""
    largest: int = 0


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The weights by where llama.cpp can put them, in bytes."""

    blocks: tuple[Block, ...]
    """One for each layer of the file; a layer that is not loaded is empty."""
    output: int
    """Goes to the GPU as if it were one more layer after the last."""
    tied: int
    """Of the output, what is a second copy of the token embeddings; in RAM they are one."""
    in_ram: int
    """Stays in RAM whatever is chosen."""
    largest_expert_tensor: int
    pinned: tuple[tuple[str, int], ...] = ()
    """Device name and bytes that a placement pattern puts there, wherever their layer is."""
    draft: int = 0
    """The next-token (MTP) layers, which are loaded only for drafting."""

    @property
    def expert_blocks(self) -> int:
        """The smallest n_cpu_moe that moves all experts; 0 for a dense model."""
        return max((index + 1 for index, block in enumerate(self.blocks) if block.experts), default=0)


@functools.lru_cache(maxsize=16)
def split_weights(facts: ModelFacts, override_tensor: tuple[str, ...] = ()) -> Weights:
    """The weights of `facts` by place; tensors that `override_tensor` puts on the CPU count as in RAM.

    Raises re.error when one of its patterns is no regular expression. Kept for the files asked for last, as a slider
    asks many times for the same one.
    """
    pairs = (each.rpartition("=") for each in override_tensor)
    overrides = [(re.compile(pattern), place) for pattern, _, place in pairs]
    sums = [_BlockSums() for _ in range(facts.block_count)]
    output = in_ram = draft = 0
    pinned: dict[str, int] = {}
    for tensor in facts.tensors:
        block = _block(tensor)
        if _is_skipped(facts, tensor):
            draft += tensor.n_bytes
            continue
        place = next((place for pattern, place in overrides if pattern.search(tensor.name)), "")
        of_block = sums[block] if block is not None and block < facts.block_count else None
        is_expert = _EXPERTS.search(tensor.name) is not None
        if of_block is not None and is_expert:
            (of_block.pinned_tensors if place.upper().startswith("CPU") else of_block.expert_tensors).append(
                0 if place and not place.upper().startswith("CPU") else tensor.n_bytes
            )
        if place.upper().startswith("CPU"):
            in_ram += tensor.n_bytes
        elif place:
            pinned[place] = pinned.get(place, 0) + tensor.n_bytes
        elif of_block is not None:
            of_block.rest += 0 if is_expert else tensor.n_bytes
            of_block.largest = max(of_block.largest, tensor.n_bytes)
        elif tensor.name.startswith(_INPUT_TENSORS):
            in_ram += tensor.n_bytes
        else:
            output += tensor.n_bytes
    tied = _tied_output_bytes(facts)
    return Weights(
        blocks=tuple(each.block(_has_kv(facts, index)) for index, each in enumerate(sums)),
        output=output + tied,
        tied=tied,
        in_ram=in_ram,
        largest_expert_tensor=max((max(each.expert_tensors, default=0) for each in sums), default=0),
        pinned=tuple(pinned.items()),
        draft=draft,
    )


class _BlockSums:
    """Adds up one layer."""

    def __init__(self) -> None:
        self.rest = self.largest = 0
        self.expert_tensors: list[int] = []
        self.pinned_tensors: list[int] = []

    def block(self, has_kv: bool) -> Block:
        return Block(
            experts=sum(self.expert_tensors),
            rest=self.rest,
            has_kv=has_kv,
            pair=sum(sorted(self.expert_tensors)[-2:]),
            pinned_pair=sum(sorted(self.pinned_tensors)[-2:]),
            largest=self.largest,
        )


def _tied_output_bytes(facts: ModelFacts) -> int:
    """A model without an output matrix uses the token embeddings again, as a copy beside the output layer."""
    sizes = {tensor.name: tensor.n_bytes for tensor in facts.tensors}
    return 0 if "output.weight" in sizes else sizes.get("token_embd.weight", 0)


def _block(tensor: TensorFacts) -> int | None:
    found = _BLOCK.match(tensor.name)
    return int(found.group(1)) if found else None


def _is_skipped(facts: ModelFacts, tensor: TensorFacts) -> bool:
    block = _block(tensor)
    return block is not None and facts.nextn_layers > 0 and block >= facts.block_count - facts.nextn_layers


def _has_kv(facts: ModelFacts, block: int) -> bool:
    interval = facts.full_attention_interval
    return block < facts.block_count - facts.nextn_layers and (interval <= 1 or (block + 1) % interval == 0)


def _cache_row_bytes(elements: int, cache_type: AutoCacheType) -> int:
    block, n_bytes = _CACHE_BLOCKS[cache_type]
    return -(-elements // block) * n_bytes
