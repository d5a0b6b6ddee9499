"""The memory formulas against numbers that llama.cpp printed for real models."""

import msgspec
import pytest

from qwendesk.core import paths
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import MIB
from qwendesk.hardware.model_memory import (
    checkpoint_bytes,
    kv_bytes,
    recurrent_bytes,
    split_weights,
    state_bytes,
    vision_bytes,
    weights_bytes,
)
from qwendesk.hub.gguf import read_facts
from tests.gguf_files import dense_27b, mmproj_facts, moe_35b

OPTIONS = LoadOptions(model="m.gguf")


@pytest.mark.parametrize(
    ("facts", "n_ctx", "mib"),
    [
        (moe_35b(), 32_768, 640),
        (moe_35b(), 54_784, 1070),
        (moe_35b(), 65_536, 1280),
        (dense_27b(), 32_768, 2048),
    ],
)
def test_kv_cache_in_f16_has_2_bytes_for_each_number(facts: ModelFacts, n_ctx: int, mib: int) -> None:
    assert kv_bytes(facts, OPTIONS, n_ctx) == mib * MIB


def test_kv_cache_in_q8_0_has_34_bytes_for_32_numbers() -> None:
    only_k = msgspec.structs.replace(dense_27b(), value_length=0, embedding_length=0)

    assert kv_bytes(only_k, LoadOptions(model="m", type_k="q8_0", type_v="q8_0"), 65_536) == 1088 * MIB


def test_kv_cache_may_have_different_types() -> None:
    small = LoadOptions(model="m", type_k="q4_0", type_v="q4_0")
    halves = (kv_bytes(moe_35b(), OPTIONS, 8192) + kv_bytes(moe_35b(), small, 8192)) // 2

    assert kv_bytes(moe_35b(), LoadOptions(model="m", type_k="f16", type_v="q4_0"), 8192) == halves


def test_a_sliding_window_keeps_itself_and_one_batch() -> None:
    """Of gemma-3-270m the engine logs 27 MiB for 4,096 tokens and 144 MiB for 8,192 with full windows."""
    facts = ModelFacts(
        path="m.gguf", file_bytes=1, kind="model", architecture="gemma3", block_count=18, embedding_length=640,
        head_count=4, head_count_kv=1, key_length=256, value_length=256, sliding_window=512,
        sliding_layers=((True,) * 5 + (False,)) * 3,
    )  # fmt: skip
    assert kv_bytes(facts, OPTIONS, 4096) == 27 * MIB
    assert kv_bytes(facts, OPTIONS, 512) == 9 * MIB
    assert kv_bytes(facts, LoadOptions(model="m", n_ubatch=128), 8192) == 35.25 * MIB
    assert kv_bytes(facts, LoadOptions(model="m", swa_full=True), 8192) == 144 * MIB
    assert checkpoint_bytes(facts, OPTIONS, 4096) == 15 * MIB


@pytest.mark.parametrize(
    ("layers", "shared", "heads", "whole", "mib"),
    [
        # gemma 4 31B: 50 layers x 1,536 tokens x 16 heads x 256, 10 x 32,768 x 4 x 512, keys and values of 2 bytes
        (60, 0, (16, 16, 16, 16, 16, 4), 10, 50 * 24 + 10 * 256),
        # E4B: of 42 layers the first 24 have a cache; 20 windows of 512 and 4 whole ones, 2 heads each
        (42, 18, (2,), 4, 20 * 2 + 4 * 128),
    ],
)
def test_layers_with_windows_may_have_other_heads(
    layers: int, shared: int, heads: tuple[int, ...], whole: int, mib: int
) -> None:
    """llama.cpp makes one cache for layers with a window and one for the others, none for those that share."""
    window = 1_024 if len(heads) > 1 else 512
    facts = ModelFacts(
        path="m.gguf", file_bytes=1, kind="model", architecture="gemma4", block_count=layers, embedding_length=5_376,
        head_count=32, head_count_kv=max(heads), key_length=512, value_length=512, sliding_window=window,
        sliding_layers=((True,) * 5 + (False,)) * (layers // 6), sliding_key_length=256, sliding_value_length=256,
        layer_heads_kv=heads * (layers // 6) if len(heads) > 1 else (), shared_kv_layers=shared,
    )  # fmt: skip

    assert sum(not slides for slides in facts.sliding_layers[: layers - shared]) == whole
    assert kv_bytes(facts, OPTIONS, 32_768) == mib * MIB


def test_the_context_is_rounded_up_as_the_engine_does() -> None:
    assert kv_bytes(moe_35b(), OPTIONS, 1) == kv_bytes(moe_35b(), OPTIONS, 256)


@pytest.mark.parametrize(
    ("facts", "n_sequences", "mib"), [(moe_35b(), 1, 62.81), (dense_27b(), 1, 149.62), (dense_27b(), 3, 448.88)]
)
def test_recurrent_state_has_the_engines_size(facts: ModelFacts, n_sequences: int, mib: float) -> None:
    assert recurrent_bytes(facts, n_sequences) / MIB == pytest.approx(mib, abs=0.01)


def test_each_drafted_token_takes_a_snapshot_of_the_recurrent_state() -> None:
    """As the engine logs it: 0.11 MiB without drafts and 0.45 MiB with three, for the demo model."""
    facts = read_facts(paths.demo_model())
    off, lookup = LoadOptions(model="m"), LoadOptions(model="m", speculative="lookup", draft_n_max=3)
    assert state_bytes(facts, off) == recurrent_bytes(facts)
    assert state_bytes(facts, lookup) / MIB == pytest.approx(0.45, abs=0.01)


def test_a_model_without_recurrent_layers_has_no_such_state() -> None:
    dense = msgspec.structs.replace(dense_27b(), full_attention_interval=0, ssm_state_size=0)

    assert recurrent_bytes(dense) == 0
    assert kv_bytes(dense, OPTIONS, 1024) == 64 * kv_bytes(dense_27b(), OPTIONS, 1024) // 16


def test_next_token_layer_takes_no_memory() -> None:
    extra = TensorFacts("blk.40.attn_q.weight", "Q4_K", (1,), 10**9)
    with_mtp = moe_35b(block_count=41, nextn_layers=1, tensors=(*moe_35b().tensors, extra))

    assert weights_bytes(with_mtp) == weights_bytes(moe_35b())
    assert kv_bytes(with_mtp, OPTIONS, 32_768) == 640 * MIB
    assert recurrent_bytes(with_mtp) == recurrent_bytes(moe_35b())


def test_mmproj_takes_its_weights_and_a_buffer() -> None:
    assert vision_bytes(None) == 0
    assert vision_bytes(mmproj_facts()) == 900_000_000 + 560 * MIB


def test_the_parts_of_the_weights_add_up() -> None:
    facts = read_facts(paths.demo_model())

    parts = split_weights(facts)

    inside = sum(layer.experts + layer.rest for layer in parts.layers)
    assert inside + parts.output + parts.always_in_ram == weights_bytes(facts)
    *layers, head = parts.layers
    assert [layer.has_kv for layer in layers] == [False, False, False, True] * 2
    assert not head.has_kv, "only drafts have a cache for it"
    assert parts.expert_layers == 8


def test_a_shared_output_matrix_is_counted_twice() -> None:
    embeddings = TensorFacts("token_embd.weight", "Q6_K", (8, 8), 1000)
    facts = msgspec.structs.replace(dense_27b(), tensors=(embeddings,))

    parts = split_weights(facts)

    assert (parts.always_in_ram, parts.output) == (1000, 1000)


def test_tensors_the_user_puts_on_the_cpu_are_in_ram() -> None:
    everything = split_weights(moe_35b())

    moved = split_weights(moe_35b(), (r"blk\.[0-9]\.ffn_.*_exps=CPU",))

    experts = sum(layer.experts for layer in everything.layers[:10])
    assert moved.always_in_ram - everything.always_in_ram == experts
    assert moved.layers[9].experts == 0
    assert moved.layers[10].experts == everything.layers[10].experts
