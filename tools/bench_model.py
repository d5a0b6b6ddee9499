"""Makes random-weight models in the architecture of Qwen3.5 mixtures (qwen35moe), for benchmarks.

    python tools/bench_model.py --size small --quant q4_k_m OUT.gguf

The weights mean nothing, but a token costs what it costs in a real model of these dimensions. Written in F16 first,
then quantised by the engine's own quantiser. The same size, quant and seed give the same file. The F16 file lies
under .work/ while it is needed.
"""

# May import llama_cpp although the import law keeps it to the worker: tools are outside the package.

import argparse
import ctypes
import math
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import llama_cpp
import msgspec
import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

from qwendesk.core.paths import demo_model  # noqa: E402
from qwendesk.core.units import show_bytes  # noqa: E402
from qwendesk.hub.gguf import read_facts  # noqa: E402
from qwendesk.hub.gguf_types import FILE_TYPES  # noqa: E402
from tools.bench_vocabulary import vocabulary  # noqa: E402
from tools.gguf_writer import Tensor, Value, write_gguf  # noqa: E402

VOCABULARY_SIZE = 150_000
_ARCHITECTURE = "qwen35moe"
_ATTENTION_INTERVAL = 4
_CONV_KERNEL = 4
_CONTEXT_LENGTH = 262_144
_F32, _F16, _F16_FILE = 0, 1, 1
_POOL_NUMBERS = 2**22
"""Random numbers drawn once; each tensor reads them from a place of its own, scaled. Speed does not see the repeats."""


class Dimensions(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of one model; all that K-quants cut into blocks are multiples of 256."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_length: int
    linear_key_heads: int
    linear_value_heads: int
    linear_length: int
    experts: int
    experts_used: int
    expert_width: int
    has_output_matrix: bool = True
    """False: the token embeddings serve as output too, as in Qwen's small models."""

    @property
    def linear_keys(self) -> int:
        return self.linear_key_heads * self.linear_length

    @property
    def linear_values(self) -> int:
        return self.linear_value_heads * self.linear_length


SIZES: Mapping[str, Dimensions] = MappingProxyType(
    {
        "tiny": Dimensions(
            hidden=256,
            layers=4,
            heads=4,
            kv_heads=2,
            head_length=64,
            linear_key_heads=4,
            linear_value_heads=8,
            linear_length=32,
            experts=8,
            experts_used=2,
            expert_width=256,
            has_output_matrix=False,
        ),
        "small": Dimensions(
            hidden=512,
            layers=8,
            heads=8,
            kv_heads=2,
            head_length=128,
            linear_key_heads=4,
            linear_value_heads=8,
            linear_length=64,
            experts=32,
            experts_used=4,
            expert_width=256,
        ),
        "1b": Dimensions(
            hidden=1024,
            layers=16,
            heads=8,
            kv_heads=2,
            head_length=256,
            linear_key_heads=8,
            linear_value_heads=16,
            linear_length=128,
            experts=48,
            experts_used=8,
            expert_width=256,
        ),
        "4b": Dimensions(
            hidden=2048,
            layers=16,
            heads=16,
            kv_heads=2,
            head_length=256,
            linear_key_heads=16,
            linear_value_heads=32,
            linear_length=128,
            experts=64,
            experts_used=8,
            expert_width=512,
        ),
        # Those of Qwen3.5-35B-A3B.
        "35b": Dimensions(
            hidden=2048,
            layers=40,
            heads=16,
            kv_heads=2,
            head_length=256,
            linear_key_heads=16,
            linear_value_heads=32,
            linear_length=128,
            experts=256,
            experts_used=8,
            expert_width=512,
        ),
    }
)
QUANTS: Mapping[str, int] = MappingProxyType({name.lower(): number for number, name in FILE_TYPES.items()})


def make(path: Path, size: str, quant: str = "q4_k_m", *, seed: int = 0) -> Path:
    """Writes the model of `size` (a key of SIZES) in `quant` (a key of QUANTS) to `path`, whole or not at all.

    Raises KeyError for an unknown size or quant, OSError when there is too little disk space, RuntimeError when the
    quantiser refuses.
    """
    dimensions, file_type = SIZES[size], QUANTS[quant.lower()]
    values = _values(dimensions, size)
    tensors = list(_Weights(dimensions, seed).tensors())
    n_bytes = sum(tensor.n_bytes for tensor in tensors)
    work = ROOT / ".work"
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-model-", dir=work) as folder:
        _check_space(Path(folder), n_bytes if file_type == _F16_FILE else 2 * n_bytes)
        plain, finished = Path(folder) / "f16.gguf", Path(folder) / "finished.gguf"
        with plain.open("wb") as file:
            write_gguf(file, values, tensors)
        if file_type == _F16_FILE:
            finished = plain
        else:
            _quantise(plain, finished, file_type)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.part")
        try:
            shutil.move(finished, beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    return path


def _check_space(folder: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise OSError(f"{show_bytes(n_bytes)} of disk space are needed on the way, and {show_bytes(free)} are free")


def _quantise(source: Path, target: Path, file_type: int) -> None:
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = file_type
    options.nthread = os.cpu_count() or 1
    failed = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(target), ctypes.byref(options))
    if failed:
        raise RuntimeError(f"The engine's quantiser ended with error {failed}; its own lines say why")


def _values(dimensions: Dimensions, size: str) -> dict[str, Value]:
    words = vocabulary(VOCABULARY_SIZE)
    rotated = dimensions.head_length // 4
    third = rotated // 6
    hyperparameters: dict[str, Value] = {
        "block_count": dimensions.layers,
        "context_length": _CONTEXT_LENGTH,
        "embedding_length": dimensions.hidden,
        "attention.head_count": dimensions.heads,
        "attention.head_count_kv": dimensions.kv_heads,
        "attention.key_length": dimensions.head_length,
        "attention.value_length": dimensions.head_length,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e7,
        "rope.dimension_count": rotated,
        "rope.dimension_sections": [rotated // 2 - 2 * third, third, third, 0],
        "expert_count": dimensions.experts,
        "expert_used_count": dimensions.experts_used,
        "expert_feed_forward_length": dimensions.expert_width,
        "expert_shared_feed_forward_length": dimensions.expert_width,
        "ssm.conv_kernel": _CONV_KERNEL,
        "ssm.state_size": dimensions.linear_length,
        "ssm.group_count": dimensions.linear_key_heads,
        "ssm.time_step_rank": dimensions.linear_value_heads,
        "ssm.inner_size": dimensions.linear_values,
        "full_attention_interval": _ATTENTION_INTERVAL,
    }
    return {
        "general.architecture": _ARCHITECTURE,
        "general.type": "model",
        "general.name": f"QwenDesk benchmark model, random weights ({size})",
        "general.file_type": _F16_FILE,
        **{f"{_ARCHITECTURE}.{key}": value for key, value in hyperparameters.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": words.tokens,
        "tokenizer.ggml.token_type": words.types,
        "tokenizer.ggml.merges": words.merges,
        "tokenizer.ggml.eos_token_id": words.tokens.index("<|im_end|>"),
        "tokenizer.ggml.padding_token_id": words.tokens.index("<|endoftext|>"),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": read_facts(demo_model()).chat_template,
    }


class _Weights:
    """The tensors, their random data drawn when they are written."""

    def __init__(self, dimensions: Dimensions, seed: int) -> None:
        self._dimensions = dimensions
        self._seed = seed
        self._pool = np.random.default_rng(seed).standard_normal(_POOL_NUMBERS, dtype=np.float32)
        self._scaled: dict[tuple[int, int], npt.NDArray[np.floating]] = {}

    def tensors(self) -> Iterator[Tensor]:
        sizes = self._dimensions
        yield self._matrix("token_embd.weight", sizes.hidden, VOCABULARY_SIZE)
        yield self._ones("output_norm.weight", sizes.hidden)
        if sizes.has_output_matrix:
            yield self._matrix("output.weight", sizes.hidden, VOCABULARY_SIZE)
        for layer in range(sizes.layers):
            block = f"blk.{layer}"
            yield self._ones(f"{block}.attn_norm.weight", sizes.hidden)
            yield self._ones(f"{block}.post_attention_norm.weight", sizes.hidden)
            has_attention = (layer + 1) % _ATTENTION_INTERVAL == 0
            yield from self._attention(block) if has_attention else self._recurrence(block)
            yield from self._experts(block)

    def _attention(self, block: str) -> Iterator[Tensor]:
        sizes = self._dimensions
        queries, keys = sizes.heads * sizes.head_length, sizes.kv_heads * sizes.head_length
        yield self._matrix(f"{block}.attn_q.weight", sizes.hidden, 2 * queries)
        yield self._matrix(f"{block}.attn_k.weight", sizes.hidden, keys)
        yield self._matrix(f"{block}.attn_v.weight", sizes.hidden, keys)
        yield self._matrix(f"{block}.attn_output.weight", queries, sizes.hidden)
        yield self._ones(f"{block}.attn_q_norm.weight", sizes.head_length)
        yield self._ones(f"{block}.attn_k_norm.weight", sizes.head_length)

    def _recurrence(self, block: str) -> Iterator[Tensor]:
        sizes = self._dimensions
        channels = 2 * sizes.linear_keys + sizes.linear_values
        heads = sizes.linear_value_heads
        yield self._matrix(f"{block}.attn_qkv.weight", sizes.hidden, channels)
        yield self._matrix(f"{block}.attn_gate.weight", sizes.hidden, sizes.linear_values)
        yield self._matrix(f"{block}.ssm_conv1d.weight", _CONV_KERNEL, channels, kind=_F32)
        yield self._spread(f"{block}.ssm_dt.bias", heads, low=-4.0, high=-2.0)
        yield self._spread(f"{block}.ssm_a", heads, low=-8.0, high=-0.5)
        yield self._matrix(f"{block}.ssm_alpha.weight", sizes.hidden, heads)
        yield self._matrix(f"{block}.ssm_beta.weight", sizes.hidden, heads)
        yield self._ones(f"{block}.ssm_norm.weight", sizes.linear_length)
        yield self._matrix(f"{block}.ssm_out.weight", sizes.linear_values, sizes.hidden)

    def _experts(self, block: str) -> Iterator[Tensor]:
        sizes = self._dimensions
        yield self._matrix(f"{block}.ffn_gate_inp.weight", sizes.hidden, sizes.experts, kind=_F32)
        yield self._matrix(f"{block}.ffn_gate_inp_shexp.weight", sizes.hidden, kind=_F32)
        for part in ("gate", "up"):
            yield self._matrix(f"{block}.ffn_{part}_exps.weight", sizes.hidden, sizes.expert_width, sizes.experts)
            yield self._matrix(f"{block}.ffn_{part}_shexp.weight", sizes.hidden, sizes.expert_width)
        yield self._matrix(f"{block}.ffn_down_exps.weight", sizes.expert_width, sizes.hidden, sizes.experts)
        yield self._matrix(f"{block}.ffn_down_shexp.weight", sizes.expert_width, sizes.hidden)

    def _matrix(self, name: str, *shape: int, kind: int = _F16) -> Tensor:
        """Random numbers that keep the size of what passes through: standard deviation 1 / sqrt(inputs)."""
        start = np.random.default_rng([self._seed, zlib.crc32(name.encode())]).integers(_POOL_NUMBERS)
        return Tensor(name, shape, kind, _Drawn(self._scaled_pool(shape[0], kind), int(start), math.prod(shape)))

    def _scaled_pool(self, inputs: int, kind: int) -> npt.NDArray[np.floating]:
        if (inputs, kind) not in self._scaled:
            scaled = self._pool * np.float32(inputs**-0.5)
            self._scaled[inputs, kind] = scaled.astype(np.float16 if kind == _F16 else np.float32)
        return self._scaled[inputs, kind]

    def _ones(self, name: str, length: int) -> Tensor:
        return Tensor(name, (length,), _F32, (np.ones(length, np.float32).tobytes(),))

    def _spread(self, name: str, length: int, *, low: float, high: float) -> Tensor:
        """Evenly spread numbers: decay rates from slow to fast, as trained models have."""
        return Tensor(name, (length,), _F32, (np.linspace(low, high, length, dtype=np.float32).tobytes(),))


class _Drawn:
    """The bytes of one random tensor, in pieces of at most one pool: the pool from `start` on, round and round."""

    def __init__(self, pool: npt.NDArray[np.floating], start: int, count: int) -> None:
        self._pool, self._start, self._count = pool, start, count

    def __iter__(self) -> Iterator[bytes]:
        start, left = self._start, self._count
        while left > 0:
            piece = self._pool[start : start + left]
            yield piece.tobytes()
            left -= len(piece)
            start = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.gguf")
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--quant", choices=list(QUANTS), default="q4_k_m", metavar="NAME", help=", ".join(QUANTS))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    try:
        path = make(asked.out, asked.size, asked.quant, seed=asked.seed)
    except (OSError, RuntimeError) as error:
        sys.exit(f"{asked.out} was not made: {error}.")
    print(f"{path}: {show_bytes(path.stat().st_size)}")


if __name__ == "__main__":
    main()
