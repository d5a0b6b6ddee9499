"""The demo model with an untrained draft head (MTP): a copy of its last attention layer that guesses badly."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from qwendesk.core import paths

_ARCHITECTURE = "qwen35moe"
_HEAD_LAYER, _COPIED_LAYER = 8, 7


def write_demo_with_head(path: Path) -> Path:
    """Write the model to `path` and return it."""
    reader = gguf.GGUFReader(str(paths.demo_model()))
    tensors = {each.name: each for each in reader.tensors}
    writer = gguf.GGUFWriter(str(path), _ARCHITECTURE)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            _add_value(writer, field)
    writer.add_uint32(f"{_ARCHITECTURE}.nextn_predict_layers", 1)
    for name, found in tensors.items():
        writer.add_tensor(name, found.data, raw_dtype=found.tensor_type)
        if name.startswith(f"blk.{_COPIED_LAYER}."):
            copy = name.replace(f"blk.{_COPIED_LAYER}.", f"blk.{_HEAD_LAYER}.")
            writer.add_tensor(copy, found.data, raw_dtype=found.tensor_type)
    width = int(tensors["output_norm.weight"].shape[0])
    half = 0.5 * np.eye(width, dtype=np.float32)
    ones = np.ones(width, np.float32)
    writer.add_tensor(f"blk.{_HEAD_LAYER}.nextn.eh_proj.weight", np.concatenate((half, half), axis=1))
    writer.add_tensor(f"blk.{_HEAD_LAYER}.nextn.enorm.weight", ones)
    writer.add_tensor(f"blk.{_HEAD_LAYER}.nextn.hnorm.weight", ones)
    norm = np.array(tensors["output_norm.weight"].data)
    writer.add_tensor(f"blk.{_HEAD_LAYER}.nextn.shared_head_norm.weight", norm)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_value(writer: gguf.GGUFWriter, field: Any) -> None:
    value, kinds = field.contents(), field.types
    if field.name == f"{_ARCHITECTURE}.block_count":
        value = _HEAD_LAYER + 1
    if field.name == f"{_ARCHITECTURE}.attention.recurrent_layers":
        value = [*value, False]
    if kinds[0] == gguf.GGUFValueType.ARRAY:
        writer.add_key_value(field.name, value, kinds[0], sub_type=kinds[-1])
    else:
        writer.add_key_value(field.name, value, kinds[0])
