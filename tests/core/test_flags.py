"""Every spelling of a flag finds its option, or a sentence that says why it has no effect here."""

from pathlib import Path

import pytest

from qwendesk.core.app_options import AppOptions
from qwendesk.core.flags import ALIASES, LLAMA_CPP, OLLAMA, VLLM, find_flag, flag_note, search_flag, spellings
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import parse, table

_DATA = Path(__file__).parent.parent / "data" / "llama_server_flags.txt"
SERVER_FLAGS = [line for line in _DATA.read_text(encoding="utf-8").splitlines() if line.startswith("-")]
MODEL_FLAGS = {"--hf-repo", "-hf", "-hfr"}
"""They name the model; command_reader.py reads them."""
OPTIONS = {**table(LoadOptions), **table(GenerationOptions), **table(AppOptions)}


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("-ctk", "type_k"),
        ("-ctv q8_0", "type_v"),
        ("-ngl", "n_gpu_layers"),
        ("-ngl 99", "n_gpu_layers"),
        ("-ot", "override_tensor"),
        ("exps=CPU", "override_tensor"),
        ("exps=CPU", "n_cpu_moe"),
        ("-b", "n_batch"),
        ("-ub", "n_ubatch"),
        ("-c", "n_ctx"),
        ("-t", "n_threads"),
        ("-fa", "flash_attn"),
        ("--no-mmap", "load_mode"),
        ("--mlock", "load_mode"),
        ("--cpu-moe", "n_cpu_moe"),
        ("-ncmoe", "n_cpu_moe"),
        ("--rope-scale", "rope_freq_scale"),
        ("--fit-target", "reserve_gb"),
        ("num_ctx", "n_ctx"),
        ("num_gpu", "n_gpu_layers"),
        ("OLLAMA_KV_CACHE_TYPE", "type_v"),
        ("--max-model-len", "n_ctx"),
        ("--tensor-parallel-size", "tensor_split"),
        ("--gpu-memory-utilization", "reserve_gb"),
    ],
)
def test_a_spelling_finds_its_option(query: str, key: str) -> None:
    found = search_flag(query)
    assert found is not None
    assert found.is_only_a_flag
    assert key in found.keys


@pytest.mark.parametrize("query", ["-np", "-np 1", "--parallel", "--jinja", "--fit", "--fit on", "--host", "-hfd"])
def test_a_flag_without_an_option_has_a_sentence(query: str) -> None:
    assert flag_note(query).endswith(".")


def test_an_option_on_another_tab_is_named() -> None:
    assert flag_note("--temp") == "Temperature is on the tab Sampling."


@pytest.mark.parametrize("query", ["", "memory", "-x", "context length", "--no-such-flag"])
def test_other_words_are_no_flags(query: str) -> None:
    assert search_flag(query) is None
    assert flag_note(query) == ""


def test_an_ordinary_word_finds_more_than_the_flag() -> None:
    """Ollama has a parameter `stop`, but who types "stop" may look for something else."""
    found = search_flag("stop")
    assert found is not None
    assert not found.is_only_a_flag
    assert flag_note("stop") == ""


def test_every_flag_of_llama_server_is_known() -> None:
    assert [name for name in SERVER_FLAGS if find_flag(name, "llama.cpp") is None and name not in MODEL_FLAGS] == []


@pytest.mark.parametrize("options", [LoadOptions, GenerationOptions])
def test_every_name_in_the_settings_table_leads_to_its_option(options: type) -> None:
    for key, entry in table(options).items():
        for program, name in (("llama.cpp", entry.setting.flag), ("ollama", entry.setting.ollama),
                              ("vllm", entry.setting.vllm)):  # fmt: skip
            found = find_flag(name, program)
            if not name or key in ("vision", "preserve_thinking"):
                continue
            assert found is not None, name
            assert key in (found.key, *found.see), name


def test_the_table_names_only_options_and_values_that_exist() -> None:
    for flag in (*LLAMA_CPP, *OLLAMA, *VLLM):
        assert flag.key or flag.note, flag.names
        assert {key for key in (flag.key, *flag.see) if key} <= set(OPTIONS), flag.names
        if flag.value:
            parse(OPTIONS[flag.key], flag.value)
    flags = {entry.setting.flag for entry in OPTIONS.values()}
    assert set(ALIASES) <= flags


def test_spellings_of_one_option() -> None:
    assert {"-c", "--ctx-size", "num_ctx", "--max-model-len", "OLLAMA_CONTEXT_LENGTH"} <= set(spellings("n_ctx"))
