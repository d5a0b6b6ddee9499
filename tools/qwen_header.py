"""What the header of a model in Qwen3.5's architecture says, for the files that tools make up."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from qwendesk.hardware.estimated_facts import NGRAM_LAYER, Dimensions
from tools.bench_vocabulary import Vocabulary
from tools.gguf_writer import LongNumbers, Value

_QWEN = Dimensions(
    block_count=40,
    embedding_length=2048,
    head_count=16,
    head_count_kv=2,
    key_length=256,
    value_length=256,
    full_attention_interval=4,
    ssm_conv_kernel=4,
    ssm_state_size=128,
    ssm_group_count=16,
    ssm_inner_size=4096,
    context_length=262_144,
    vocab_size=248_320,
    expert_count=256,
    expert_used_count=8,
    feed_forward_length=512,
)
_DENSE = msgspec.structs.replace(_QWEN, expert_count=0, expert_used_count=0)
REAL_SIZES: Mapping[str, Dimensions] = MappingProxyType(
    {
        "35b": _QWEN,
        "122b": msgspec.structs.replace(
            _QWEN, block_count=48, embedding_length=3072, head_count=32, ssm_inner_size=8192, feed_forward_length=1024
        ),
        "27b": msgspec.structs.replace(
            _DENSE,
            block_count=64,
            embedding_length=5120,
            head_count=24,
            head_count_kv=4,
            ssm_inner_size=6144,
            feed_forward_length=17_408,
        ),
        "9b": msgspec.structs.replace(
            _DENSE, block_count=32, embedding_length=4096, head_count_kv=4, feed_forward_length=12_288
        ),
        "4b": msgspec.structs.replace(
            _DENSE, block_count=32, embedding_length=2560, head_count_kv=4, feed_forward_length=9216, is_tied=True
        ),
        "2b": msgspec.structs.replace(
            _DENSE, block_count=24, head_count=8, ssm_inner_size=2048, feed_forward_length=6144, is_tied=True
        ),
        "0.8b": msgspec.structs.replace(
            _DENSE,
            block_count=24,
            embedding_length=1024,
            head_count=8,
            ssm_inner_size=2048,
            feed_forward_length=3584,
            is_tied=True,
        ),
        "flash-next": msgspec.structs.replace(
            _QWEN,
            block_count=48,
            embedding_length=2560,
            head_count=24,
            ssm_inner_size=6144,
            expert_count=512,
            expert_used_count=10,
            feed_forward_length=640,
            hyper_connections=4,
            hyper_connection_rank=320,
            indexer_head_count=4,
            indexer_key_length=128,
            indexer_top_k=2048,
            ngram_rows=320_001_536,
            ngram_row_length=160,
        ),
    }
)
"""Dimensions of Qwen3.5 and Qwen3.8-Flash-Next as their makers publish them."""
_NGRAM_HEADS = 16
"""Rows of the table for each token: 8 for its pair and 8 for its triple."""


def model_values(dimensions: Dimensions, name: str, file_type: int) -> dict[str, Value]:
    """All but the tokenizer. `file_type` is llama.cpp's number of the quant."""
    architecture = "qwen4exp" if dimensions.hyper_connections else "qwen35moe" if dimensions.expert_count else "qwen35"
    rotated = dimensions.key_length // 4
    pairs = rotated // 2
    numbers: dict[str, Value] = {
        "block_count": dimensions.block_count + dimensions.nextn_layers,
        "context_length": dimensions.context_length,
        "embedding_length": dimensions.embedding_length,
        "attention.head_count": dimensions.head_count,
        "attention.head_count_kv": dimensions.head_count_kv,
        "attention.key_length": dimensions.key_length,
        "attention.value_length": dimensions.value_length,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e7,
        "rope.dimension_count": rotated,
        "rope.dimension_sections": [(pairs + 2) // 3, (pairs + 1) // 3, pairs // 3, 0],
        "ssm.conv_kernel": dimensions.ssm_conv_kernel,
        "ssm.state_size": dimensions.ssm_state_size,
        "ssm.group_count": dimensions.ssm_group_count,
        "ssm.time_step_rank": dimensions.ssm_inner_size // dimensions.ssm_state_size,
        "ssm.inner_size": dimensions.ssm_inner_size,
        "full_attention_interval": dimensions.full_attention_interval,
        "vocab_size": dimensions.vocab_size,
    }
    if dimensions.nextn_layers:
        numbers["nextn_predict_layers"] = dimensions.nextn_layers
    if dimensions.expert_count:
        numbers |= {
            "expert_count": dimensions.expert_count,
            "expert_used_count": dimensions.expert_used_count,
            "expert_feed_forward_length": dimensions.feed_forward_length,
            "expert_shared_feed_forward_length": dimensions.feed_forward_length,
        }
    else:
        numbers["feed_forward_length"] = dimensions.feed_forward_length
    if dimensions.hyper_connections:
        numbers |= _flash_next_values(dimensions)
    return {
        "general.architecture": architecture,
        "general.type": "model",
        "general.name": name,
        "general.file_type": file_type,
        **{f"{architecture}.{key}": value for key, value in numbers.items()},
    }


def _flash_next_values(dimensions: Dimensions) -> dict[str, Value]:
    """What only qwen4exp has. The numbers for hashing n-grams are made up: they don't matter for memory."""
    heads = range(_NGRAM_HEADS)
    rows = dimensions.ngram_rows // _NGRAM_HEADS
    return {
        "hyper_connection.count": dimensions.hyper_connections,
        "hyper_connection.low_rank": dimensions.hyper_connection_rank,
        "attention.indexer.head_count": dimensions.indexer_head_count,
        "attention.indexer.key_length": dimensions.indexer_key_length,
        "attention.indexer.top_k": dimensions.indexer_top_k,
        "attention.compress_ratios": [
            0 if (layer + 1) % dimensions.full_attention_interval else 4 for layer in range(dimensions.block_count)
        ],
        "ple.layers": [NGRAM_LAYER],
        "ple.ngram_size": 3,
        "ple.heads_per_ngram": _NGRAM_HEADS // 2,
        "ple.conv_kernel": 4,
        "ple.eos_token_id": 0,
        "ple.layer_multipliers": LongNumbers((3, 5, 7)),
        "ple.head_offsets": LongNumbers(head * rows for head in heads),
        "ple.head_vocab_sizes": LongNumbers(rows for _ in heads),
        "embedding_length_per_layer_input": dimensions.ngram_row_length,
    }


def vocabulary_values(words: Vocabulary) -> dict[str, Value]:
    """The tokenizer, without a chat template."""
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": words.tokens,
        "tokenizer.ggml.token_type": words.types,
        "tokenizer.ggml.merges": words.merges,
        "tokenizer.ggml.eos_token_id": words.tokens.index("<|im_end|>"),
        "tokenizer.ggml.add_bos_token": False,
    }
