"""Made-up GGUF files and model facts with the shapes of real ones."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from qwendesk.core.model_facts import ModelFacts, TensorFacts
from tools.gguf_writer import ALIGNMENT, Tensor, Value, header_bytes, write_gguf

F32, F16, Q4_K, Q8_0 = 0, 1, 12, 8


def tensor(name: str, *shape: int, kind: int = F32) -> Tensor:
    """A tensor of zeros; `shape` in ggml order, `kind` is ggml's type number."""
    empty = Tensor(name, shape, kind, ())
    return Tensor(name, shape, kind, (bytes(empty.n_bytes),))


def model_values(**changes: Value) -> dict[str, Value]:
    """Metadata of a small qwen35moe model. `changes` name keys with "__" for "." ("general__name")."""
    values: dict[str, Value] = {
        "general.architecture": "qwen35moe",
        "general.type": "model",
        "general.name": "Made up",
        "general.file_type": 15,
        "qwen35moe.block_count": 4,
        "qwen35moe.context_length": 32768,
        "qwen35moe.embedding_length": 64,
        "qwen35moe.attention.head_count": 4,
        "qwen35moe.attention.head_count_kv": 2,
        "qwen35moe.full_attention_interval": 4,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen35",
        "tokenizer.ggml.tokens": ["a", "b", "<think>", "</think>"],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.chat_template": "{{ messages }}",
    }
    return values | {key.replace("__", "."): value for key, value in changes.items()}


def mmproj_values(width: int, **changes: Value) -> dict[str, Value]:
    """Metadata of a Qwen picture file whose vectors are `width` wide."""
    values: dict[str, Value] = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "general.file_type": 1,
        "clip.projector_type": "qwen3vl_merger",
        "clip.vision.projection_dim": width,
    }
    return values | {key.replace("__", "."): value for key, value in changes.items()}


def write_model(path: Path, values: Mapping[str, Value], tensors: Sequence[Tensor] = ()) -> Path:
    with path.open("wb") as file:
        write_gguf(file, values, tensors)
    return path


def write_gemma4(path: Path, heads_kv: list[int], n_shared: int) -> Path:
    """A hollow gemma 4 with the caches of a real one, and little else: five of six layers have a window of 512."""
    n_layers, hidden, heads, width = len(heads_kv), 256, 4, 512
    slides = [(layer + 1) % 6 > 0 for layer in range(n_layers)]
    tensors = [Tensor("token_embd.weight", (hidden, 1000), F16, ()), Tensor("output_norm.weight", (hidden,), F32, ())]
    tensors.append(Tensor("rope_freqs.weight", (256,), F32, ()))
    for layer, (slides_here, kv) in enumerate(zip(slides, heads_kv, strict=True)):
        length = 256 if slides_here else 512
        shapes = {
            "attn_norm": (hidden,), "attn_q": (hidden, heads * length), "attn_output": (heads * length, hidden),
            "attn_q_norm": (length,), "post_attention_norm": (hidden,), "ffn_norm": (hidden,),
            "ffn_gate": (hidden, width), "ffn_up": (hidden, width), "ffn_down": (width, hidden),
            "post_ffw_norm": (hidden,), "attn_k": (hidden, kv * length), "attn_k_norm": (length,),
            "attn_v": (hidden, kv * length),
        }  # fmt: skip
        tensors.extend(
            Tensor(f"blk.{layer}.{name}.weight", shape, F16 if len(shape) > 1 else F32, ())
            for name, shape in shapes.items()
        )
    numbers: dict[str, Value] = {
        "block_count": n_layers, "context_length": 131_072, "embedding_length": hidden,
        "embedding_length_per_layer_input": 0, "feed_forward_length": width, "vocab_size": 1000,
        "attention.head_count": heads, "attention.head_count_kv": heads_kv, "attention.shared_kv_layers": n_shared,
        "attention.key_length": 512, "attention.value_length": 512, "attention.key_length_swa": 256,
        "attention.value_length_swa": 256, "attention.sliding_window": 512, "rope.dimension_count": 512,
        "attention.sliding_window_pattern": slides, "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count_swa": 256,
    }  # fmt: skip
    values: dict[str, Value] = {"general.architecture": "gemma4", "tokenizer.ggml.model": "no_vocab"}
    header = header_bytes(values | {f"gemma4.{name}": value for name, value in numbers.items()}, tensors)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + ALIGNMENT + sum(-(-each.n_bytes // ALIGNMENT) * ALIGNMENT for each in tensors))
    return path


def write_cut(path: Path, whole: bytes, n_bytes: int) -> Path:
    """The first `n_bytes` of a file's bytes, as an interrupted download leaves them."""
    path.write_bytes(whole[:n_bytes])
    return path


def raw_header(*, version: int = 3, n_tensors: int = 0, n_values: int = 0, rest: bytes = b"") -> bytes:
    """A header that claims what it likes."""
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_values) + rest


def header_of(values: Mapping[str, Value], tensors: Sequence[Tensor] = ()) -> bytes:
    return header_bytes(values, tensors)


def moe_35b(**changes: object) -> ModelFacts:
    """Qwen3.5-35B-A3B at Q4_K_M: real dimensions, and 20.5 GB of weights like the real file."""
    facts: dict[str, object] = {
        "path": "/models/Qwen3.5-35B-A3B-Q4_K_M.gguf",
        "file_bytes": 22_016_023_168,
        "kind": "model",
        "architecture": "qwen35moe",
        "name": "Qwen3.5-35B-A3B",
        "block_count": 40,
        "context_length": 262_144,
        "embedding_length": 2048,
        "head_count": 16,
        "head_count_kv": 2,
        "key_length": 256,
        "value_length": 256,
        "expert_count": 256,
        "expert_used_count": 8,
        "full_attention_interval": 4,
        "ssm_conv_kernel": 4,
        "ssm_state_size": 128,
        "ssm_group_count": 16,
        "ssm_inner_size": 4096,
        "vocab_size": 248_320,
        "tensors": _tensors(40, hidden=2048, expert_elements=512 * 2048 * 256, rest_bytes=45_000_000),
    }
    return ModelFacts(**(facts | changes))  # type: ignore[arg-type]


def dense_27b(**changes: object) -> ModelFacts:
    """Qwen3.5-27B at about Q4_K_M: real dimensions, weights of about 16 GB."""
    facts: dict[str, object] = {
        "path": "/models/Qwen3.5-27B-Q4_K_M.gguf",
        "file_bytes": 16_740_812_704,
        "kind": "model",
        "architecture": "qwen35",
        "name": "Qwen3.5-27B",
        "block_count": 64,
        "context_length": 262_144,
        "embedding_length": 5120,
        "head_count": 24,
        "head_count_kv": 4,
        "key_length": 256,
        "value_length": 256,
        "full_attention_interval": 4,
        "ssm_conv_kernel": 4,
        "ssm_state_size": 128,
        "ssm_group_count": 16,
        "ssm_inner_size": 6144,
        "vocab_size": 248_320,
        "tensors": _tensors(64, hidden=5120, expert_elements=0, rest_bytes=235_000_000),
    }
    return ModelFacts(**(facts | changes))  # type: ignore[arg-type]


def mmproj_facts(width: int = 2048, **changes: object) -> ModelFacts:
    """A picture file as large as the real ones in F16 (0.84 GB)."""
    facts: dict[str, object] = {
        "path": "/models/mmproj-F16.gguf",
        "file_bytes": 900_000_000,
        "kind": "mmproj",
        "architecture": "clip",
        "embedding_length": 1152,
        "projection_dim": width,
        "projector_type": "qwen3vl_merger",
        "quant": "F16",
        "tensors": (TensorFacts("v.patch_embd.weight", "F16", (450_000_000,), 900_000_000),),
    }
    return ModelFacts(**(facts | changes))  # type: ignore[arg-type]


def _tensors(blocks: int, *, hidden: int, expert_elements: int, rest_bytes: int) -> tuple[TensorFacts, ...]:
    """Tensors by size alone: experts in Q4_K with every other down matrix in Q6_K, the rest of a layer in one lump."""
    ends = 248_320 * hidden * 210 // 256
    tensors = [
        TensorFacts("token_embd.weight", "Q4_K", (hidden, 248_320), ends * 144 // 210),
        TensorFacts("output.weight", "Q6_K", (hidden, 248_320), ends),
    ]
    q4_bytes, q6_bytes = expert_elements * 144 // 256, expert_elements * 210 // 256
    for block in range(blocks):
        tensors.append(TensorFacts(f"blk.{block}.attn_qkv.weight", "Q4_K", (rest_bytes,), rest_bytes))
        down = ("down", "Q6_K", q6_bytes) if block % 2 else ("down", "Q4_K", q4_bytes)
        for part, kind, n_bytes in (("gate", "Q4_K", q4_bytes), ("up", "Q4_K", q4_bytes), down):
            if expert_elements:
                tensors.append(TensorFacts(f"blk.{block}.ffn_{part}_exps.weight", kind, (expert_elements,), n_bytes))
    return tuple(tensors)
