"""Writes models with the real dimensions of a Qwen model and random weights, already quantized.

    python tools/random_model.py --size 35b --quant q4_k_m OUT.gguf
    python tools/random_model.py --mmproj 2048 OUT.gguf

A token costs what it costs in the real model, and memory is what the real model takes. tools/bench_model.py writes such
models in F16 first and quantizes them with the engine, which takes an hour for 35B. Here a few million random numbers
are quantized once for each type, and every tensor takes its bytes from them: 35B takes as long as writing 20 GB.
"""

import argparse
import ctypes
import math
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import llama_cpp
import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

from qwendesk.core.paths import demo_model  # noqa: E402
from qwendesk.core.units import show_bytes  # noqa: E402
from qwendesk.hardware.estimated_facts import TensorShape, tensor_shapes  # noqa: E402
from qwendesk.hub.gguf import read_facts  # noqa: E402
from qwendesk.hub.gguf_types import TENSOR_TYPES  # noqa: E402
from tools.bench_vocabulary import vocabulary  # noqa: E402
from tools.gguf_writer import Tensor, Value, write_gguf  # noqa: E402
from tools.hollow_model import FILE_TYPES, tensor_type  # noqa: E402
from tools.qwen_header import REAL_SIZES, model_values, vocabulary_values  # noqa: E402

_F32, _F16, _F16_FILE = 0, 1, 1
_POOL_NUMBERS = 2**22
_BLOCK_NUMBERS = 256
"""Every quant's blocks have this many numbers or a part of it."""

VISION_LAYERS, VISION_HIDDEN, VISION_MLP, VISION_HEADS, VISION_GRID, PATCH = 27, 1152, 4304, 16, 48, 16
"""The vision encoder of Qwen3.5-35B-A3B and larger, from its published configuration."""


def write_random(path: Path, size: str, quant: str = "q4_k_m", *, seed: int = 0) -> Path:
    """Write the model of `size` (a key of REAL_SIZES) and return `path`. Raises KeyError for an unknown size or quant.

    The same size, quant and seed give the same file.
    """
    dimensions = REAL_SIZES[size]
    weights = _RandomWeights(seed)
    shapes = list(tensor_shapes(dimensions))
    tensors = [weights.tensor(each, tensor_type(each, quant, number)) for number, each in enumerate(shapes)]
    values: dict[str, Value] = {
        **model_values(dimensions, f"Random weights ({size})", FILE_TYPES[quant]),
        **vocabulary_values(vocabulary(dimensions.vocab_size)),
        "tokenizer.chat_template": read_facts(demo_model()).chat_template,
    }
    with path.open("wb") as file:
        write_gguf(file, values, tensors)
    return path


def write_random_mmproj(path: Path, embedding_length: int, *, seed: int = 0) -> Path:
    """Write a vision encoder in F16 for models of this embedding length, and return `path`."""
    weights = _RandomWeights(seed)
    tensors = [weights.tensor(each, _F16 if each.is_matrix else _F32) for each in _vision_shapes(embedding_length)]
    numbers: dict[str, Value] = {
        "projection_dim": embedding_length,
        "image_size": VISION_GRID * PATCH,
        "patch_size": PATCH,
        "embedding_length": VISION_HIDDEN,
        "feed_forward_length": VISION_MLP,
        "block_count": VISION_LAYERS,
        "attention.head_count": VISION_HEADS,
        "attention.layer_norm_epsilon": 1e-6,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "spatial_merge_size": 2,
        "is_deepstack_layers": [False] * VISION_LAYERS,
    }
    values: dict[str, Value] = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "general.name": "Random vision encoder",
        "general.file_type": _F16_FILE,
        "clip.has_vision_encoder": True,
        "clip.projector_type": "qwen3vl_merger",
        "clip.use_gelu": True,
        **{f"clip.vision.{name}": value for name, value in numbers.items()},
    }
    with path.open("wb") as file:
        write_gguf(file, values, tensors)
    return path


def _vision_shapes(embedding_length: int) -> Iterator[TensorShape]:
    hidden, merged = VISION_HIDDEN, 4 * VISION_HIDDEN
    for name in ("v.patch_embd.weight", "v.patch_embd.weight.1"):
        yield TensorShape(name, (PATCH, PATCH, 3, hidden), False)
    yield TensorShape("v.patch_embd.bias", (hidden,), False)
    yield TensorShape("v.position_embd.weight", (hidden, VISION_GRID**2), False)
    for layer in range(VISION_LAYERS):
        start = f"v.blk.{layer}"
        yield from _norm(f"{start}.ln1", hidden)
        yield from _linear(f"{start}.attn_qkv", hidden, 3 * hidden)
        yield from _linear(f"{start}.attn_out", hidden, hidden)
        yield from _norm(f"{start}.ln2", hidden)
        yield from _linear(f"{start}.ffn_up", hidden, VISION_MLP)
        yield from _linear(f"{start}.ffn_down", VISION_MLP, hidden)
    yield from _norm("v.post_ln", hidden)
    yield from _linear("mm.0", merged, merged)
    yield from _linear("mm.2", merged, embedding_length)


def _linear(name: str, inputs: int, outputs: int) -> Iterator[TensorShape]:
    yield TensorShape(f"{name}.weight", (inputs, outputs), True)
    yield TensorShape(f"{name}.bias", (outputs,), False)


def _norm(name: str, width: int) -> Iterator[TensorShape]:
    yield TensorShape(f"{name}.weight", (width,), False)
    yield TensorShape(f"{name}.bias", (width,), False)


class _RandomWeights:
    """Makes tensors whose data is drawn when it is written."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._numbers = np.random.default_rng(seed).standard_normal(_POOL_NUMBERS, dtype=np.float32)
        self._pools: dict[tuple[int, int], bytes] = {}

    def tensor(self, shape: TensorShape, kind: int) -> Tensor:
        """Return a tensor of this ggml type with numbers such as trained models have."""
        name = shape.name
        # Decay rates from slow to fast.
        if name.endswith("ssm_dt.bias"):
            return self._spread(shape, low=-4.0, high=-2.0)
        if name.endswith("ssm_a"):
            return self._spread(shape, low=-8.0, high=-0.5)
        if name.endswith(".bias"):
            return self._spread(shape, low=0.0, high=0.0)
        if not shape.is_matrix and ("norm" in name or ".ln" in name or "post_ln" in name):
            return self._spread(shape, low=1.0, high=1.0)
        start = int(np.random.default_rng([self._seed, zlib.crc32(name.encode())]).integers(_POOL_NUMBERS))
        pool = self._pool(shape.shape[0], kind)
        return Tensor(name, shape.shape, kind, _Repeated(pool, start, kind, math.prod(shape.shape)))

    def _pool(self, inputs: int, kind: int) -> bytes:
        """Return the numbers with the standard deviation 1 / sqrt(inputs), which keeps the size of what passes."""
        if (inputs, kind) not in self._pools:
            self._pools[inputs, kind] = quantized(self._numbers * np.float32(inputs**-0.5), kind)
        return self._pools[inputs, kind]

    def _spread(self, shape: TensorShape, *, low: float, high: float) -> Tensor:
        numbers = np.linspace(low, high, math.prod(shape.shape), dtype=np.float32)
        return Tensor(shape.name, shape.shape, _F32, (numbers.tobytes(),))


class _Repeated:
    """The bytes of one tensor, in pieces of at most one pool: the pool from a random block on, again and again."""

    def __init__(self, pool: bytes, start: int, kind: int, n_numbers: int) -> None:
        layout = TENSOR_TYPES[kind]
        self._pool = memoryview(pool)
        self._start = start // layout.block * layout.n_bytes
        self._n_bytes = n_numbers // layout.block * layout.n_bytes

    def __iter__(self) -> Iterator[bytes]:
        start, left = self._start, self._n_bytes
        while left > 0:
            piece = bytes(self._pool[start : start + left])
            yield piece
            left -= len(piece)
            start = 0


def quantized(numbers: npt.NDArray[np.float32], kind: int) -> bytes:
    """Return `numbers` as the engine's own quantizer writes them. Their count must be a multiple of 256."""
    layout = TENSOR_TYPES[kind]
    rows = len(numbers) // _BLOCK_NUMBERS
    out = ctypes.create_string_buffer(len(numbers) // layout.block * layout.n_bytes)
    quantize = _base_library().ggml_quantize_chunk
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p]
    quantize(kind, numbers.ctypes.data, out, 0, rows, _BLOCK_NUMBERS, None)
    return out.raw


def _base_library() -> ctypes.CDLL:
    """Return the engine's library with the quantizers."""
    folder = Path(llama_cpp.__file__).parent / "lib"
    return ctypes.CDLL(str(next(path for path in sorted(folder.iterdir()) if "ggml-base" in path.name)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.gguf")
    parser.add_argument("--size", choices=list(REAL_SIZES), default="35b")
    parser.add_argument("--quant", choices=list(FILE_TYPES), default="q4_k_m")
    parser.add_argument(
        "--mmproj", type=int, metavar="N", help="a vision encoder for models with embeddings of N numbers"
    )
    asked = parser.parse_args()
    path = (
        write_random_mmproj(asked.out, asked.mmproj)
        if asked.mmproj
        else write_random(asked.out, asked.size, asked.quant)
    )
    print(f"{path}: {show_bytes(path.stat().st_size)}")


if __name__ == "__main__":
    main()
