"""What is known of a model: its hyper-parameters, and what a file says of itself, read from its header alone."""

import msgspec


class Hyperparameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What decides a model's memory, by llama.cpp's names; 0 where the model has none of it."""

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


class TensorFacts(msgspec.Struct, frozen=True, array_like=True):
    """One tensor: name, ggml type name ("Q4_K", "F32"), shape (ggml order, fastest first), size in bytes."""

    name: str
    type: str
    shape: tuple[int, ...]
    n_bytes: int


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of one GGUF file. Counts are plain numbers, sizes are bytes, 0 or "" means the file does not say."""

    path: str
    file_bytes: int
    kind: str
    """"model", "mmproj" (vision projector), "adapter" (LoRA), "vocab" or "other"."""
    architecture: str
    name: str = ""
    basename: str = ""
    size_label: str = ""
    file_type: int = -1
    """general.file_type: llama.cpp's number for the file's main quantisation."""
    quant: str = ""
    """The name people use for it, e.g. "Q4_K_M"; from file_type, refined by the file name ("UD-Q4_K_XL")."""

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
    """Every n-th layer has full attention and a KV cache; 0 or 1: all of them."""
    ssm_conv_kernel: int = 0
    ssm_state_size: int = 0
    ssm_group_count: int = 0
    ssm_inner_size: int = 0
    vocab_size: int = 0
    projection_dim: int = 0
    """mmproj only: the width of the vectors it feeds to the model; must equal embedding_length there."""
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
    imatrix_file: str = ""
    quantized_by: str = ""
    """Who made this file of the model, as converters note it: "Unsloth"."""
    needed_bytes: int = 0
    """Header, padding and tensor data as the header lays them out: the file is at least this long."""
    split_count: int = 0
    split_number: int = 0
    """Which part of a split set this is, from 0."""
    split_tensors: int = 0
    """Tensors in all parts together."""
    tensors: tuple[TensorFacts, ...] = ()

    @property
    def attention_layers(self) -> int:
        """Layers with a KV cache (a quarter of them in Qwen3.5, whose other layers are recurrent)."""
        layers = self.block_count - self.nextn_layers
        return layers // self.full_attention_interval if self.full_attention_interval > 1 else layers

    @property
    def recurrent_layers(self) -> int:
        """Layers with a recurrent state instead of a KV cache."""
        return self.block_count - self.nextn_layers - self.attention_layers if self.ssm_state_size else 0
