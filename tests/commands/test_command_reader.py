"""What people paste is read as they mean it, and what has no effect here is named with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.commands.command_reader import ReadCommand, read_command
from qwendesk.commands.command_writer import command
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_titles import ModelName
from qwendesk.core.options import LoadOptions
from tests.commands.test_command_writer import ANSWER, EVERY_ANSWER, EVERYTHING, LOAD


def read(text: str) -> ReadCommand:
    found = read_command(text)
    assert found is not None, text
    return found


def remarks(found: ReadCommand) -> dict[str, str]:
    return {remark.words: remark.sentence for remark in found.remarks}


def test_a_llama_server_line_of_a_forum() -> None:
    found = read(
        "./llama-server -m ~/models/Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf --cache-type-k q8_0 -ctv q8_0 -np 1 -ngl 99 -fa on "
        "-c 65536 --jinja --temp 0.6 --top-p .95 --host 0.0.0.0 --port 8080 --n-cpu-moe 16 --no-mmap"
    )
    assert found.program == "llama.cpp"
    assert found.model == ModelName(file="~/models/Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf")
    assert found.load == {
        "type_k": "q8_0", "type_v": "q8_0", "n_gpu_layers": "all", "flash_attn": "on", "n_ctx": 65536,
        "n_cpu_moe": 16, "load_mode": "none",
    }  # fmt: skip
    assert found.answer == {"temperature": 0.6, "top_p": 0.95}
    assert set(remarks(found)) == {"-np 1", "-ngl 99", "--jinja", "--host 0.0.0.0", "--port 8080"}
    assert "one chat at a time" in remarks(found)["-np 1"]


def test_continued_lines_quotes_and_windows_paths() -> None:
    unix = read('llama-server \\\n  -m "/my models/a.gguf" \\\n  -ot "blk\\.1\\d\\..*_exps=CPU,x=CUDA0"')
    assert unix.model == ModelName(file="/my models/a.gguf")
    assert unix.load["override_tensor"] == (r"blk\.1\d\..*_exps=CPU", "x=CUDA0")
    windows = read('.\\llama-server.exe -m "D:\\my models\\a.gguf" ^\n -c 4096')
    assert windows.model == ModelName(file="D:\\my models\\a.gguf")
    assert windows.load["n_ctx"] == 4096
    assert read("llama-server `\n -c 8192").load["n_ctx"] == 8192
    assert read("llama-cli -c 1024 -p 'not closed").load["n_ctx"] == 1024


def test_flags_alone_are_llama_cpps() -> None:
    assert read("-ngl 20 --cpu-moe -fa --rope-scaling yarn --rope-scale 4").load == {
        "n_gpu_layers": 20, "n_cpu_moe": 10_000, "flash_attn": "on", "rope_scaling": "yarn", "rope_freq_scale": 0.25,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("llama-server -hf unsloth/Qwen3.5-35B-A3B-GGUF:UD-Q4_K_XL",
         ModelName(repo="unsloth/Qwen3.5-35B-A3B-GGUF", quant="UD-Q4_K_XL")),
        ("llama-cli --hf-repo a/b --hf-file c.gguf", ModelName(repo="a/b", path="c.gguf")),
        ("ollama run hf.co/unsloth/Qwen3.5-9B-GGUF:Q4_K_M",
         ModelName(repo="unsloth/Qwen3.5-9B-GGUF", quant="Q4_K_M")),
        ("ollama run qwen3.5:35b-a3b", ModelName(words="qwen3.5 35b-a3b")),
        ("vllm serve Qwen/Qwen3.5-35B-A3B-FP8 -tp 2", ModelName(words="Qwen3.5-35B-A3B")),
    ],
)  # fmt: skip
def test_the_model_that_is_named(text: str, model: ModelName) -> None:
    assert read(text).model == model


def test_a_vllm_line() -> None:
    found = read(
        "VLLM_USE_V1=1 vllm serve Qwen/Qwen3.5-27B --max-model-len 64K --tensor-parallel-size=2 --reasoning-parser "
        "qwen3 --gpu-memory-utilization 0.9 --enable-prefix-caching --override-generation-config "
        '\'{"temperature": 0.7, "max_new_tokens": 512}\' --default-chat-template-kwargs \'{"enable_thinking": false}\''
    )
    assert found.load == {"n_ctx": 65536}
    assert found.answer == {"temperature": 0.7, "max_tokens": 512, "enable_thinking": False}
    assert "splits the model by layers" in remarks(found)["--tensor-parallel-size 2"]


def test_ollamas_environment_is_read() -> None:
    found = read("CUDA_VISIBLE_DEVICES=0 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_FLASH_ATTENTION=1 ollama serve")
    assert found.load == {"type_k": "q8_0", "type_v": "q8_0", "flash_attn": "on"}
    assert "Devices" in remarks(found)["CUDA_VISIBLE_DEVICES=0"]


def test_a_modelfile() -> None:
    found = read(
        "# mine\nFROM ./Qwen3.5-9B-Q4_K_M.gguf\nFROM ./mmproj-F16.gguf\nPARAMETER num_ctx 32768\n"
        'PARAMETER stop "<|im_end|>"\nPARAMETER stop "END"\nPARAMETER mirostat 1\n'
        'SYSTEM """\nBe brief.\nBe kind.\n"""\nTEMPLATE """{{ .Prompt }}\nFROM here"""\n'
    )
    assert found.model == ModelName(file="./Qwen3.5-9B-Q4_K_M.gguf")
    assert found.load == {"mmproj": "./mmproj-F16.gguf", "n_ctx": 32768}
    assert found.answer == {"stop": ("<|im_end|>", "END")}
    assert found.system_prompt == "Be brief.\nBe kind."
    assert set(remarks(found)) == {"mirostat 1", "TEMPLATE"}


def test_a_number_of_gpu_layers_says_what_it_ends() -> None:
    for text, words in (("FROM x.gguf\nPARAMETER num_gpu 20\n", "num_gpu 20"), ("llama-server -ngl 20", "-ngl 20")):
        found = read(text)
        assert found.load["n_gpu_layers"] == 20
        assert "no longer chooses" in remarks(found)[words]


def test_bad_values_and_unknown_flags_are_remarks() -> None:
    found = read("llama-server -c many --brand-new 3 --temp")
    assert found.load == {}
    assert "many" in remarks(found)["-c many"]
    assert "doesn't know" in remarks(found)["--brand-new 3"]
    assert "missing" in remarks(found)["--temp"]


@pytest.mark.parametrize(
    "text",
    ["", "How do I start llama-server?", "Why does vllm serve fail", "- a list\n- of things", "read /etc/hosts", "-5"],
)
def test_other_texts_are_no_commands(text: str) -> None:
    assert read_command(text) is None


@pytest.mark.parametrize(("load", "answer"), [(LOAD, ANSWER), (EVERYTHING, EVERY_ANSWER)])
def test_our_own_command_is_read_back(load: LoadOptions, answer: GenerationOptions) -> None:
    found = read(command("llama-server", load, answer))
    for key, value in found.load.items():
        assert value == getattr(load, key), key
    for key, value in found.answer.items():
        # llama-server adds </think> to the message itself, so white space around it is not in the command
        assert key == "thinking_close" or value == getattr(answer, key), key
    left_out = {"model", "aim", "cache_budget_mib", "json_schema"}
    defaults = LoadOptions(model="")
    changed = {key for key in LoadOptions.__struct_fields__ if getattr(load, key) != getattr(defaults, key)}
    assert changed - left_out - {"mmproj", "vision"} <= set(found.load)


@given(st.text(alphabet="-abcflmnt= '\"\\\n0123:/", max_size=60))
def test_no_text_makes_it_fail(text: str) -> None:
    read_command("llama-server " + text)
    read_command("FROM a\n" + text)
