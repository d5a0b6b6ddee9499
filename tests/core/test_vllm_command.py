"""The vLLM command names a format that the cards can hold, and a split that suits them."""

import json
import shlex

import msgspec
import pytest

from qwendesk.core.commands import command
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.core.vllm_command import Card

LOAD = LoadOptions(model="m.gguf", n_ctx=65_536)
A35 = "Qwen/Qwen3.5-35B-A3B"


def text(*gib: float, repo: str = A35, load: LoadOptions = LOAD, kv_gib: float = 1.25) -> str:
    cards = [Card(round(each * GIB), round((each - 1) * GIB)) for each in gib]
    return command("vllm", load, GenerationOptions(), base_repo=repo, cards=cards, kv_bytes=round(kv_gib * GIB))


def words(*gib: float, **changes: object) -> list[str]:
    return shlex.split(text(*gib, **changes), comments=True)  # type: ignore[arg-type]


def after(said: list[str], flag: str) -> str:
    return said[said.index(flag) + 1]


@pytest.mark.parametrize(
    ("gib", "repo"),
    [
        ((80, 80), A35),
        ((48,), A35 + "-FP8"),
        ((24, 24), A35 + "-FP8"),
        ((32,), A35 + "-GPTQ-Int4"),
        ((24, 24, 24, 24), A35),
    ],
)
def test_the_best_format_that_fits_is_named(gib: tuple[float, ...], repo: str) -> None:
    assert words(*gib)[2] == repo
    assert "fits" in text(*gib)


def test_a_card_that_is_too_small_is_told_so() -> None:
    """The original has 67 GB, and even the smallest format needs more than a 24 GB card has for it."""
    made = text(24)
    assert words(24)[2] == A35 + "-GPTQ-Int4"
    assert "No format from Qwen fits" in made
    assert "llama-server" in made


def test_without_cards_or_size_nothing_is_claimed() -> None:
    assert "Check that this format fits" in text()
    assert "Check that this format fits" in text(24, repo="someone/model")
    assert "GGUF" in text(24, repo="")


def test_equal_cards_share_tensors_and_others_layers() -> None:
    assert after(words(24, 24), "--tensor-parallel-size") == "2"
    assert "--pipeline-parallel-size" not in words(24, 24)
    assert after(words(24, 24, 24, 24), "--tensor-parallel-size") == "4"
    for gib in ((24, 12), (24, 24, 24)):
        assert after(words(*gib), "--pipeline-parallel-size") == str(len(gib))
        assert "--tensor-parallel-size" not in words(*gib)
    assert "parallel" not in " ".join(words(24))


def test_memory_share_caching_and_parsers_are_set() -> None:
    said = words(24)
    assert after(said, "--gpu-memory-utilization") == "0.95"
    assert after(words(24, 8), "--gpu-memory-utilization") == "0.87", "the share of the fullest card"
    assert "--enable-prefix-caching" in said
    assert after(said, "--reasoning-parser") == "qwen3"
    assert after(said, "--tool-call-parser") == "qwen3_coder"
    assert "--enable-auto-tool-choice" in said


def test_a_stretched_context_has_the_values_of_the_model_card() -> None:
    long = msgspec.structs.replace(
        LOAD, n_ctx=1_010_000, rope_scaling="yarn", rope_freq_scale=0.25, yarn_orig_ctx=262_144
    )
    rope = json.loads(after(words(80, 80, load=long), "--hf-overrides"))["text_config"]["rope_parameters"]
    assert (rope["rope_type"], rope["factor"], rope["original_max_position_embeddings"]) == ("yarn", 4.0, 262_144)
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" in text(80, 80, load=long)
