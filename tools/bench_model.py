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
from qwendesk.hardware.estimated_facts import Dimensions, TensorShape, tensor_shapes  # noqa: E402
from qwendesk.hub.gguf import read_facts  # noqa: E402
from qwendesk.hub.gguf_types import FILE_TYPES  # noqa: E402
from tools.bench_vocabulary import vocabulary  # noqa: E402
from tools.gguf_writer import Tensor, Value, write_gguf  # noqa: E402
from tools.qwen_header import REAL_SIZES, model_values, vocabulary_values  # noqa: E402

VOCABULARY_SIZE = 150_000
_F32, _F16, _F16_FILE = 0, 1, 1
_POOL_NUMBERS = 2**22
"""Random numbers drawn once; each tensor reads them from a place of its own, scaled. Speed does not see the repeats."""


_SMALL = Dimensions(
    block_count=8,
    embedding_length=512,
    head_count=8,
    head_count_kv=2,
    key_length=128,
    value_length=128,
    full_attention_interval=4,
    ssm_conv_kernel=4,
    ssm_state_size=64,
    ssm_group_count=4,
    ssm_inner_size=512,
    context_length=262_144,
    vocab_size=VOCABULARY_SIZE,
    expert_count=32,
    expert_used_count=4,
    feed_forward_length=256,
)
SIZES: Mapping[str, Dimensions] = MappingProxyType(
    {
        "tiny": msgspec.structs.replace(
            _SMALL,
            block_count=4,
            embedding_length=256,
            head_count=4,
            key_length=64,
            value_length=64,
            ssm_state_size=32,
            ssm_inner_size=256,
            expert_count=8,
            expert_used_count=2,
            is_tied=True,
        ),
        "small": _SMALL,
        "small-248k": msgspec.structs.replace(_SMALL, vocab_size=REAL_SIZES["35b"].vocab_size),
        "1b": msgspec.structs.replace(
            _SMALL,
            block_count=16,
            embedding_length=1024,
            key_length=256,
            value_length=256,
            ssm_state_size=128,
            ssm_group_count=8,
            ssm_inner_size=2048,
            expert_count=48,
            expert_used_count=8,
        ),
        "4b": msgspec.structs.replace(REAL_SIZES["35b"], block_count=16, expert_count=64, vocab_size=VOCABULARY_SIZE),
        "35b": msgspec.structs.replace(REAL_SIZES["35b"], vocab_size=VOCABULARY_SIZE),
    }
)
"""All that K-quants cut into blocks are multiples of 256. The largest has the dimensions of Qwen3.5-35B-A3B."""
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
    words = vocabulary(dimensions.vocab_size)
    return {
        **model_values(dimensions, f"QwenDesk benchmark model, random weights ({size})", _F16_FILE),
        **vocabulary_values(words),
        "tokenizer.ggml.padding_token_id": words.tokens.index("<|endoftext|>"),
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
        for each in tensor_shapes(self._dimensions):
            yield self._tensor(each)

    def _tensor(self, tensor: TensorShape) -> Tensor:
        if tensor.is_matrix:
            return self._matrix(tensor.name, *tensor.shape)
        # Evenly spread numbers for the recurrence: decay rates from slow to fast, as trained models have.
        if tensor.name.endswith("ssm_dt.bias"):
            return self._spread(tensor, low=-4.0, high=-2.0)
        if tensor.name.endswith("ssm_a"):
            return self._spread(tensor, low=-8.0, high=-0.5)
        if "norm" in tensor.name:
            return self._spread(tensor, low=1.0, high=1.0)
        return self._matrix(tensor.name, *tensor.shape, kind=_F32)

    def _matrix(self, name: str, *shape: int, kind: int = _F16) -> Tensor:
        """Random numbers that keep the size of what passes through: standard deviation 1 / sqrt(inputs)."""
        start = np.random.default_rng([self._seed, zlib.crc32(name.encode())]).integers(_POOL_NUMBERS)
        return Tensor(name, shape, kind, _Drawn(self._scaled_pool(shape[0], kind), int(start), math.prod(shape)))

    def _scaled_pool(self, inputs: int, kind: int) -> npt.NDArray[np.floating]:
        if (inputs, kind) not in self._scaled:
            scaled = self._pool * np.float32(inputs**-0.5)
            self._scaled[inputs, kind] = scaled.astype(np.float16 if kind == _F16 else np.float32)
        return self._scaled[inputs, kind]

    def _spread(self, tensor: TensorShape, *, low: float, high: float) -> Tensor:
        numbers = np.linspace(low, high, math.prod(tensor.shape), dtype=np.float32)
        return Tensor(tensor.name, tensor.shape, _F32, (numbers.tobytes(),))


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
