"""Reads ModelFacts from the header of a GGUF file, in milliseconds and without loading the model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from qwendesk.core.errors import BadModelFile
from qwendesk.core.file_names import Shard
from qwendesk.core.files import reason_of
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.presets import read_recommended
from qwendesk.core.translation import tr
from qwendesk.hub.gguf_header import GgufHeader, read_header
from qwendesk.hub.gguf_limits import MAX_BLOCKS, crashing_value, crashing_vision_value
from qwendesk.hub.gguf_source import ByteSource, damaged_header, open_file
from qwendesk.hub.gguf_types import quant_name

_DEFAULT_ATTENTION_INTERVAL = 4
"""llama.cpp's default for the Qwen3.5 architectures."""
_HYBRID_ARCHITECTURES = ("qwen35", "qwen35moe", "qwen3next", "qwen4exp")
_SLIDING_PERIODS = MappingProxyType({"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "olmo2": 4})
"""llama.cpp's default for architectures with sliding windows: in each group of so many layers, the last has none."""


def first_shard(path: Path) -> Path:
    """Return shard 1 of the split model that the file at `path` belongs to by its name, if it is there; else `path`."""
    shard = Shard.parse(path.name)
    first = path if shard is None else path.with_name(shard.sibling(1))
    return first if first.is_file() else path


def read_facts(path: Path, read: Callable[[Path], ModelFacts] | None = None) -> ModelFacts:
    """Return the facts of the GGUF file at `path`; of the whole set if it is the first shard of a split model.

    `read` reads one file, `read_file_facts` by default. Raises BadModelFile with a sentence for users and a `kind`,
    which is that of the load failure: "not_gguf", "truncated", "missing_file", "unsupported_architecture" (intact, but
    unknown to this engine), or "other" (damaged, unreadable). Never hangs and never needs more than a few MB of memory,
    whatever the file contains.
    """
    read = read or read_file_facts
    first = read(path)
    shard = Shard.parse(path.name)
    if first.split_count < 2:
        return first
    if shard is None or not shard.is_first or first.split_number:
        raise BadModelFile(tr("One shard of a model"), _not_first(path, first), "other")
    shards = [first]
    for number in range(2, shard.count + 1):
        part = path.with_name(shard.sibling(number))
        if not part.exists():
            sentence = tr("{0} is shard 1 of {1}, but {2} is missing. Download it.", path.name, shard.count, part.name)
            raise BadModelFile(tr("A shard of the model is missing"), sentence, "missing_file")
        shards.append(read(part))
    return join_shards(shards)


def _not_first(path: Path, facts: ModelFacts) -> str:
    """Return why a model can't be loaded from this shard, and what to choose."""
    number, count = facts.split_number + 1, facts.split_count
    shard = Shard.parse(path.name)
    base = path.name.removesuffix(".gguf") if shard is None else shard.base
    first = f"{base}-00001-of-{count:05}.gguf"
    if number == 1:
        sentence = tr("{0} is shard 1 of {1} of a split model, but its name says something else.", path.name, count)
        return f"{sentence} " + tr("Name it {0}, and the other shards in the same way.", first)
    sentence = tr("{0} is shard {1} of {2} of a split model.", path.name, number, count)
    if shard is None:
        return f"{sentence} " + tr("Choose shard 1, whose name ends with {0}.", f"-00001-of-{count:05}.gguf")
    return f"{sentence} " + tr("Shard 1, {0}, isn't in its folder. Download it.", first)


def join_shards(shards: Sequence[ModelFacts]) -> ModelFacts:
    """Return the facts of a split model from those of its shards, in their order."""
    return msgspec.structs.replace(
        shards[0],
        file_bytes=sum(shard.file_bytes for shard in shards),
        needed_bytes=sum(shard.needed_bytes for shard in shards),
        tensors=tuple(tensor for shard in shards for tensor in shard.tensors),
    )


def read_file_facts(path: Path) -> ModelFacts:
    """Return the facts of this one file, which may be a shard. Raises like `read_facts`."""
    try:
        with open_file(path) as source:
            return facts_of(source, str(path))
    except FileNotFoundError as error:
        sentence = tr("{0} could not be found. It may have been moved or deleted: choose it again.", path)
        raise BadModelFile(tr("Model file not found"), sentence, "missing_file") from error
    except OSError as error:
        sentence = tr("{0} can't be read: {1}.", path.name, reason_of(error, path))
        raise BadModelFile(tr("Model file not readable"), sentence, "other") from error


def facts_of(source: ByteSource, path: str) -> ModelFacts:
    """Return the facts of a GGUF file from any source of bytes; `path` is only stored. Raises like `read_header`."""
    header = read_header(source)
    architecture = header.text("general.architecture")
    of_model = architecture if architecture != "clip" else "clip.vision"
    file_type = header.number("general.file_type") if "general.file_type" in header.values else -1
    block_count = header.number(f"{of_model}.block_count")
    kind = _kind(header, architecture)
    if reason := _crashing(header, kind, architecture):
        raise damaged_header(source.name, reason)
    return ModelFacts(
        path=path,
        file_bytes=source.size,
        kind=kind,
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
        sliding_window=header.number(f"{of_model}.attention.sliding_window"),
        sliding_layers=_sliding_layers(header, architecture, block_count),
        ssm_conv_kernel=header.number(f"{of_model}.ssm.conv_kernel"),
        ssm_state_size=header.number(f"{of_model}.ssm.state_size"),
        ssm_group_count=header.number(f"{of_model}.ssm.group_count"),
        ssm_inner_size=header.number(f"{of_model}.ssm.inner_size"),
        hyper_connections=header.number(f"{of_model}.hyper_connection.count"),
        indexer_head_count=header.number(f"{of_model}.attention.indexer.head_count"),
        indexer_key_length=header.number(f"{of_model}.attention.indexer.key_length"),
        indexer_top_k=header.number(f"{of_model}.attention.indexer.top_k"),
        vocab_size=header.token_count or header.number(f"{of_model}.vocab_size"),
        projection_dim=_projection_dim(header) if architecture == "clip" else 0,
        projector_type=header.text("clip.projector_type") or header.text("clip.vision.projector_type"),
        patch_size=header.number("clip.vision.patch_size"),
        spatial_merge_size=header.number("clip.vision.spatial_merge_size"),
        tokenizer_model=header.text("tokenizer.ggml.model"),
        tokenizer_pre=header.text("tokenizer.ggml.pre"),
        chat_template=header.text("tokenizer.chat_template"),
        has_think_token=header.has_think_tokens,
        recommended_sampling=tuple(read_recommended(lambda key: str(header.values.get(key, ""))).items()),
        imatrix_file=header.text("quantize.imatrix.file"),
        quantized_by=header.text("general.quantized_by"),
        needed_bytes=header.needed_bytes,
        split_count=header.number("split.count"),
        split_number=header.number("split.no"),
        split_tensors=header.number("split.tensors.count"),
        tensors=header.tensors,
    )


def _crashing(header: GgufHeader, kind: str, architecture: str) -> str:
    """Return why the engine would crash on this header; "" if it wouldn't, or doesn't read that far."""
    if architecture == "clip":
        return crashing_vision_value(header)
    return crashing_value(header, architecture) if kind in ("model", "draft_head") else ""


def _kind(header: GgufHeader, architecture: str) -> str:
    stated = header.text("general.type")
    if architecture == "clip" or stated == "mmproj":
        return "mmproj"
    if stated == "adapter":
        return "adapter"
    if not architecture or stated not in ("", "model", "vocab"):
        return "other"
    if header.number("split.count") < 2:
        if header.token_count and not header.tensors:
            return "vocab"
        if _is_draft_head(header, architecture):
            return "draft_head"
    return "model"


def _is_draft_head(header: GgufHeader, architecture: str) -> bool:
    """Return whether only the next-token layers of a model are in the file. llama.cpp tells them by the first layer."""
    layers = [tensor.name for tensor in header.tensors if tensor.name.startswith("blk.")]
    has_head = header.number(f"{architecture}.nextn_predict_layers") > 0
    return has_head and bool(layers) and not any(name.startswith("blk.0.") for name in layers)


def _attention_interval(header: GgufHeader, architecture: str) -> int:
    stated = header.number(f"{architecture}.full_attention_interval")
    if stated or architecture not in _HYBRID_ARCHITECTURES:
        return stated
    recurrent = header.values.get(f"{architecture}.attention.recurrent_layers")
    if isinstance(recurrent, tuple) and False in recurrent:
        return recurrent.index(False) + 1
    return _DEFAULT_ATTENTION_INTERVAL


def _sliding_layers(header: GgufHeader, architecture: str, block_count: int) -> tuple[bool, ...]:
    """Return the layers with a sliding window, as llama.cpp finds them; () where it isn't known that it finds any."""
    if not header.number(f"{architecture}.attention.sliding_window"):
        return ()
    stated = header.values.get(f"{architecture}.attention.sliding_window_pattern")
    if isinstance(stated, tuple):
        return tuple(map(bool, stated[:block_count]))
    period = header.number(f"{architecture}.attention.sliding_window_pattern") or _SLIDING_PERIODS.get(architecture, 0)
    return tuple((layer + 1) % period > 0 for layer in range(min(block_count, MAX_BLOCKS))) if period else ()


def _projection_dim(header: GgufHeader) -> int:
    """Return the output width of the projector's last layer, or else what the metadata claims.

    The last layer is `mm.2` in Qwen's mergers and in plain two-layer projectors. Older converters wrote an unrelated
    number as projection_dim.
    """
    last_bias = next((tensor for tensor in header.tensors if tensor.name == "mm.2.bias"), None)
    return _width(last_bias) or header.number("clip.vision.projection_dim")


def _width(tensor: TensorFacts | None) -> int:
    return tensor.shape[0] if tensor is not None and tensor.shape else 0
