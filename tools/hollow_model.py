"""Writes hollow models: a GGUF header with the real dimensions of a Qwen model over a file that only has the length.

    python tools/hollow_model.py --size 35b --quant q4_k_m OUT.gguf

The data region is a hole, so even a 122B costs a few megabytes of disk. The engine plans such a file (no_alloc) with
exactly the caches, states and buffers of the real one. It cannot be used for answers.
"""

import argparse
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402

from qwendesk.core.model_facts import LAZY_TABLE  # noqa: E402
from qwendesk.core.units import show_bytes  # noqa: E402
from qwendesk.hardware.estimated_facts import Dimensions, TensorShape, tensor_shapes  # noqa: E402
from tools.bench_vocabulary import vocabulary  # noqa: E402
from tools.gguf_writer import ALIGNMENT, Tensor, header_bytes  # noqa: E402
from tools.qwen_header import REAL_SIZES, model_values, vocabulary_values  # noqa: E402

_F32, _F16, _Q8_0, _Q4_K, _Q6_K, _IQ4_NL = 0, 1, 8, 12, 14, 20
FILE_TYPES = {"f16": 1, "q8_0": 7, "q4_k_m": 15}


def write_hollow(
    path: Path, size: str | Dimensions, quant: str = "q4_k_m", *, nextn_layers: int = 0, loadable: bool = False
) -> Path:
    """`loadable`: with a generated vocabulary, so that a worker really loads it: all weights are zero then.

    Raises KeyError for an unknown size or quant, OSError when the file system has no files with holes."""
    given = REAL_SIZES[size] if isinstance(size, str) else size
    dimensions = msgspec.structs.replace(given, nextn_layers=nextn_layers)
    tensors = [
        Tensor(each.name, each.shape, tensor_type(each, quant, index), ()) for index, each in _numbered(dimensions)
    ]
    words = vocabulary_values(vocabulary(dimensions.vocab_size)) if loadable else {"tokenizer.ggml.model": "no_vocab"}
    header = header_bytes(
        model_values(dimensions, f"Hollow {dimensions.block_count} layers", FILE_TYPES[quant]) | words, tensors
    )
    data = sum(-(-tensor.n_bytes // ALIGNMENT) * ALIGNMENT for tensor in tensors)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(-(-len(header) // ALIGNMENT) * ALIGNMENT + data)
    return path


def _numbered(dimensions: Dimensions) -> list[tuple[int, TensorShape]]:
    return list(enumerate(tensor_shapes(dimensions)))


def tensor_type(tensor: TensorShape, quant: str, index: int) -> int:
    """About what llama.cpp's quantiser does: Q4_K_M gives the output, and every other down and V matrix, six bits.

    The n-gram table is IQ4_NL in every file, and so are experts whose rows Q4_K can't divide into blocks of 256."""
    if not tensor.is_matrix:
        return _F32
    if tensor.name == LAZY_TABLE or (quant == "q4_k_m" and "_exps" in tensor.name and tensor.shape[0] % 256):
        return _IQ4_NL
    if quant == "f16":
        return _F16
    if quant == "q8_0" or math.prod(tensor.shape) % 256 or tensor.shape[0] % 256:
        return _Q8_0
    is_wide = tensor.name.startswith("output") or (index % 2 and ("ffn_down" in tensor.name or "attn_v" in tensor.name))
    return _Q6_K if is_wide else _Q4_K


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.gguf")
    parser.add_argument("--size", choices=list(REAL_SIZES), default="35b")
    parser.add_argument("--quant", choices=list(FILE_TYPES), default="q4_k_m")
    asked = parser.parse_args()
    path = write_hollow(asked.out, asked.size, asked.quant)
    print(f"{path}: {show_bytes(path.stat().st_size)}, all of it hollow")


if __name__ == "__main__":
    main()
