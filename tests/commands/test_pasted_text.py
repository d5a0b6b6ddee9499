"""What pasted text is: a command, a Modelfile, the name of a model, or just text."""

import pytest

from qwendesk.commands.pasted_text import named_model, pasted_kind

COMMANDS = (
    "llama-server -hf unsloth/Qwen3.5-35B-A3B-GGUF:UD-Q4_K_XL -c 65536 --n-cpu-moe 20",
    "./llama-cli -m model.gguf -ngl 99",
    "C:\\llama\\llama-server.exe -m C:\\models\\a.gguf -c 8192",
    "llama-server \\\n  -m a.gguf \\\n  -c 8192",
    "ollama run qwen3.5:35b",
    "vllm serve Qwen/Qwen3.5-35B-A3B --max-model-len 65536",
    "CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3.5-27B",
)
MODELFILES = (
    "FROM ./model.gguf\nPARAMETER num_ctx 8192\n",
    "# mine\nFROM qwen3.5\nSYSTEM You are a pirate.",
)
NAMES = (
    "https://huggingface.co/unsloth/Qwen3.5-35B-A3B-GGUF",
    "hf.co/unsloth/Qwen3.5-35B-A3B-GGUF:Q4_K_M",
    "unsloth/Qwen3.5-35B-A3B-GGUF:UD-Q4_K_XL",
    "unsloth/Qwen3.5-35B-A3B-GGUF",
)
TEXTS = (
    "",
    "and/or",
    "src/main.py:12",
    "https://github.com/ggml-org/llama.cpp",
    "llama-server is slow. Why?",
    "ollama is easier, isn't it?",
    "- a list\n- of things",
    "-v",
    "SELECT name\nFROM users\nWHERE id = 1",
    "FROM python:3.13\nRUN pip install qwendesk\nCMD qwendesk",
    "FROM users\nSYSTEM of a down\nRUN to the hills",
    "From here on, everything is different.\nSYSTEM",
    "What does llama-server -ngl 99 mean?",
    "x" * 10_000,
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text, "command") for text in COMMANDS),
        *((text, "modelfile") for text in MODELFILES),
        *((text, "model") for text in NAMES),
        *((text, "") for text in TEXTS),
    ],
)
def test_pasted_text_is_recognized_only_where_it_is_nothing_else(text: str, kind: str) -> None:
    assert pasted_kind(text) == kind
    assert pasted_kind(f"\n  {text}\n") == kind


@pytest.mark.parametrize(
    ("text", "repo", "quant", "words"),
    [
        (NAMES[2], "unsloth/Qwen3.5-35B-A3B-GGUF", "UD-Q4_K_XL", ""),
        (COMMANDS[0], "unsloth/Qwen3.5-35B-A3B-GGUF", "UD-Q4_K_XL", ""),
        ("llama-server \\   -hf unsloth/Qwen3.5-9B-GGUF:Q8_0 \\   -c 8192", "unsloth/Qwen3.5-9B-GGUF", "Q8_0", ""),
        ("ollama run hf.co/unsloth/Qwen3.5-9B-GGUF:Q8_0", "unsloth/Qwen3.5-9B-GGUF", "Q8_0", ""),
        ("ollama run qwen3.5:35b", "", "", "qwen3.5 35b"),
        ("vllm serve Qwen/Qwen3.5-35B-A3B --max-model-len 65536", "", "", "Qwen3.5-35B-A3B"),
        ("llama-server -m C:\\models\\Qwen3.5-9B-UD-Q4_K_XL.gguf -c 8192", "", "", "Qwen3.5-9B"),
    ],
)
def test_the_model_that_a_command_names_is_found(text: str, repo: str, quant: str, words: str) -> None:
    named = named_model(text)
    assert named is not None
    assert (named.repo, named.quant, named.words) == (repo, quant, words)


@pytest.mark.parametrize("text", ["Qwen3.5 35B", "llama-server -c 8192 -ngl 99", "llama-server is slow. Why?"])
def test_words_and_commands_without_a_model_name_none(text: str) -> None:
    assert named_model(text) is None
