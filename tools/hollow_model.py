"""Writes hollow models: a GGUF header with the real dimensions of a Qwen model over a file that only has the length.

    python tools/hollow_model.py --size 35b --quant q4_k_m OUT.gguf

The data region is a hole, so even a 122B costs a few megabytes of disk. The engine plans such a file (no_alloc) with
exactly the caches, states and buffers of the real one. It cannot be used for answers.
"""

import argparse
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402

from qwendesk.core.units import show_bytes  # noqa: E402
from qwendesk.hardware.sketch import Dimensions, TensorShape, tensor_shapes  # noqa: E402
from tools.bench_vocabulary import vocabulary  # noqa: E402
from tools.gguf_writer import ALIGNMENT, Tensor, Value, header_bytes  # noqa: E402

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
SIZES: Mapping[str, Dimensions] = MappingProxyType(
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
    }
)
"""Dimensions of Qwen3.5 as their makers publish them."""
_F32, _F16, _Q8_0, _Q4_K, _Q6_K = 0, 1, 8, 12, 14
_FILE_TYPES = {"f16": 1, "q8_0": 7, "q4_k_m": 15}


def write_hollow(
    path: Path, size: str, quant: str = "q4_k_m", *, nextn_layers: int = 0, loadable: bool = False
) -> Path:
    """`loadable`: with a generated vocabulary, so that a worker really loads it: all weights are zero then.

    Raises KeyError for an unknown size or quant, OSError when the file system has no files with holes."""
    dimensions = msgspec.structs.replace(SIZES[size], nextn_layers=nextn_layers)
    tensors = [Tensor(each.name, each.shape, _type(each, quant, index), ()) for index, each in _numbered(dimensions)]
    values = _values(dimensions, size, _FILE_TYPES[quant])
    header = header_bytes(values | _vocabulary(dimensions.vocab_size) if loadable else values, tensors)
    data = sum(-(-tensor.n_bytes // ALIGNMENT) * ALIGNMENT for tensor in tensors)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(-(-len(header) // ALIGNMENT) * ALIGNMENT + data)
    return path


def _numbered(dimensions: Dimensions) -> list[tuple[int, TensorShape]]:
    return list(enumerate(tensor_shapes(dimensions)))


def _type(tensor: TensorShape, quant: str, index: int) -> int:
    """About what llama.cpp's quantiser does: Q4_K_M gives the output, and every other down and V matrix, six bits."""
    if not tensor.is_matrix:
        return _F32
    if quant == "f16":
        return _F16
    if quant == "q8_0" or math.prod(tensor.shape) % 256 or tensor.shape[0] % 256:
        return _Q8_0
    is_wide = tensor.name.startswith("output") or (index % 2 and ("ffn_down" in tensor.name or "attn_v" in tensor.name))
    return _Q6_K if is_wide else _Q4_K


def _values(dimensions: Dimensions, size: str, file_type: int) -> dict[str, Value]:
    architecture = "qwen35moe" if dimensions.expert_count else "qwen35"
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
        "rope.dimension_count": dimensions.key_length // 4,
        "rope.dimension_sections": [11, 11, 10, 0],
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
    return {
        "general.architecture": architecture,
        "general.type": "model",
        "general.name": f"Hollow {size}",
        "general.file_type": file_type,
        **{f"{architecture}.{key}": value for key, value in numbers.items()},
        "tokenizer.ggml.model": "no_vocab",
    }


def _vocabulary(size: int) -> dict[str, Value]:
    words = vocabulary(size)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": words.tokens,
        "tokenizer.ggml.token_type": words.types,
        "tokenizer.ggml.merges": words.merges,
        "tokenizer.ggml.eos_token_id": words.tokens.index("<|im_end|>"),
        "tokenizer.ggml.add_bos_token": False,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.gguf")
    parser.add_argument("--size", choices=list(SIZES), default="35b")
    parser.add_argument("--quant", choices=list(_FILE_TYPES), default="q4_k_m")
    asked = parser.parse_args()
    path = write_hollow(asked.out, asked.size, asked.quant)
    print(f"{path}: {show_bytes(path.stat().st_size)}, all of it hollow")


if __name__ == "__main__":
    main()
