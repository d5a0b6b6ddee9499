"""The demo model with an untrained draft head (MTP), such a head in a file of its own, and the model without a head.

The untrained head is a copy of the model's last attention layer. It guesses badly.
"""

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from qwendesk.core import paths

_ARCHITECTURE = "qwen35moe"
_HEAD_LAYER, _COPIED_LAYER = 8, 7
_OWN_VALUES = ("general.architecture", f"{_ARCHITECTURE}.nextn_predict_layers")
"""Which the writer adds itself."""


def write_demo_with_head(path: Path) -> Path:
    """Write the model with the untrained head inside to `path` and return it."""
    return _write(path, with_trunk=True)


def write_demo_without_head(path: Path) -> Path:
    """Write the model alone to `path` and return it."""
    return _write(path, with_trunk=True, with_head=False)


def write_demo_head(path: Path, *, tokens_moved: bool = False, n_layers: int = _HEAD_LAYER) -> Path:
    """Write the head alone to `path` and return it. Like those of llama.cpp's converter, it has its own embeddings.

    With `tokens_moved`, its tokens are in another order, as in another model. `n_layers` are those
    of its model.
    """
    return _write(path, with_trunk=False, tokens_moved=tokens_moved, head_layer=n_layers)


def _write(
    path: Path,
    *,
    with_trunk: bool,
    with_head: bool = True,
    tokens_moved: bool = False,
    head_layer: int = _HEAD_LAYER,
) -> Path:
    reader = gguf.GGUFReader(str(paths.demo_model()))
    tensors = {each.name: each for each in reader.tensors if not each.name.startswith(f"blk.{_HEAD_LAYER}.")}
    writer = gguf.GGUFWriter(str(path), _ARCHITECTURE)
    n_layers = head_layer + 1 if with_head else _HEAD_LAYER
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in _OWN_VALUES:
            add_value(writer, field, tokens_moved=tokens_moved, n_layers=n_layers)
    if with_head:
        writer.add_uint32(f"{_ARCHITECTURE}.nextn_predict_layers", 1)
    for name, found in tensors.items():
        if with_trunk or not name.startswith("blk."):
            writer.add_tensor(name, found.data, raw_dtype=found.tensor_type)
        if with_head and name.startswith(f"blk.{_COPIED_LAYER}."):
            copy = name.replace(f"blk.{_COPIED_LAYER}.", f"blk.{head_layer}.")
            writer.add_tensor(copy, found.data, raw_dtype=found.tensor_type)
    if with_head:
        _add_projections(writer, tensors["output_norm.weight"], head_layer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_projections(writer: gguf.GGUFWriter, output_norm: Any, head_layer: int) -> None:
    width = int(output_norm.shape[0])
    half = 0.5 * np.eye(width, dtype=np.float32)
    ones = np.ones(width, np.float32)
    writer.add_tensor(f"blk.{head_layer}.nextn.eh_proj.weight", np.concatenate((half, half), axis=1))
    writer.add_tensor(f"blk.{head_layer}.nextn.enorm.weight", ones)
    writer.add_tensor(f"blk.{head_layer}.nextn.hnorm.weight", ones)
    writer.add_tensor(f"blk.{head_layer}.nextn.shared_head_norm.weight", np.array(output_norm.data))


def add_value(writer: gguf.GGUFWriter, field: Any, *, tokens_moved: bool = False, n_layers: int = 9) -> None:
    """Add a value of another file's header."""
    value, kinds = field.contents(), field.types
    if tokens_moved and field.name == "tokenizer.ggml.tokens":
        value = [value[0], *reversed(value[1:])]
    if field.name == f"{_ARCHITECTURE}.block_count":
        value = n_layers
    if field.name == f"{_ARCHITECTURE}.attention.recurrent_layers":
        value = [*value, *[False] * (n_layers - len(value))][:n_layers]
    if kinds[0] == gguf.GGUFValueType.ARRAY:
        writer.add_key_value(field.name, value, kinds[0], sub_type=kinds[-1])
    else:
        writer.add_key_value(field.name, value, kinds[0])
