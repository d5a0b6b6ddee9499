"""GGUF header -> ModelFacts: what a model file says of itself, in milliseconds and without loading it."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.core.errors import BadModelFile
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.hub.gguf_header import Header, read_header
from qwendesk.hub.gguf_source import ByteSource, damaged, open_file
from qwendesk.hub.gguf_types import quant_name

_DEFAULT_ATTENTION_INTERVAL = 4
"""What llama.cpp takes for the Qwen3.5 architectures when a file does not say."""
_MAX_BLOCKS = 1024
"""llama.cpp itself ends at 512 layers."""
_FIRST_PART = re.compile(r"(?P<name>.+)-00001-of-\d{5}(?P<ending>\.gguf)", re.IGNORECASE)
"""How llama.cpp names the parts of a split model; only the first can be loaded, and holds the metadata."""
_HYBRID_ARCHITECTURES = ("qwen35", "qwen35moe", "qwen3next")


def read_facts(path: Path) -> ModelFacts:
    """The facts of the GGUF file at `path`; of the whole set when it is the first part of a split model.

    Raises BadModelFile, with a sentence for people and the load failure it stands for as `kind`: "not_gguf",
    "truncated", "missing_file", "unsupported_architecture" (sound, but of a kind this engine does not know), or "other"
    (damaged, unreadable). Never hangs, never needs more than
    a few MB of memory, whatever the file holds.
    """
    first = read_part(path)
    found = _FIRST_PART.fullmatch(path.name)
    if first.split_count < 2 or found is None:
        return first
    parts = [first]
    for number in range(2, first.split_count + 1):
        part = path.with_name(f"{found['name']}-{number:05}-of-{first.split_count:05}{found['ending']}")
        if not part.exists():
            sentence = (
                f"{path.name} is part 1 of {first.split_count}, but {part.name} is missing beside it. Download it."
            )
            raise BadModelFile("Part of the model is missing", sentence, "missing_file")
        parts.append(read_part(part))
    return join_parts(parts)


def join_parts(parts: Sequence[ModelFacts]) -> ModelFacts:
    """The facts of a split set from those of its parts, the first part first."""
    return msgspec.structs.replace(
        parts[0],
        file_bytes=sum(part.file_bytes for part in parts),
        needed_bytes=sum(part.needed_bytes for part in parts),
        tensors=tuple(tensor for part in parts for tensor in part.tensors),
    )


def read_part(path: Path) -> ModelFacts:
    """The facts of this one file, also when it is part of a split set. Raises as `read_facts` does."""
    try:
        with open_file(path) as source:
            return facts_of(source, str(path))
    except FileNotFoundError as error:
        sentence = f"There is no file {path}. It may have been moved or deleted: choose it again."
        raise BadModelFile("Model file not found", sentence, "missing_file") from error
    except OSError as error:
        sentence = f"{path.name} cannot be read: {error.strerror or error}."
        raise BadModelFile("Model file not readable", sentence, "other") from error


def facts_of(source: ByteSource, path: str) -> ModelFacts:
    """The facts of a GGUF file from any source of bytes; `path` is only passed on. Raises as `read_header` does."""
    header = read_header(source)
    architecture = header.text("general.architecture")
    of_model = architecture if architecture != "clip" else "clip.vision"
    file_type = header.number("general.file_type") if "general.file_type" in header.values else -1
    block_count = header.number(f"{of_model}.block_count")
    if block_count > _MAX_BLOCKS:
        raise damaged(source.name, f"its header claims {block_count:,} layers")
    return ModelFacts(
        path=path,
        file_bytes=source.size,
        kind=_kind(header, architecture),
        architecture=architecture,
        name=header.text("general.name"),
        basename=header.text("general.basename"),
        size_label=header.text("general.size_label"),
        file_type=file_type,
        quant=quant_name(file_type, source.name),
        block_count=block_count,
        nextn_layers=min(header.number(f"{of_model}.nextn_predict_layers"), block_count),
        context_length=header.number(f"{of_model}.context_length"),
        embedding_length=header.number(f"{of_model}.embedding_length"),
        head_count=header.number(f"{of_model}.attention.head_count"),
        head_count_kv=header.number(f"{of_model}.attention.head_count_kv"),
        key_length=header.number(f"{of_model}.attention.key_length"),
        value_length=header.number(f"{of_model}.attention.value_length"),
        expert_count=header.number(f"{of_model}.expert_count"),
        expert_used_count=header.number(f"{of_model}.expert_used_count"),
        full_attention_interval=_attention_interval(header, architecture),
        ssm_conv_kernel=header.number(f"{of_model}.ssm.conv_kernel"),
        ssm_state_size=header.number(f"{of_model}.ssm.state_size"),
        ssm_group_count=header.number(f"{of_model}.ssm.group_count"),
        ssm_inner_size=header.number(f"{of_model}.ssm.inner_size"),
        vocab_size=header.token_count or header.number(f"{of_model}.vocab_size"),
        projection_dim=_projection_dim(header) if architecture == "clip" else 0,
        projector_type=header.text("clip.projector_type") or header.text("clip.vision.projector_type"),
        patch_size=header.number("clip.vision.patch_size"),
        spatial_merge_size=header.number("clip.vision.spatial_merge_size"),
        tokenizer_model=header.text("tokenizer.ggml.model"),
        tokenizer_pre=header.text("tokenizer.ggml.pre"),
        chat_template=header.text("tokenizer.chat_template"),
        has_think_token=header.has_think_tokens,
        imatrix_file=header.text("quantize.imatrix.file"),
        quantized_by=header.text("general.quantized_by"),
        needed_bytes=header.needed_bytes,
        split_count=header.number("split.count"),
        split_number=header.number("split.no"),
        split_tensors=header.number("split.tensors.count"),
        tensors=header.tensors,
    )


def _kind(header: Header, architecture: str) -> str:
    stated = header.text("general.type")
    if architecture == "clip" or stated == "mmproj":
        return "mmproj"
    if stated == "adapter":
        return "adapter"
    if not architecture or stated not in ("", "model", "vocab"):
        return "other"
    is_vocab = header.token_count and not header.tensors and header.number("split.count") < 2
    return "vocab" if is_vocab else "model"


def _attention_interval(header: Header, architecture: str) -> int:
    stated = header.number(f"{architecture}.full_attention_interval")
    if stated or architecture not in _HYBRID_ARCHITECTURES:
        return stated
    recurrent = header.values.get(f"{architecture}.attention.recurrent_layers")
    if isinstance(recurrent, tuple) and False in recurrent:
        return recurrent.index(False) + 1
    return _DEFAULT_ATTENTION_INTERVAL


def _projection_dim(header: Header) -> int:
    """What the last layer of the projector really puts out; else what the metadata claims.

    `mm.2` is that last layer in Qwen's mergers and in plain two-layer projectors; older converters wrote an
    unrelated number as projection_dim.
    """
    last_bias = next((tensor for tensor in header.tensors if tensor.name == "mm.2.bias"), None)
    return _width(last_bias) or header.number("clip.vision.projection_dim")


def _width(tensor: TensorFacts | None) -> int:
    return tensor.shape[0] if tensor is not None and tensor.shape else 0
