"""What is copied runs in the other program: every flag is one of its own, every value is what was chosen."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwendesk.commands.command_writer import COMMAND_KINDS, CommandKind, command, difference, for_commands
from qwendesk.commands.serving import Serving
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.presets import preset_of_file
from qwendesk.core.settings import table

_DATA = Path(__file__).parent.parent / "data" / "llama_server_flags.txt"
FLAGS = frozenset(line for line in _DATA.read_text(encoding="utf-8").splitlines() if line.startswith("--"))
NO_FLAG = {
    "aim",
    "break_loops",
    "cache_budget_mib",
    "context_overflow",
    "chat_format",
    "draft_n_max",
    "parallel_tool_calls",
    "speculative",
}
OTHER_FLAGS = {"rope_freq_scale": "--rope-scale"}
LOAD = LoadOptions(
    model="/models/Qwen3.5-35B-A3B-Q4_K_M.gguf", mmproj="/models/mmproj-F16.gguf", n_ctx=65536, n_gpu_layers="all",
    n_cpu_moe=12, type_k="q8_0", type_v="q8_0", load_mode="none", n_ubatch=1024, n_threads=8, vision="gpu",
)  # fmt: skip
ANSWER = GenerationOptions()
EVERYTHING = LoadOptions(
    model="m.gguf", mmproj="p.gguf", aim="speed", n_ctx=4096, n_batch=512, n_ubatch=256, n_threads=4,
    n_threads_batch=6, n_gpu_layers=20, n_cpu_moe=3, override_tensor=(r"blk\.0\.=CPU", "x=CUDA0"), split_mode="row",
    tensor_split=(3.0, 1.0), main_gpu=1, devices=("CUDA0", "CUDA1"), flash_attn="on", type_k="q8_0", type_v="q4_0",
    load_mode="mlock", lazy_mode="on", offload_kqv=False, op_offload=False, swa_full=True, kv_overrides=("a.b=int:1",),
    rope_scaling="yarn", rope_freq_base=1e6, rope_freq_scale=0.5, yarn_ext_factor=1.0, yarn_attn_factor=1.0,
    yarn_beta_fast=32.0, yarn_beta_slow=1.0, yarn_orig_ctx=262144, numa="distribute", chat_template_file="t.jinja",
    vision="cpu", image_min_tokens=64, image_max_tokens=1024, lora=("a.gguf", "b.gguf=0.5"), check_tensors=True,
    cache_budget_mib=2048, chat_states_mib=2000, draft_model="head.gguf",
)  # fmt: skip
EVERY_ANSWER = GenerationOptions(
    temperature=0.6, top_k=10, top_p=0.9, min_p=0.1, typical_p=0.9, repeat_penalty=1.1, frequency_penalty=0.2,
    presence_penalty=0.3, penalty_last_n=128, dry_multiplier=0.8, dry_base=2.0, dry_allowed_length=3,
    dry_penalty_last_n=256, xtc_probability=0.5, xtc_threshold=0.2, seed=7, logit_bias=("15=-1.5", "16=2"),
    stop=("END", "two words"), max_tokens=100, json_schema="{}", grammar="root ::= [a-z]", enable_thinking=False,
    preserve_thinking=True, thinking_budget=512, thinking_close="Enough.\n</think>\n\n", cache_prompt=False,
)  # fmt: skip


def words(load: LoadOptions, answer: GenerationOptions) -> list[str]:
    return shlex.split(command("llama-server", load, answer))


@pytest.mark.parametrize("options", [LoadOptions, GenerationOptions])
def test_every_flag_of_the_table_is_one_of_llama_servers(options: type[msgspec.Struct]) -> None:
    named = {key: entry.setting.flag for key, entry in table(options).items() if key not in NO_FLAG}
    assert {key: flag for key, flag in named.items() if flag not in FLAGS} == {}


def test_command_contains_every_option_that_has_a_flag() -> None:
    said = words(EVERYTHING, EVERY_ANSWER)
    flags = [word for word in said if word.startswith("--")]
    assert [flag for flag in flags if flag not in FLAGS] == []
    for options in (LoadOptions, GenerationOptions):
        for key, entry in table(options).items():
            assert key in NO_FLAG or {entry.setting.flag, OTHER_FLAGS.get(key)} & set(said), key


def test_yarn_is_written_as_the_guides_write_it() -> None:
    load = msgspec.structs.replace(LOAD, rope_scaling="yarn", rope_freq_scale=0.25, yarn_orig_ctx=262_144)
    assert "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 262144" in command("llama-server", load, ANSWER)
    odd = msgspec.structs.replace(load, rope_freq_scale=0.3)
    assert "--rope-freq-scale 0.3 " in command("llama-server", odd, ANSWER)


def test_usual_command() -> None:
    text = command("llama-server", LOAD, ANSWER)
    assert text == (
        "llama-server --model /models/Qwen3.5-35B-A3B-Q4_K_M.gguf --mmproj /models/mmproj-F16.gguf --ctx-size 65536 "
        "--ubatch-size 1024 --threads 8 --n-gpu-layers all --n-cpu-moe 12 --cache-type-k q8_0 --cache-type-v q8_0 "
        "--load-mode none --cache-ram 4096 --temp 1 --top-k 20 --min-p 0 --presence-penalty 1.5 "
        "--reasoning on --jinja --parallel 1"
    )


@pytest.mark.parametrize(
    ("kind", "changes", "is_said"),
    [
        ("llama-server", {"presence_penalty": 1.5}, True),
        ("llama-server", {"presence_penalty": 0, "repeat_penalty": 1.1}, True),
        ("llama-server", {"presence_penalty": 0}, False),
        ("llama-server", {"presence_penalty": 1.5, "penalty_last_n": 256}, False),
        ("ollama", {"presence_penalty": 1.5}, False),
        ("vllm", {"presence_penalty": 1.5}, False),
    ],
)
def test_what_llama_server_makes_of_penalties_is_said(
    kind: CommandKind, changes: dict[str, Any], is_said: bool
) -> None:
    assert ("64 tokens" in difference(kind, GenerationOptions(**changes))) == is_said


def test_lists_and_unusual_values_are_written_as_llama_server_takes_them() -> None:
    said = words(EVERYTHING, EVERY_ANSWER)

    def after(flag: str) -> list[str]:
        return [said[index + 1] for index, word in enumerate(said) if word == flag]

    assert after("--override-tensor") == [r"blk\.0\.=CPU", "x=CUDA0"]
    assert after("--tensor-split") == ["3,1"]
    assert after("--lora") == ["a.gguf"]
    assert after("--lora-scaled") == ["b.gguf:0.5"]
    assert after("--logit-bias") == ["15-1.5", "16+2"]
    assert after("--reverse-prompt") == ["END", "two words"]
    assert after("--reasoning-budget-message") == ["Enough."]
    assert "--no-mmproj-offload" in said


def test_flash_attention_that_is_off_is_written_for_both_programs() -> None:
    load = msgspec.structs.replace(LOAD, flash_attn="off", type_k="f16", type_v="f16")
    said = words(load, ANSWER)
    assert said[said.index("--flash-attn") + 1] == "off"
    assert "--numa" not in said, "off is llama-server's default there, and no value of its own"
    assert "# Set OLLAMA_FLASH_ATTENTION=0 where ollama serve starts." in command("ollama", load, ANSWER).splitlines()


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("r=16.gguf", ["--lora", "r=16.gguf"]),
        ("r=16.gguf=0.5", ["--lora-scaled", "r=16.gguf:0.5"]),
        ("/a=1/b.gguf", ["--lora", "/a=1/b.gguf"]),
        ("b.gguf=1", ["--lora", "b.gguf"]),
        ("b.gguf=nan", ["--lora", "b.gguf=nan"]),
        ("=1", ["--lora", "=1"]),
    ],
)
def test_only_a_number_after_the_last_equals_sign_is_a_lora_scale(item: str, said: list[str]) -> None:
    """`lora_adapter` reads it for the loader too."""
    found = words(msgspec.structs.replace(LOAD, lora=(item,)), ANSWER)
    index = next(i for i, word in enumerate(found) if word.startswith("--lora"))
    assert found[index : index + 2] == said


def test_command_without_pictures_has_no_mmproj() -> None:
    said = words(msgspec.structs.replace(LOAD, vision="off"), ANSWER)
    assert "--no-mmproj" in said
    assert "--mmproj" not in said


@pytest.mark.parametrize(
    ("load", "windows", "unix"),
    [
        ({"override_tensor": (r"blk\.(1|2)\..*=CPU",)}, r'"blk\.(1|2)\..*=CPU"', r"'blk\.(1|2)\..*=CPU'"),
        ({"override_tensor": (r"blk\.1\..*=CPU",)}, r'"blk\.1\..*=CPU"', r"'blk\.1\..*=CPU'"),
        ({"devices": ("CUDA0", "CUDA1")}, '"CUDA0,CUDA1"', "CUDA0,CUDA1"),
        ({"model": "C:\\My models\\"}, '"C:\\My models\\\\"', "'C:\\My models\\'"),
    ],
)  # fmt: skip
def test_an_argument_is_quoted_for_the_shell_that_it_is_copied_for(
    load: dict[str, Any], windows: str, unix: str
) -> None:
    """cmd takes | as a pipe, and PowerShell a comma as a list."""
    options = LoadOptions(**{"model": "a.gguf", **load})
    assert f" {windows} " in command("llama-server", options, ANSWER, windows=True)
    assert f" {unix} " in command("llama-server", options, ANSWER)


def test_command_for_windows_is_quoted_for_windows() -> None:
    load = msgspec.structs.replace(LOAD, model=r"C:\My models\a.gguf")
    assert r'--model "C:\My models\a.gguf" ' in command("llama-server", load, ANSWER, windows=True)


def test_modelfile_has_the_options_that_ollama_knows() -> None:
    lines = command("ollama", LOAD, msgspec.structs.replace(ANSWER, stop=("END",))).splitlines()
    assert lines[:2] == ["FROM /models/Qwen3.5-35B-A3B-Q4_K_M.gguf", "FROM /models/mmproj-F16.gguf"]
    for line in ("num_ctx 65536", "num_thread 8", "presence_penalty 1.5", 'stop "END"'):
        assert f"PARAMETER {line}" in lines
    assert "# Set OLLAMA_KV_CACHE_TYPE=q8_0 where ollama serve starts." in lines
    assert "# Ollama has no parameter for: Evaluation batch size (--ubatch-size)" in lines


def test_modelfile_says_what_ollama_ignores_or_cannot_do() -> None:
    text = command("ollama", LOAD, ANSWER)
    assert "ignores presence_penalty without a word" in text
    assert "LLAMA_ARG_CPU_MOE=1" in text, "Ollama 0.30 keeps the experts of all layers in RAM, if it is told to"
    assert "PARAMETER num_gpu" not in text, "all layers with their experts would not fit"
    assert "--n-cpu-moe" not in text
    on_gpu = msgspec.structs.replace(LOAD, n_cpu_moe=0)
    plain = command("ollama", on_gpu, msgspec.structs.replace(ANSWER, presence_penalty=0.0))
    assert "PARAMETER num_gpu 999" in plain.splitlines()
    assert "ignores" not in plain
    assert "experts" not in plain


def test_modelfile_has_no_context_that_needs_yarn() -> None:
    long = msgspec.structs.replace(
        LOAD, n_ctx=1_000_000, rope_scaling="yarn", rope_freq_scale=0.25, yarn_orig_ctx=262_144
    )
    text = command("ollama", long, ANSWER)
    assert "PARAMETER num_ctx 262144" in text.splitlines()
    assert "no YaRN" in text
    assert "rope" not in text


def test_vllm_command_names_the_unquantised_model() -> None:
    answer = msgspec.structs.replace(ANSWER, enable_thinking=False)
    text = command("vllm", LOAD, answer, Serving(base_repo="Qwen/Qwen3.5-35B-A3B"))
    said = shlex.split(text, comments=True)
    assert said[:5] == ["vllm", "serve", "Qwen/Qwen3.5-35B-A3B", "--max-model-len", "65536"]
    assert json.loads(said[said.index("--override-generation-config") + 1])["presence_penalty"] == 1.5
    assert json.loads(said[said.index("--default-chat-template-kwargs") + 1]) == {"enable_thinking": False}


def test_values_decided_for_auto_are_written_if_known() -> None:
    asked = LoadOptions(model="m.gguf", aim="speed")
    assert for_commands(asked, None) == asked
    assert for_commands(asked, LOAD).n_cpu_moe == 12
    for kind in COMMAND_KINDS:
        assert "auto" not in command(kind, asked, ANSWER).split(), "an open choice is left to the program"


THINKING = "{% if enable_thinking %}<think>{% endif %}"
FILES = {
    "Qwen3.5-35B-A3B": ("qwen35moe", THINKING, {True: (1, 0.95, 20, 1.5), False: (0.7, 0.8, 20, 1.5)}),
    "Qwen3.5-2B": ("qwen35", THINKING, {True: (1, 0.95, 20, 1.5), False: (1, 1, 20, 2)}),
    "Qwen3.6-35B-A3B": ("qwen35moe", THINKING, {True: (1, 0.95, 20, 1.5), False: (0.7, 0.8, 20, 1.5)}),
    "Qwen3.6-27B": ("qwen35", THINKING, {True: (1, 0.95, 20, 0), False: (0.7, 0.8, 20, 1.5)}),
    "Qwen3.8-27B": ("qwen35", THINKING, {True: (1, 0.95, 20, 0), False: (0.7, 0.8, 20, 1.5)}),
    "Qwen3.8-Flash-Next": ("qwen4exp", THINKING, {True: (1, 0.95, 20, 0), False: (0.7, 0.8, 20, 1.5)}),
    "gemma-3-270m": ("gemma3", "", {False: (1, 0.95, 64, 0)}),
    "SmolLM2-135M-Instruct": ("llama", "", {False: (0.8, 0.95, 40, 0)}),
}
"""Architecture, template, and temperature, top_p, top_k and presence penalty with and without thinking."""
GEMMAS_OWN = (("temperature", 1.0), ("top_k", 64), ("top_p", 0.95))


@pytest.mark.parametrize("kind", COMMAND_KINDS)
@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_a_command_has_the_sampling_of_the_models_family(name: str, thinking: bool, kind: CommandKind) -> None:
    architecture, template, expected = FILES[name]
    facts = ModelFacts(
        path=f"/models/{name}-Q4_K_M.gguf", file_bytes=1, kind="model", architecture=architecture, name=name,
        has_think_token=bool(template), chat_template=template,
        recommended_sampling=GEMMAS_OWN if name.startswith("gemma") else (),
    )  # fmt: skip
    answer = preset_of_file(facts, thinking=thinking)

    text = command(kind, LoadOptions(model=facts.path), answer, Serving(base_repo=f"Qwen/{name}"))

    thinks = thinking and bool(template)
    temperature, top_p, top_k, presence = expected[thinks]
    assert answer.enable_thinking is thinks
    said = _said_sampling(kind, text)
    assert said["temperature"] == temperature
    assert (said["top_p"], said["top_k"]) == (top_p, top_k)
    if kind != "mlx":  # it has no flag for penalties
        assert said["presence_penalty"] == presence
    if kind == "llama-server":
        assert f"--reasoning {'on' if thinks else 'off'}" in text


def _said_sampling(kind: CommandKind, text: str) -> dict[str, float]:
    """Return the values in a command, with llama-server's defaults for what it doesn't say."""
    if kind == "ollama":
        pairs = (line.split()[1:] for line in text.splitlines() if line.startswith("PARAMETER"))
        return {key: float(value) for key, value in pairs if key != "stop"}
    if kind in ("vllm", "sglang"):
        (values,) = set(re.findall(r"(\{[^{}]*temperature[^{}]*\})", text))  # once more in vLLM's form for Docker
        return {key: float(value) for key, value in json.loads(values).items()}
    said = shlex.split(text, comments=True)
    flags = {
        "temperature": ("--temp", 0.8), "top_p": ("--top-p", 0.95), "top_k": ("--top-k", 40),
        "presence_penalty": ("--presence-penalty", 0.0),
    }  # fmt: skip
    return {
        key: float(said[said.index(flag) + 1]) if flag in said else default for key, (flag, default) in flags.items()
    }
