"""Write a copy of a model with all its weights as 32-bit floats.

    python tools/f32_model.py MODEL.gguf OUT.gguf

A quantized model is no measure for a GPU's answers: the CPU rounds what it multiplies with quantized weights to 8 bits,
and a GPU does not. With 32-bit weights the CPU rounds nothing, so its logits are the truth that both are held to.
"""

import argparse
import sys
from pathlib import Path

import gguf
import numpy as np

_FROM_FILE = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count")
"""What the reader lists among the metadata, although it is the file's own header."""
_CHANGED = ("general.architecture", "general.file_type", "general.quantization_version")
_ALL_F32 = 0
"""general.file_type of a model whose weights are all F32."""


def write_f32(model: Path, out: Path) -> Path:
    """Write the copy and return its path. Raises ValueError for a file that is no GGUF file."""
    reader = gguf.GGUFReader(model)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name not in (*_FROM_FILE, *_CHANGED):
            kind = field.types[0]
            items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, items)
    writer.add_file_type(_ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL.gguf")
    parser.add_argument("out", type=Path, metavar="OUT.gguf")
    asked = parser.parse_args()
    write_f32(asked.model, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
