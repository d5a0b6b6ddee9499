"""Writes the trained weights as the two GGUF files that the app ships."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import torch

from tools.demo_model import dimensions as d
from tools.demo_model.rendering import TEMPLATE
from tools.demo_model.tokens import Tokens
from tools.gguf_writer import Tensor, Value, write_gguf

_F32, _F16, _Q8_0 = 0, 1, 8
_FILE_TYPE_Q8_0 = 7
_NAME = "QwenDesk Demo"
_KEPT_WHOLE = re.compile(r"ffn_gate_inp|ssm_conv1d|position_embd")
"""Small matrices that llama.cpp keeps in 32 bits too."""
_IN_16_BITS = re.compile(r"patch_embd.weight")
"""A kernel, which ggml has no 8 bits for."""

Weights = Mapping[str, npt.NDArray[np.float32]]


def export(checkpoint: Path, tokenizer: Path, model: Path, mmproj: Path) -> None:
    """Writes `model` and `mmproj` in Q8_0."""
    trained = {name: value.float().numpy() for name, value in torch.load(checkpoint)["model"].items()}
    with model.open("wb") as file:
        write_gguf(file, _model_values() | _token_values(Tokens(tokenizer)), _tensors(_text_weights(trained)))
    with mmproj.open("wb") as file:
        write_gguf(file, _mmproj_values(), _tensors(_vision_weights(trained)))


def _text_weights(trained: Weights) -> Weights:
    """By their names in GGUF. What decays by -exp(a) in training is written as that product."""
    named = dict(_part(trained, "text."))
    for name, value in named.items():
        if name.endswith("ssm_a"):
            named[name] = -np.exp(value)
    return named


def _vision_weights(trained: Weights) -> Weights:
    named = {name if name.startswith("mm.") else f"v.{name}": value for name, value in _part(trained, "vision.")}
    # llama.cpp shows the encoder a picture as two equal frames, each with a kernel of its own.
    kernel = named["v.patch_embd.weight"].reshape(-1, 3, d.PATCH, d.PATCH) * np.float32(0.5)
    return named | {"v.patch_embd.weight": kernel, "v.patch_embd.weight.1": kernel}


def _part(trained: Weights, start: str) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """The weights below `start`, without what only PyTorch's modules add to their names."""
    for name, value in trained.items():
        if name.startswith(start):
            yield name.removeprefix(start).replace(".attention.", "."), value


def _tensors(weights: Weights) -> list[Tensor]:
    tensors = []
    for name, value in weights.items():
        if value.ndim == 1 or _KEPT_WHOLE.search(name):
            kind, data = _F32, value
        elif _IN_16_BITS.search(name):
            kind, data = _F16, value.astype(np.float16)
        else:
            kind, data = _Q8_0, gguf.quantize(value, gguf.GGMLQuantizationType.Q8_0)
        tensors.append(Tensor(name, value.shape[::-1], kind, [np.ascontiguousarray(data).tobytes()]))
    return tensors


def _model_values() -> dict[str, Value]:
    recurrent = [(layer + 1) % d.FULL_ATTENTION_EVERY != 0 for layer in range(d.N_LAYERS)]
    numbers: dict[str, Value] = {
        "block_count": d.N_LAYERS + 1,
        "nextn_predict_layers": 1,
        "context_length": d.CONTEXT,
        "embedding_length": d.HIDDEN,
        "attention.head_count": d.HEADS,
        "attention.head_count_kv": d.KV_HEADS,
        "attention.key_length": d.HEAD_SIZE,
        "attention.value_length": d.HEAD_SIZE,
        "attention.layer_norm_rms_epsilon": d.EPSILON,
        "attention.recurrent_layers": [*recurrent, False],
        "full_attention_interval": d.FULL_ATTENTION_EVERY,
        "rope.dimension_count": d.ROTATED,
        "rope.dimension_sections": [*d.ROPE_SECTIONS, 0],
        "rope.freq_base": d.ROPE_BASE,
        "expert_count": d.EXPERTS,
        "expert_used_count": d.EXPERTS_USED,
        "expert_feed_forward_length": d.EXPERT_SIZE,
        "expert_shared_feed_forward_length": d.SHARED_EXPERT_SIZE,
        "ssm.conv_kernel": d.CONVOLUTION,
        "ssm.state_size": d.LINEAR_HEAD_SIZE,
        "ssm.group_count": d.LINEAR_KEY_HEADS,
        "ssm.time_step_rank": d.LINEAR_VALUE_HEADS,
        "ssm.inner_size": d.LINEAR_VALUE_HEADS * d.LINEAR_HEAD_SIZE,
    }
    general: dict[str, Value] = {
        "general.architecture": "qwen35moe",
        "general.type": "model",
        "general.name": _NAME,
        "general.license": "apache-2.0",
        "general.size_label": "8x1.6M",
        "general.file_type": _FILE_TYPE_Q8_0,
        "general.quantization_version": 2,
    }
    return general | {f"qwen35moe.{name}": value for name, value in numbers.items()}


def _token_values(tokens: Tokens) -> dict[str, Value]:
    texts, types = zip(*tokens.all(), strict=True)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": tokens.merges(),
        "tokenizer.ggml.eos_token_id": tokens.id("<|im_end|>"),
        "tokenizer.ggml.padding_token_id": tokens.pad,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def _mmproj_values() -> dict[str, Value]:
    numbers: dict[str, Value] = {
        "projection_dim": d.HIDDEN,
        "image_size": d.VISION_GRID * d.PATCH,
        "patch_size": d.PATCH,
        "embedding_length": d.VISION_HIDDEN,
        "feed_forward_length": d.VISION_MLP,
        "block_count": d.VISION_LAYERS,
        "attention.head_count": d.VISION_HEADS,
        "attention.layer_norm_epsilon": d.EPSILON,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "spatial_merge_size": 2,
        "is_deepstack_layers": [False] * d.VISION_LAYERS,
    }
    general: dict[str, Value] = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "general.name": _NAME,
        "general.license": "apache-2.0",
        "general.size_label": "823K",
        "general.file_type": _FILE_TYPE_Q8_0,
        "general.quantization_version": 2,
        "clip.has_vision_encoder": True,
        "clip.projector_type": "qwen3vl_merger",
        "clip.use_gelu": True,
    }
    return general | {f"clip.vision.{name}": value for name, value in numbers.items()}
