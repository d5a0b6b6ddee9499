"""The demo model without its chat template, and with the marks of another family in its vocabulary."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import gguf

from qwendesk.core import paths
from tests.draft_head_model import add_value

MARKS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "gemma": {"<|im_start|>": "<start_of_turn>", "<|im_end|>": "<end_of_turn>"},
        "llama3": {
            "<|im_start|>": "<|start_header_id|>",
            "<|vision_start|>": "<|end_header_id|>",
            "<|im_end|>": "<|eot_id|>",
        },
        "mistral": {"<|im_start|>": "[INST]", "<|vision_start|>": "[/INST]", "<|im_end|>": "</s>"},
        "chatml": {},
        "plain": {"<|im_start|>": "<begin>", "<|im_end|>": "<finish>"},
    }
)
"""What stands in the vocabulary of a family in place of the demo's own tokens."""


def write_templateless(path: Path, family: str, name: str = "Tiny 3M") -> Path:
    """Write a model of that family without a template to `path` and return it. `name` is its name in the header."""
    reader = gguf.GGUFReader(str(paths.demo_model()))
    writer = gguf.GGUFWriter(str(path), "qwen35moe")
    left_out = ("general.architecture", "general.name", "tokenizer.chat_template", "tokenizer.ggml.tokens")
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in left_out:
            add_value(writer, field)
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    writer.add_string("general.name", name)
    writer.add_array("tokenizer.ggml.tokens", [MARKS[family].get(token, token) for token in tokens])
    for each in reader.tensors:
        writer.add_tensor(each.name, each.data, raw_dtype=each.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
