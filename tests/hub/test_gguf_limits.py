"""Headers that the engine does not survive are refused before it sees them; those of real models are not."""

import math
import sys
from pathlib import Path

import pytest

from qwendesk.core.errors import BadModelFile
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engines.load_decision import facts_for
from qwendesk.hub.findings import verdict
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.verify import verify
from tests.gguf_files import mmproj_values, model_values, tensor, write_model
from tests.hub.verified import catalog, gather
from tools.gguf_writer import Value
from tools.hollow_model import write_hollow
from tools.qwen_header import REAL_SIZES

HYBRID: dict[str, Value] = model_values() | {
    "qwen35moe.attention.key_length": 64,
    "qwen35moe.attention.value_length": 64,
    "qwen35moe.attention.layer_norm_rms_epsilon": 1e-6,
    "qwen35moe.expert_count": 8,
    "qwen35moe.expert_used_count": 2,
    "qwen35moe.rope.dimension_count": 32,
    "qwen35moe.rope.dimension_sections": [6, 5, 5, 0],
    "qwen35moe.rope.freq_base": 10_000.0,
    "qwen35moe.ssm.conv_kernel": 4,
    "qwen35moe.ssm.group_count": 2,
    "qwen35moe.ssm.inner_size": 128,
    "qwen35moe.ssm.state_size": 32,
    "qwen35moe.ssm.time_step_rank": 4,
}
VISION = mmproj_values(64) | {
    "clip.vision.embedding_length": 128,
    "clip.vision.attention.head_count": 2,
    "clip.vision.attention.layer_norm_epsilon": 1e-6,
}
IMPOSSIBLE: list[tuple[str, Value]] = [
    # These never end, or end the engine process, with the demo model and llama-cpp-python 0.3.36.
    ("rope.dimension_count", 0),
    ("rope.dimension_count", 31),
    ("rope.dimension_count", 66),
    ("rope.dimension_sections", [0, 0, 0, 0]),
    ("rope.dimension_sections", [-1, 0, 0, 0]),
    ("rope.dimension_sections", [100, 100, 0, 0]),
    ("rope.freq_base", 0.0),
    ("rope.freq_base", -1.0),
    ("rope.freq_base", math.nan),
    ("rope.freq_base", math.inf),
    ("rope.scaling.factor", -1.0),
    ("attention.layer_norm_rms_epsilon", -1.0),
    ("attention.layer_norm_rms_epsilon", math.nan),
    ("block_count", 0),
    ("block_count", 513),
    ("nextn_predict_layers", 5),
    ("expert_count", 0),
    ("expert_count", 1025),
    ("expert_used_count", 0),
    ("expert_used_count", 9),
    ("expert_used_count", [2, 2, 9, 2]),
    ("expert_group_count", 8),
    ("expert_group_count", 3),
    ("attention.head_count", 0),
    ("attention.head_count_kv", 0),
    ("attention.head_count_kv", 3),
    ("attention.key_length", 0),
    ("attention.value_length", 32),
    ("full_attention_interval", 0),
    ("ssm.conv_kernel", 0),
    ("ssm.state_size", 0),
    ("ssm.group_count", 0),
    ("ssm.group_count", 3),
    ("ssm.time_step_rank", 0),
    ("ssm.inner_size", 0),
    ("ssm.inner_size", 96),
]


def written(path: Path, values: dict[str, Value]) -> Path:
    return write_model(path, values, [tensor("token_embd.weight", 64, 4)])


@pytest.mark.parametrize(("key", "value"), IMPOSSIBLE, ids=str)
def test_values_that_crash_the_engine_are_refused(tmp_path: Path, key: str, value: Value) -> None:
    path = written(tmp_path / "model.gguf", HYBRID | {f"qwen35moe.{key}": value})

    with pytest.raises(BadModelFile) as caught:
        read_facts(path)

    assert caught.value.kind == "other"
    # Where two values contradict each other, either is named.
    assert f"qwen35moe.{key.partition('.')[0].partition('_')[0]}" in caught.value.sentence


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention.head_count", 0),
        ("attention.head_count", 3),
        ("attention.layer_norm_epsilon", -1.0),
        ("attention.layer_norm_epsilon", math.nan),
    ],
)
def test_a_vision_projector_is_judged_too(tmp_path: Path, key: str, value: Value) -> None:
    path = written(tmp_path / "mmproj.gguf", VISION | {f"clip.vision.{key}": value})

    with pytest.raises(BadModelFile, match=f"clip.vision.{key}"):
        read_facts(path)


def test_sound_headers_are_read(tmp_path: Path) -> None:
    assert read_facts(written(tmp_path / "model.gguf", HYBRID)).expert_count == 8
    assert read_facts(written(tmp_path / "mmproj.gguf", VISION)).kind == "mmproj"


@pytest.mark.skipif(sys.platform == "win32", reason="NTFS makes a hole only when it is asked to")
@pytest.mark.parametrize("size", REAL_SIZES)
def test_the_values_of_real_models_are_sound(tmp_path: Path, size: str) -> None:
    assert read_facts(write_hollow(tmp_path / "model.gguf", size)).kind == "model"


def test_other_architectures_need_no_rotation(tmp_path: Path) -> None:
    """Some hybrids of others have attention without positions, and models without attention have no heads."""
    values: dict[str, Value] = {
        "general.architecture": "granitehybrid",
        "granitehybrid.block_count": 4,
        "granitehybrid.attention.head_count": 0,
        "granitehybrid.rope.dimension_count": 0,
    }

    assert read_facts(written(tmp_path / "model.gguf", values)).architecture == "granitehybrid"


def test_zero_rotation_is_refused_by_verify_and_load(tmp_path: Path) -> None:
    path = written(tmp_path / "model.gguf", HYBRID | {"qwen35moe.rope.dimension_count": 0})

    (finding,) = (each for each in verify(gather(path), catalog()) if each.severity == "bad")
    failure = facts_for(LoadOptions(model=str(path)))

    assert verdict([finding]) == "bad"
    assert "qwen35moe.rope.dimension_count to 0" in finding.message
    assert isinstance(failure, LoadFailure)
    assert failure.sentence == finding.message
