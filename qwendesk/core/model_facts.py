"""Facts about a model: its hyperparameters and the content of a GGUF header."""

import re

import msgspec

from qwendesk.core.translation import mark

# Regular expression for a layer's expert tensors after "blk.<layer>."; the same as llama.cpp's for --n-cpu-moe.
EXPERT_TENSORS = r"ffn_(up|down|gate|gate_up)_(ch|)exps"

# The table that llama.cpp can read row by row from the file: the n-grams of Qwen3.8-Flash-Next (26.8 GB).
LAZY_TABLE = "per_layer_token_embd.weight"

BASE_MODEL = mark("This is a base model: it continues text and wasn't trained to chat.")
NO_TEMPLATE = mark("This file has no chat template, so QwenDesk uses a built-in one.")
_TRAINED_TO_CHAT = re.compile(
    r"(?<![a-z])(instruct|chat|it|sft|dpo|assistant)(?![a-z])|^sha256-[0-9a-f]{64}", re.IGNORECASE
)


def is_trained_to_chat(*names: str) -> bool:
    """Return whether the names of a model or its file say so: then it isn't a base model, even without a template.

    The files of Ollama, which have a hash for a name, have their templates beside them.
    """
    return any(map(_TRAINED_TO_CHAT.search, names))


class Hyperparameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The hyperparameters that determine memory use, named as in llama.cpp; 0 if the model has none."""

    block_count: int
    embedding_length: int
    head_count: int
    head_count_kv: int
    key_length: int
    value_length: int
    full_attention_interval: int
    ssm_conv_kernel: int
    ssm_state_size: int
    ssm_group_count: int
    ssm_inner_size: int
    context_length: int
    vocab_size: int
    expert_count: int = 0
    expert_used_count: int = 0
    hyper_connections: int = 0
    """Residual streams side by side, in place of one (Qwen3.8-Flash-Next)."""
    hyper_connection_rank: int = 0
    indexer_head_count: int = 0
    """Heads of the indexer, which chooses the tokens that sparse attention looks at."""
    indexer_key_length: int = 0
    indexer_top_k: int = 0
    ngram_rows: int = 0
    """Rows of the n-gram table, of which each token uses a few."""
    ngram_row_length: int = 0


class TensorFacts(msgspec.Struct, frozen=True, array_like=True):
    """One tensor: name, ggml type such as "Q4_K", shape in ggml order (fastest first), size in bytes."""

    name: str
    type: str
    shape: tuple[int, ...]
    n_bytes: int


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Facts from the header of one GGUF file. 0 or "" means that the header does not say."""

    path: str
    file_bytes: int
    kind: str
    """"model", "draft_head" (a draft head in a file of its own), "mmproj" (vision projector), "adapter" (LoRA), "vocab"
    or "other"."""
    architecture: str
    name: str = ""
    basename: str = ""
    file_type: int = -1
    """general.file_type: llama.cpp's number for the file's main quantisation."""
    quant: str = ""
    """Name of the quantisation, such as "Q4_K_M": from file_type, or from the file name ("UD-Q4_K_XL")."""

    block_count: int = 0
    nextn_layers: int = 0
    context_length: int = 0
    embedding_length: int = 0
    head_count: int = 0
    head_count_kv: int = 0
    key_length: int = 0
    value_length: int = 0
    expert_count: int = 0
    expert_used_count: int = 0
    full_attention_interval: int = 0
    """Every n-th layer has full attention and a KV cache; with 0 or 1, all layers do."""
    sliding_window: int = 0
    """Tokens that a layer with a sliding window looks back."""
    sliding_layers: tuple[bool, ...] = ()
    """For each layer whether it has a sliding window; () if none has."""
    sliding_key_length: int = 0
    """Of the layers with a sliding window, where it differs; 0 where it doesn't."""
    sliding_value_length: int = 0
    layer_heads_kv: tuple[int, ...] = ()
    """`head_count_kv` of each layer where they differ; else ()."""
    shared_kv_layers: int = 0
    """The last so many layers use the KV caches of layers before them."""
    ssm_conv_kernel: int = 0
    ssm_state_size: int = 0
    ssm_group_count: int = 0
    ssm_inner_size: int = 0
    hyper_connections: int = 0
    """Residual streams side by side; 0 for the usual one."""
    indexer_head_count: int = 0
    indexer_key_length: int = 0
    """Length of the indexer's keys, of which sparse attention caches one for each token and layer."""
    indexer_top_k: int = 0
    vocab_size: int = 0
    projection_dim: int = 0
    """mmproj only: length of its output vectors; must equal the model's embedding_length."""
    projector_type: str = ""
    """mmproj only, for example "qwen3vl_merger"."""
    patch_size: int = 0
    """mmproj only: pixels along the side of one patch."""
    spatial_merge_size: int = 0
    """mmproj only: patches along the side of one image token."""

    tokenizer_model: str = ""
    tokenizer_pre: str = ""
    chat_template: str = ""
    has_think_token: bool = False
    """`<think>` and `</think>` are single tokens of the vocabulary."""
    recommended_sampling: tuple[tuple[str, float | int], ...] = ()
    """Names and values of the GenerationOptions that the header recommends."""
    imatrix_file: str = ""
    quantized_by: str = ""
    """Uploader who quantised the file, as the converter noted: "Unsloth"."""
    needed_bytes: int = 0
    """Size of a complete file according to its header: header, padding and tensor data."""
    split_count: int = 0
    split_number: int = 0
    """Number of this shard, from 0."""
    split_tensors: int = 0
    """Number of tensors in all shards together."""
    tensors: tuple[TensorFacts, ...] = ()
    draft_head: "ModelFacts | None" = None
    """The draft head in a file of its own with which the model is loaded."""

    @property
    def can_draft(self) -> bool:
        """Whether there is a draft head: in the model's own file, or in one that is loaded with it."""
        return self.nextn_layers > 0 or self.draft_head is not None

    @property
    def attention_layers(self) -> int:
        """Layers with a KV cache (a quarter of them in Qwen3.5, whose other layers are recurrent)."""
        layers = self.block_count - self.nextn_layers
        return layers // self.full_attention_interval if self.full_attention_interval > 1 else layers

    @property
    def recurrent_layers(self) -> int:
        """Layers with a recurrent state instead of a KV cache."""
        return self.block_count - self.nextn_layers - self.attention_layers if self.ssm_state_size else 0


_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_ARGUMENTS = r"tool_call\s*(?:\.\s*arguments|\[\s*['\"]arguments['\"]\s*\])"
_ITERATES_ARGUMENTS = re.compile(_ARGUMENTS + r"\s*\|\s*items")
_TESTS_ARGUMENTS = re.compile(_ARGUMENTS + r"\s+is\s+(?:not\s+)?(?:mapping|string)")


def is_broken_template(template: str) -> bool:
    """Return True if rendering an earlier tool call fails when its arguments are JSON text, as in OpenAI's protocol."""
    text = _COMMENT.sub("", template)
    return bool(_ITERATES_ARGUMENTS.search(text)) and not _TESTS_ARGUMENTS.search(text)
