"""Reads ModelFacts from the header of a GGUF file, and refuses values with which the engine would abort.

Each rule corresponds to a line of llama.cpp as of llama-cpp-python 0.3.36: an assertion, a division or a loop that
would crash or block the engine process. Values that llama.cpp itself refuses with an error are not checked here.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from qwendesk.core.architectures import architecture_named
from qwendesk.core.errors import BadModelFile
from qwendesk.core.file_names import Shard
from qwendesk.core.files import reason_of
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.number_format import show_count
from qwendesk.core.presets import read_recommended
from qwendesk.core.translation import mark, tr
from qwendesk.hub.gguf_header import GgufHeader, HeaderValue, read_header
from qwendesk.hub.gguf_source import ByteSource, damaged_header, open_file
from qwendesk.hub.gguf_types import quant_name

# llama.cpp's default for the Qwen3.5 architectures.
_DEFAULT_ATTENTION_INTERVAL = 4
# llama.cpp's default for architectures with sliding windows: in each group of so many layers, the last has none.
_SLIDING_PERIODS = MappingProxyType(
    {
        "gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "olmo2": 4, "afmoe": 4, "exaone-moe": 4,
        "mellum": 4, "plamo3": 8,
    }
)  # fmt: skip
# Layers of gemma3n that have KV caches, which the others use. Headers don't say it (gemma3n.cpp).
_GEMMA3N_CACHES = 20


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
        sliding_key_length=header.number(f"{of_model}.attention.key_length_swa"),
        sliding_value_length=header.number(f"{of_model}.attention.value_length_swa"),
        layer_heads_kv=_layer_heads_kv(header, of_model, block_count),
        shared_kv_layers=_shared_kv_layers(header, architecture, block_count),
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
    if stated or architecture_named(architecture).attention != "hybrid":
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


def _layer_heads_kv(header: GgufHeader, of_model: str, block_count: int) -> tuple[int, ...]:
    """Return the KV heads of each layer; () where all have as many."""
    listed = header.values.get(f"{of_model}.attention.head_count_kv")
    if not isinstance(listed, tuple) or len(listed) < block_count or len(set(listed)) == 1:
        return ()
    return tuple(max(int(heads), 0) for heads in listed[:block_count])


def _shared_kv_layers(header: GgufHeader, architecture: str, block_count: int) -> int:
    if architecture == "gemma3n":
        return max(block_count - _GEMMA3N_CACHES, 0)
    return min(header.number(f"{architecture}.attention.shared_kv_layers"), block_count)


def _projection_dim(header: GgufHeader) -> int:
    """Return the output width of the projector's last layer, or else what the metadata claims.

    The last layer is `mm.2` in Qwen's mergers and in plain two-layer projectors. Older converters wrote an unrelated
    number as projection_dim.
    """
    last_bias = next((tensor for tensor in header.tensors if tensor.name == "mm.2.bias"), None)
    return _width(last_bias) or header.number("clip.vision.projection_dim")


def _width(tensor: TensorFacts | None) -> int:
    return tensor.shape[0] if tensor is not None and tensor.shape else 0


# LLAMA_MAX_LAYERS, the length of llama.cpp's tables with one entry per layer.
MAX_BLOCKS = 512
# LLAMA_MAX_EXPERTS.
_MAX_EXPERTS = 1024
_NOT_NEGATIVE = (
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.group_norm_epsilon",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
)


def crashing_value(header: GgufHeader, architecture: str) -> str:
    """Return a sentence on a value of this model's header that would crash the engine; "" if there is none."""
    values = _Values(header, f"{architecture}.")
    rules = [_fractions(values), _layers(values), _experts(values)]
    known = architecture_named(architecture)
    if known.attention:
        rules += [_heads(values), _rotation(values, has_sections=known.has_mrope)]
    if known.attention == "hybrid":
        rules.append(_recurrent(values))
    return next((reason for rule in rules for reason in rule), "")


def crashing_vision_value(header: GgufHeader) -> str:
    """Return a sentence on a value of this mmproj header that would crash the engine; "" if there is none."""
    values = _Values(header, "clip.vision.")
    width, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    reasons = list(_fractions(values))
    if heads is not None and (heads < 1 or (width or 0) % heads):
        reasons.append(
            values.reason(
                "attention.head_count",
                mark("Its header sets {0} to {1}, but it must divide the embedding length of {2}."),
                show_count(width or 0),
            )
        )
    return next(iter(reasons), "")


_ABOVE_0 = mark("Its header sets {0} to {1}, but it must be above 0.")
_HAS_EXPERTS = mark("Its header sets {0} to {1}, but the model has {2} experts.")


class _Values:
    """The header values of one architecture; keys are given without its name."""

    def __init__(self, header: GgufHeader, prefix: str) -> None:
        self._values, self._prefix = header.values, prefix

    def get(self, key: str) -> HeaderValue | None:
        return self._values.get(self._prefix + key)

    def whole(self, key: str) -> int | None:
        """Return a whole number; None if there is none, or a list with one for each layer."""
        value = self.get(key)
        return int(value) if isinstance(value, int) else None

    def numbers(self, key: str) -> tuple[int | float | bool, ...]:
        """Return the numbers of a list, or a single one; () if there are none."""
        value = self.get(key)
        if isinstance(value, tuple):
            return value
        return (value,) if isinstance(value, int | float) else ()

    def reason(self, key: str, sentence: str, *more: object) -> str:
        """Return a marked sentence about a value: {0} is its key, {1} the value."""
        return tr(sentence, self._prefix + key, self.get(key), *more)


def _fractions(values: _Values) -> Iterator[str]:
    """Yield problems of numbers that must be finite and not negative.

    ggml asserts `eps >= 0.0f` in every norm; a rotation by NaN or infinity makes every number NaN.
    """
    for key in _NOT_NEGATIVE:
        if not all(math.isfinite(number) and number >= 0 for number in values.numbers(key)):
            yield values.reason(key, mark("Its header sets {0} to {1}, but it must be a number of 0 or more."))


def _layers(values: _Values) -> Iterator[str]:
    """Yield problems of the numbers of layers.

    llama_model_base::load_hparams asserts `n_layer_all > 0` and `n_layer_nextn <= n_layer_all`.
    """
    blocks, nextn = values.whole("block_count"), values.whole("nextn_predict_layers") or 0
    if blocks is None:
        return
    if not 0 < blocks <= MAX_BLOCKS:
        yield values.reason(
            "block_count", mark("Its header sets {0} to {1}, but it must be between 1 and {2}."), MAX_BLOCKS
        )
    if nextn > blocks:
        yield values.reason(
            "nextn_predict_layers", mark("Its header sets {0} to {1}, but the model has {2} layers."), blocks
        )


def _experts(values: _Values) -> Iterator[str]:
    """Yield problems of the numbers of experts, all asserted in llama_model_base::load_hparams."""
    count, used = values.whole("expert_count") or 0, max(values.numbers("expert_used_count"), default=0)
    groups, groups_used = values.whole("expert_group_count") or 0, values.whole("expert_group_used_count") or 0
    if count > _MAX_EXPERTS:
        yield values.reason(
            "expert_count", mark("Its header sets {0} to {1}, but it must be at most {2}."), show_count(_MAX_EXPERTS)
        )
    if used > count or (count and used < 1):
        yield values.reason("expert_used_count", _HAS_EXPERTS, show_count(count))
    if groups and groups >= count:
        yield values.reason("expert_group_count", _HAS_EXPERTS, show_count(count))
    elif groups > 1 and (count % groups or not 0 < groups_used < groups):
        yield values.reason(
            "expert_group_count",
            mark("Its header sets {0} to {1}, but {2} of them are used for {3} experts."),
            groups_used,
            show_count(count),
        )


def _heads(values: _Values) -> Iterator[str]:
    """Yield problems of the attention heads.

    llama.cpp asserts that the matrices can be multiplied, and that keys and values of a head have the same length.
    """
    heads, kv_heads = values.whole("attention.head_count"), values.whole("attention.head_count_kv")
    if heads == 0:
        yield values.reason("attention.head_count", _ABOVE_0)
    if heads and kv_heads is not None and (kv_heads < 1 or heads % kv_heads):
        yield values.reason(
            "attention.head_count_kv", mark("Its header sets {0} to {1}, but it must divide the {2} heads."), heads
        )
    key, value = values.whole("attention.key_length"), values.whole("attention.value_length")
    if key == 0:
        yield values.reason("attention.key_length", _ABOVE_0)
    if key is not None and value is not None and key != value:
        yield values.reason(
            "attention.value_length", mark("Its header sets {0} to {1}, but it must be the key length of {2}."), key
        )


def _rotation(values: _Values, *, has_sections: bool) -> Iterator[str]:
    """Yield problems of the rotary position embedding (RoPE).

    With 0 dimensions ggml_compute_forward_rope_flt never returns. It asserts that their number is even and not too
    large. The sum of the sections is a divisor in ggml_mrope_cache_init.
    """
    head = _head_length(values)
    for key in ("rope.dimension_count", "rope.dimension_count_swa"):
        count = values.whole(key)
        if count is not None and (count < 1 or count % 2 or (head and count > head)):
            yield values.reason(
                key, mark("Its header sets {0} to {1}, but it must be an even number up to the length of a head.")
            )
    if values.numbers("rope.freq_base") == (0,):
        yield values.reason("rope.freq_base", _ABOVE_0)
    sections = values.numbers("rope.dimension_sections")
    if has_sections and sections and (min(sections) < 0 or not 0 < sum(sections) <= (head or math.inf)):
        yield values.reason(
            "rope.dimension_sections",
            mark("Its header sets {0} to {1}, but they must add up to at most the length of a head."),
        )


def _head_length(values: _Values) -> int:
    """Return the key length of a head; 0 if the file doesn't say."""
    stated, heads = values.whole("attention.key_length"), values.whole("attention.head_count")
    return stated or ((values.whole("embedding_length") or 0) // heads if heads else 0)


def _recurrent(values: _Values) -> Iterator[str]:
    """Yield problems of the recurrent layers.

    The interval and the number of value heads are divisors; the gated delta rule asserts the rest.
    """
    if values.whole("full_attention_interval") == 0 and values.get("attention.recurrent_layers") is None:
        yield values.reason("full_attention_interval", _ABOVE_0)
    for key in ("ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"):
        if values.whole(key) == 0:
            yield values.reason(key, _ABOVE_0)
    state, inner = values.whole("ssm.state_size"), values.whole("ssm.inner_size")
    heads, groups = values.whole("ssm.time_step_rank"), values.whole("ssm.group_count")
    if heads and groups and heads % groups:
        yield values.reason(
            "ssm.group_count", mark("Its header sets {0} to {1}, but it must divide the {2} value heads."), heads
        )
    if heads and state and inner is not None and inner != heads * state:
        yield values.reason(
            "ssm.inner_size", mark("Its header sets {0} to {1}, but it must be {2} heads of {3}."), heads, state
        )
