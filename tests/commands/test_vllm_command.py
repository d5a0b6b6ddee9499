"""The commands of vLLM, SGLang and MLX name a format that the PC can hold, and a split that suits its cards."""

import json
import shlex
from collections.abc import Sequence

import msgspec
import pytest

from qwendesk.commands.command_writer import CommandKind, command
from qwendesk.commands.gpu_split import Card, CardMaker, best_split
from qwendesk.commands.serving import Serving
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import load_catalog

LOAD = LoadOptions(model="m.gguf", n_ctx=65_536)
ANSWER = GenerationOptions()
A35 = "Qwen/Qwen3.5-35B-A3B"
X16, X4 = 31.5e9, 3.9e9
LONG = msgspec.structs.replace(LOAD, n_ctx=1_010_000, rope_scaling="yarn", rope_freq_scale=0.25, yarn_orig_ctx=262_144)


def serving(*gib: float, repo: str = A35, kv_gib: float = 1.25, maker: CardMaker = "nvidia") -> Serving:
    cards = tuple(Card(round(each * GIB), round((each - 1) * GIB), maker, X16) for each in gib)
    return Serving(base_repo=repo, cards=cards, kv_bytes=round(kv_gib * GIB), n_heads=16, n_kv_heads=2)


def text(made_for: Serving, load: LoadOptions = LOAD, kind: CommandKind = "vllm", answer: GenerationOptions = ANSWER,
         *, windows: bool = False) -> str:  # fmt: skip
    return command(kind, load, answer, made_for, windows=windows)


def words(made_for: Serving, load: LoadOptions = LOAD, kind: CommandKind = "vllm") -> list[str]:
    return shlex.split(text(made_for, load, kind), comments=True)


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
    assert words(serving(*gib))[2] == repo
    assert "fits into" in text(serving(*gib))
    assert "another download" in text(serving(*gib))


def test_a_card_that_is_too_small_is_told_what_fits_instead() -> None:
    """The original has 67 GB, and even the smallest format needs more than a 24 GB card has for it."""
    made = text(serving(24))
    assert words(serving(24))[2] == A35 + "-GPTQ-Int4"
    assert "No format from Qwen fits" in made
    assert "What would fit with this context: Qwen/Qwen3.5-9B, about 17 GB." in made
    assert "Qwen/Qwen3.5-4B" in text(serving(16))
    assert "Use llama-server" in text(serving(8))


def test_without_cards_or_size_nothing_is_claimed() -> None:
    assert "Check that this format fits" in text(serving())
    assert "Check that this format fits" in text(serving(24, repo="someone/model"))
    assert "GGUF" in text(serving(24, repo=""))


def test_address_memory_share_caching_and_parsers_are_set() -> None:
    said = words(serving(24))
    assert (after(said, "--host"), after(said, "--port")) == ("127.0.0.1", "8000")
    assert after(said, "--gpu-memory-utilization") == "0.95"
    assert after(words(serving(24, 8)), "--gpu-memory-utilization") == "0.87", "the share of the fullest card"
    assert after(said, "--max-model-len") == "65536"
    assert "--enable-prefix-caching" in said
    assert after(said, "--reasoning-parser") == "qwen3"
    assert after(said, "--tool-call-parser") == "qwen3_coder"
    assert "--enable-auto-tool-choice" in said


def test_a_stretched_context_has_the_values_of_the_model_card() -> None:
    for kind, flag, variable in (
        ("vllm", "--hf-overrides", "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"),
        ("sglang", "--json-model-override-args", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"),
    ):
        rope = json.loads(after(words(serving(80, 80), LONG, kind), flag))["text_config"]["rope_parameters"]
        assert (rope["rope_type"], rope["factor"], rope["original_max_position_embeddings"]) == ("yarn", 4.0, 262_144)
        assert variable in text(serving(80, 80), LONG, kind)


def test_pcs_that_vllm_does_not_run_on_are_told_so() -> None:
    assert "WSL" in text(serving(24), windows=True)
    assert "WSL" not in text(serving(24))
    assert "ROCm" in text(serving(24, maker="amd"))
    for kind in ("vllm", "sglang"):
        assert "MLX does" in text(serving(64, maker="apple"), kind=kind)


def docker(made: str) -> list[str]:
    (line,) = [line for line in made.splitlines() if line.startswith("# In Docker: ")]
    return shlex.split(line.removeprefix("# In Docker: "))


@pytest.mark.parametrize(("kind", "image", "port"), [("vllm", "vllm/vllm-openai:latest", "8000"),
                                                     ("sglang", "lmsysorg/sglang:latest", "30000")])  # fmt: skip
def test_the_same_command_runs_in_docker(kind: CommandKind, image: str, port: str) -> None:
    outside, inside = words(serving(24, 24), kind=kind), docker(text(serving(24, 24), kind=kind))
    assert inside[:2] == ["docker", "run"]
    assert after(inside, "--gpus") == "all"
    assert after(inside, "-p") == f"127.0.0.1:{port}:{port}", "only this PC reaches it"
    after_image = inside[inside.index(image) + 1 :]
    assert after_image[after_image.index("--host") + 1] == "0.0.0.0"
    assert ["127.0.0.1" if word == "0.0.0.0" else word for word in after_image] == outside[-len(after_image) :]
    assert "In Docker" not in text(serving(24, repo=""), kind=kind), "a container has no file of this PC"
    assert "In Docker" not in text(serving(64, maker="apple"), kind=kind)
    assert ("/dev/kfd" in text(serving(24, maker="amd"), kind=kind)) is (kind == "vllm")


def test_drafts_are_taken_over_or_named() -> None:
    drafting = msgspec.structs.replace(LOAD, speculative="mtp", draft_n_max=2)
    said = words(serving(80), drafting)
    assert json.loads(after(said, "--speculative-config")) == {"method": "mtp", "num_speculative_tokens": 2}
    said = words(serving(80), drafting, "sglang")
    assert (after(said, "--speculative-num-steps"), after(said, "--speculative-num-draft-tokens")) == ("2", "3")
    for kind, flag in (("vllm", "--speculative-config"), ("sglang", "--speculative-algorithm")):
        assert flag not in words(serving(80), kind=kind)
        assert flag in text(serving(80), kind=kind)
        assert "don't work with a pipeline" in text(serving(24, 8), drafting, kind)
        assert flag not in text(serving(24, 8), drafting, kind)


def test_vllms_own_measurement_is_named_for_these_cards() -> None:
    (line,) = [line for line in text(serving(24, 24)).splitlines() if "vllm bench throughput" in line]
    bench = shlex.split(line.partition(": ")[2])
    assert (after(bench, "--model"), after(bench, "--tensor-parallel-size")) == (A35 + "-FP8", "2")


# How the cards share a model


def cards(*links: float | None, nvlinks: Sequence[tuple[int, ...]] = (), sizes: Sequence[int] = ()) -> list[Card]:
    return [
        Card((sizes[each] if sizes else 24) * GIB, None, "nvidia", link, nvlinks[each] if nvlinks else ())
        for each, link in enumerate(links)
    ]


def split(made: list[Card], n_heads: int = 16, n_kv_heads: int = 2) -> tuple[int, int]:
    found = best_split(made, n_heads, n_kv_heads)
    return found.tensor, found.pipeline


def test_fast_links_share_tensors_and_slow_ones_divide_layers() -> None:
    assert split(cards(X16)) == (1, 1)
    assert split(cards(X16, X16)) == (2, 1)
    assert split(cards(*[X16] * 4)) == (4, 1)
    assert split(cards(X16, X4)) == (1, 2)
    assert "3.9 GB/s" in best_split(cards(X16, X4), 16, 2).reason
    assert split(cards(X4, X4, nvlinks=[(1,), (0,)])) == (2, 1), "NVLink doesn't need the slots"


def test_cards_that_differ_divide_layers_whatever_links_them() -> None:
    assert split(cards(X16, X16, sizes=(24, 12), nvlinks=[(1,), (0,)])) == (1, 2)


def test_pairs_on_nvlink_share_tensors_and_take_turns() -> None:
    made = cards(X16, X4, X16, X4, nvlinks=[(2,), (3,), (0,), (1,)])
    found = best_split(made, 16, 2)
    assert (found.tensor, found.pipeline, found.order) == (2, 2, (0, 2, 1, 3))
    said = text(Serving(base_repo=A35, cards=tuple(made), n_heads=16, n_kv_heads=2))
    assert "CUDA_VISIBLE_DEVICES=0,2,1,3" in said
    neighbours = best_split(cards(X16, X4, X16, X4, nvlinks=[(1,), (0,), (3,), (2,)]), 16, 2)
    assert (neighbours.tensor, neighbours.pipeline, neighbours.order) == (2, 2, ())
    assert split(cards(X16, X4, X4, nvlinks=[(1,), (0,), ()])) == (1, 3), "one card has no partner"


def test_tensor_parallel_divides_the_attention_heads() -> None:
    assert split(cards(X16, X16, X16)) == (1, 3)
    assert split(cards(*[X16] * 8), n_heads=28, n_kv_heads=4) == (1, 8)
    assert split(cards(*[X16] * 4), n_heads=28, n_kv_heads=4) == (4, 1)
    assert "28 attention heads" in best_split(cards(*[X16] * 8), 28, 4).reason
    for model in load_catalog().models:
        shape = model.hyperparameters
        assert split(cards(*[X16] * 8), shape.head_count, shape.head_count_kv) == (8, 1), model.id


def test_unknown_links_are_said_to_be_unknown() -> None:
    assert split(cards(None, None)) == (2, 1)
    reason = best_split(cards(None, None), 16, 2).reason
    assert "doesn't know how the cards are linked" in reason
    assert reason.endswith("use a pipeline-parallel size of 2 instead.")
    assert split(cards(None, X4)) == (1, 2), "one slow link is enough"


def test_both_programs_get_the_split_in_their_own_flags() -> None:
    two, three = serving(24, 24), serving(24, 24, 24)
    assert after(words(two), "--tensor-parallel-size") == "2"
    assert "--pipeline-parallel-size" not in words(two)
    assert after(words(three), "--pipeline-parallel-size") == "3"
    assert after(words(two, kind="sglang"), "--tp-size") == "2"
    assert after(words(three, kind="sglang"), "--pp-size") == "3"
    assert "parallel" not in " ".join(words(serving(24)))


# SGLang and MLX


def test_sglang_command_says_what_goes_with_each_request() -> None:
    said = words(serving(24, 24), kind="sglang")
    assert said[:5] == ["python", "-m", "sglang.launch_server", "--model-path", A35 + "-FP8"]
    assert (after(said, "--context-length"), after(said, "--port")) == ("65536", "30000")
    assert after(said, "--mem-fraction-static") == "0.86", "2 of 24 GB are kept to work with"
    made = text(serving(24), kind="sglang", answer=msgspec.structs.replace(ANSWER, enable_thinking=False))
    assert '"presence_penalty": 1.5' in made
    assert '"enable_thinking": false' in made


def test_mlx_command_names_the_widest_format_that_fits_the_mac() -> None:
    big, small = serving(96, maker="apple"), serving(28, maker="apple")
    assert after(words(big, kind="mlx"), "--model") == "mlx-community/Qwen3.5-35B-A3B-8bit"
    assert after(words(small, kind="mlx"), "--model") == "mlx-community/Qwen3.5-35B-A3B-4bit"
    assert "about 19 GB" in text(small, kind="mlx")
    assert "doesn't fit" in text(serving(16, maker="apple"), kind="mlx")
    assert "Macs" not in text(big, kind="mlx")
    said = words(big, kind="mlx")
    assert said[0] == "mlx_lm.server"
    assert (after(said, "--temp"), after(said, "--top-k"), after(said, "--max-tokens")) == ("1", "20", "32768")


def test_mlx_command_says_what_mlx_lacks() -> None:
    with_pictures = msgspec.structs.replace(LOAD, mmproj="mmproj.gguf", vision="gpu")
    made = text(serving(96, maker="apple"), with_pictures, "mlx")
    assert "mlx_vlm.server --model mlx-community/Qwen3.5-35B-A3B-8bit" in made
    assert "mlx_lm.generate" in made
    assert "presence_penalty" in made
    assert "mlx_vlm" not in text(serving(96, maker="apple"), kind="mlx")
    assert "YaRN" in text(serving(96, maker="apple"), LONG, "mlx")
    assert "only on Macs" in text(serving(24), kind="mlx")
    assert "wasn't checked" in text(serving(96, maker="apple", repo="Qwen/Qwen3.5-2B"), kind="mlx")
    assert "doesn't know the original model" in text(serving(96, maker="apple", repo=""), kind="mlx")
