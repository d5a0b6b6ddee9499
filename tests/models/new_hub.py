"""A made-up Hub on the first day of a made-up Qwen4-27B, in the variants that it may come in."""

import msgspec

from qwendesk.core.model_facts import LAZY_TABLE
from qwendesk.hardware.estimated_facts import Dimensions, tensor_shapes
from tests.hub.hub_server import FakeHub, Hollow
from tools.gguf_writer import ALIGNMENT, Tensor, Value, header_bytes
from tools.hollow_model import FILE_TYPES, tensor_type
from tools.qwen_header import REAL_SIZES, model_values

# What a template of Qwen3.8 has of what tells it from the others.
LIKE_38 = (
    "{%- if enable_thinking %}<think>{% endif %}{%- if preserve_thinking %}{{ reasoning_content }}{% endif %}"
    "{{ reasoning_effort }}<tool_call>\n<function=name>"
)
MADE, CHANGED = "2026-11-20T08:00:00.000Z", "2026-11-21T09:30:00.000Z"
NAME, REPO, BASE = "Qwen4-27B", "unsloth/Qwen4-27B-GGUF", "Qwen/Qwen4-27B"
TAGS = ["gguf", "license:apache-2.0", f"base_model:{BASE}", f"base_model:quantized:{BASE}"]
# The architecture of Qwen3.8-27B, with more and wider layers.
NEW_SIZE = msgspec.structs.replace(
    REAL_SIZES["27b"], block_count=72, embedding_length=5376, head_count=28, feed_forward_length=15_360
)
# The architecture of Qwen3.8-Flash-Next with a table of 11 GB.
WITH_TABLE = msgspec.structs.replace(
    REAL_SIZES["flash-next"], block_count=40, expert_count=96, expert_used_count=6, ngram_rows=120_000_512
)
MMPROJ = header_bytes({"general.architecture": "clip", "general.type": "mmproj"})


def publish(hub: FakeHub, repo: str = REPO, **about: object) -> None:
    """List a repository as one that was made after the catalog."""
    hub.repos.setdefault(repo, {})
    hub.about[repo] = {"createdAt": MADE, "lastModified": CHANGED, "tags": TAGS} | about


def add_qwen4(
    hub: FakeHub,
    repo: str = REPO,
    *,
    dimensions: Dimensions = NEW_SIZE,
    architecture: str = "",
    quants: tuple[str, ...] = ("q4_k_m", "q8_0"),
    template: str = LIKE_38,
) -> None:
    """Publish a repository with a model in these quants and its vision projector.

    `architecture` is written in place of the one that the dimensions have.
    """
    publish(hub, repo)
    for quant in quants:
        hub.add(repo, f"{NAME}-{quant.upper()}.gguf", hollow(dimensions, quant, architecture, template))
    hub.add(repo, "mmproj-F16.gguf", Hollow(MMPROJ, 900_000_000))


def add_with_table(hub: FakeHub, repo: str = REPO) -> None:
    """Publish a model in three shards, as Unsloth splits them: metadata alone, the layers, the table."""
    publish(hub, repo)
    tensors = tensors_of(WITH_TABLE, "q4_k_m")
    table = [each for each in tensors if each.name == LAZY_TABLE]
    parts = [], [each for each in tensors if each not in table], table
    values = values_of(WITH_TABLE, "q4_k_m", "", LIKE_38)
    for number, part in enumerate(parts):
        split = {"split.no": number, "split.count": 3, "split.tensors.count": len(tensors)}
        path = f"Q4_K_M/{NAME}-Q4_K_M-0000{number + 1}-of-00003.gguf"
        hub.add(repo, path, file_of(split if number else values | split, part))


def hollow(dimensions: Dimensions, quant: str, architecture: str = "", template: str = LIKE_38) -> Hollow:
    return file_of(values_of(dimensions, quant, architecture, template), tensors_of(dimensions, quant))


def values_of(dimensions: Dimensions, quant: str, architecture: str, template: str) -> dict[str, Value]:
    values = model_values(dimensions, NAME, FILE_TYPES[quant])
    own = str(values["general.architecture"])
    if architecture:
        values = {key.replace(f"{own}.", f"{architecture}."): value for key, value in values.items()}
        values["general.architecture"] = architecture
    return values | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": ["a", "b", "<think>", "</think>", "<tool_call>"],
        "tokenizer.chat_template": template,
    }


def tensors_of(dimensions: Dimensions, quant: str) -> list[Tensor]:
    shapes = enumerate(tensor_shapes(dimensions))
    return [Tensor(each.name, each.shape, tensor_type(each, quant, index), ()) for index, each in shapes]


def file_of(values: dict[str, Value], tensors: list[Tensor]) -> Hollow:
    header = header_bytes(values, tensors)
    data = sum(-(-tensor.n_bytes // ALIGNMENT) * ALIGNMENT for tensor in tensors)
    return Hollow(header, -(-len(header) // ALIGNMENT) * ALIGNMENT + data)
