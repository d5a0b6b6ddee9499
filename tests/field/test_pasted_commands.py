"""Command lines as they are copied from READMEs, forums, chats and terminals."""

from typing import Any

import pytest
from PySide6.QtCore import QMimeData

from qwendesk.commands.command_reader import ReadCommand, read_command
from qwendesk.commands.pasted_text import named_model, pasted_kind
from qwendesk.core.flags import flag_note
from tests.field.grid import SERVER, Kind, Way, case
from tests.window_desk import Desk

PASTED_COMMAND = Kind(
    "A pasted command line isn't read, because of what stands around it or because of the program that it is for",
    dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), "takes no command lines of other programs"),
)
REPO = "unsloth/Qwen3.5-9B-GGUF"
LINE = f"llama-server -hf {REPO}:Q4_K_M -c 16384 --temp 0.6"
LOAD, ANSWER = {"n_ctx": 16384}, {"temperature": 0.6}

# What stands around a line of llama-server. Each means the same.
AROUND = {
    "a prompt of bash": f"user@pc:~$ {LINE}",
    "a prompt of bash in a folder": f"me@my-pc:~/src/llama.cpp/build$ ./bin/{LINE}",
    "a prompt of root": f"root@4f2c9e:/app# {LINE}",
    "a prompt of Fedora": f"[user@host llama.cpp]$ {LINE}",
    "a prompt with an environment": f"(venv) user@pc:~$ {LINE}",
    "a prompt of zsh": f"user@macbook ~ % {LINE}",
    "a short prompt": f"$ {LINE}",
    "an arrow": f"❯ {LINE}",
    "a prompt of PowerShell": f"PS C:\\Users\\me> .\\{LINE}",
    "a prompt of cmd": f"C:\\Users\\me\\llama>{LINE}",
    "a fence": f"```\n{LINE}\n```",
    "a fence with a language": f"```bash\n{LINE}\n```",
    "single backticks": f"`{LINE}`",
    "a fence in a quotation": f"> ```\n> {LINE}\n> ```",
    "a comment above": f"# 9B on my 8 GB card\n{LINE}",
    "a shebang": f"#!/bin/bash\n\n{LINE}",
    "a comment behind": f"{LINE} # works fine",
    "comments between": f"llama-server \\\n  -hf {REPO}:Q4_K_M \\\n  # as long as it fits\n  -c 16384 \\\n  --temp 0.6",
    "comments behind the backslashes":
        f"llama-server \\  # the server\n  -hf {REPO}:Q4_K_M -c 16384 \\ # 16K\n  --temp 0.6",
    "a folder first": f"cd ~/llama.cpp && ./build/bin/{LINE}",
    "a folder and a semicolon": f"cd /opt/llama; {LINE}",
    "an exported variable": f"export LLAMA_CACHE=/data/models\n{LINE}",
    "output below": f"user@pc:~$ {LINE}\nggml_cuda_init: found 1 CUDA devices:\nbuild: 8137 (b5a0e)",
    "curly quotes": LINE.replace(f"{REPO}:Q4_K_M", f"“{REPO}:Q4_K_M”"),
    "curly single quotes": LINE.replace(f"{REPO}:Q4_K_M", f"‘{REPO}:Q4_K_M’"),
    "no-break spaces": LINE.replace(" ", "\u00a0"),
    "narrow spaces": LINE.replace(" -c ", "\u202f-c\u2009"),
    "dashes": LINE.replace("--temp", "—temp").replace(" -c ", " –c "),
    "non-breaking hyphens": LINE.replace(" -c ", " \u2011c "),
    "a zero-width space": "\u200b" + LINE,
    "lines without backslashes": f"llama-server\n  -hf {REPO}:Q4_K_M\n  -c 16384\n  --temp 0.6",
    "Windows lines": LINE.replace(" -c", " ^\r\n -c"),
    "docker": f"docker run --gpus all -p 8080:8080 -v ~/models:/models ghcr.io/ggml-org/llama.cpp:server-cuda "
              f"-hf {REPO}:Q4_K_M -c 16384 --temp 0.6",
    "docker in lines": "docker run --rm -it \\\n  --gpus=all \\\n  -v /srv/models:/models \\\n  -p 8080:8080 \\\n"
                       f"  ghcr.io/ggml-org/llama.cpp:server-vulkan \\\n  -hf {REPO}:Q4_K_M \\\n  -c 16384 --temp 0.6",
    "docker with variables": "sudo docker run -d --name llama -e LLAMA_ARG_CTX_SIZE=16384 --env "
                             f"LLAMA_ARG_HF_REPO={REPO}:Q4_K_M --device /dev/dri "
                             "ghcr.io/ggml-org/llama.cpp:server-rocm --temp 0.6",
    "docker with a program": "docker run ghcr.io/ggml-org/llama.cpp:full-cuda --server "
                             f"-hf {REPO}:Q4_K_M -c 16384 --temp 0.6",
    "podman": "podman run --device nvidia.com/gpu=all ghcr.io/ggerganov/llama.cpp:server "
              f"-hf {REPO}:Q4_K_M -c 16384 --temp 0.6",
}  # fmt: skip

# Lines of other programs: the model, load options and generation options.
OTHERS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "hf download": (f"hf download {REPO} Qwen3.5-9B-Q4_K_M.gguf --local-dir models",
                    f"{REPO}/Qwen3.5-9B-Q4_K_M.gguf", {}, {}),
    "hf download of a quant": (f'hf download {REPO} --include "*Q4_K_M*" "mmproj-F16.gguf"', f"{REPO}:Q4_K_M", {}, {}),
    "huggingface-cli": (f"huggingface-cli download {REPO} --local-dir . --include '*UD-Q4_K_XL*'",
                        f"{REPO}:UD-Q4_K_XL", {}, {}),
    "pip first": (f"pip install -U huggingface_hub\nhf download {REPO}", REPO, {}, {}),
    "SGLang": ("python -m sglang.launch_server --model-path Qwen/Qwen3.5-27B --tp-size 2 --context-length 65536 "
               "--port 30000", "Qwen3.5-27B", {"n_ctx": 65536}, {}),
    "SGLang's new line": ("sglang serve --model-path Qwen/Qwen3.5-27B-FP8 --tp 2 --mem-fraction-static 0.8",
                          "Qwen3.5-27B", {}, {}),
    "SGLang in docker": ("docker run --gpus all --shm-size 32g -p 30000:30000 lmsysorg/sglang:latest python3 -m "
                         "sglang.launch_server --model-path Qwen/Qwen3.5-27B --context-length 32768",
                         "Qwen3.5-27B", {"n_ctx": 32768}, {}),
    "vLLM in docker": ("docker run --runtime nvidia --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai:latest --model "
                       "Qwen/Qwen3.5-27B --max-model-len 65536", "Qwen3.5-27B", {"n_ctx": 65536}, {}),
    "MLX": ("mlx_lm.server --model mlx-community/Qwen3.5-9B-4bit --port 8080 --temp 0.6 --top-p 0.95", "Qwen3.5-9B", {},
            {"temperature": 0.6, "top_p": 0.95}),
    "MLX with a prompt": ('mlx_lm.generate --model mlx-community/Qwen3.5-9B-MLX-4bit --prompt "Hi there" '
                          "--max-tokens 256",
                          "Qwen3.5-9B", {}, {"max_tokens": 256}),
    "MLX by Python": ("python -m mlx_lm.chat --model mlx-community/Qwen3.5-35B-A3B-8bit --max-kv-size 8192",
                      "Qwen3.5-35B-A3B", {"n_ctx": 8192}, {}),
    "Ollama in docker": ("docker exec -it ollama ollama run qwen3.5:9b", "qwen3.5 9b", {}, {}),
}  # fmt: skip

IMAGE = "ghcr.io/ggml-org/llama.cpp:server-cuda"
# Files of docker compose that mean the same.
COMPOSE = {
    "a text": f"services:\n  llama:\n    image: {IMAGE}\n    ports:\n      - \"8080:8080\"\n"
              f"    command: -hf {REPO}:Q4_K_M -c 16384 --temp 0.6\n    restart: unless-stopped",
    "a folded text": f"services:\n  llama:\n    image: {IMAGE}\n    command: >\n      -hf {REPO}:Q4_K_M\n"
                     f"      -c 16384\n      --temp 0.6\n",
    "a block with backslashes": f"services:\n  llama:\n    command: |-\n      -hf {REPO}:Q4_K_M \\\n"
                                f"      -c 16384 --temp 0.6\n    image: \"{IMAGE}\"\n",
    "a list": f"version: \"3.9\"\nservices:\n  web:\n    image: open-webui\n    command: [\"serve\"]\n  llama:\n"
              f"    image: {IMAGE}  # CUDA\n    command:\n      - -hf\n      - {REPO}:Q4_K_M\n      - \"-c\"\n"
              f"      - \"16384\"\n      # warm\n      - --temp\n      - '0.6'\n",
    "a list that isn't indented": f"services:\n  llama:\n    image: {IMAGE}\n    command:\n    - -hf\n"
                                  f"    - {REPO}:Q4_K_M\n    - -c\n    - 16384\n    - --temp\n    - 0.6\n",
    "a list in brackets": f"  llama:\n    image: {IMAGE}\n"
                          f"    command: [\"-hf\", \"{REPO}:Q4_K_M\", '-c', \"16384\", --temp, 0.6]\n",
    "variables": f"```yaml\nservices:\n  llama:\n    image: {IMAGE}\n    environment:\n"
                 f"      LLAMA_ARG_CTX_SIZE: \"16384\"\n      TZ: Europe/Vienna\n"
                 f"    command: [\"-hf\", \"{REPO}:Q4_K_M\", \"--temp\", \"0.6\"]\n    deploy:\n"
                 f"      resources:\n        reservations:\n          devices:\n            - driver: nvidia\n```",
    "an entrypoint": f"services:\n  llama:\n    image: {IMAGE}\n    entrypoint: /app/llama-server\n    environment:\n"
                     f"      - LLAMA_ARG_CTX_SIZE=16384\n    command: -hf {REPO}:Q4_K_M --temp 0.6\n",
    "a shell": f"services:\n  llama:\n    image: {IMAGE}\n    entrypoint: [\"/bin/sh\", \"-c\", "
               f"\"/app/llama-server -hf {REPO}:Q4_K_M -c 16384 --temp 0.6\"]\n",
}  # fmt: skip


def read(text: str) -> ReadCommand:
    found = read_command(text)
    assert found is not None, text
    return found


@pytest.mark.parametrize("around", AROUND)
@case(PASTED_COMMAND, Way.WINDOW, report="found by pasting real texts: 25 of 46 failed", before="failed")
def test_what_stands_around_a_command_changes_nothing(around: str) -> None:
    text = AROUND[around]
    found = read(text)
    assert found.model is not None
    assert (found.model.repo, found.model.quant) == (REPO, "Q4_K_M")
    assert (found.load, found.answer) == (LOAD, ANSWER)
    assert pasted_kind(text) == "command"
    named = named_model(text)
    assert named is not None
    assert named.repo == REPO


@pytest.mark.parametrize("form", COMPOSE)
@case(PASTED_COMMAND, Way.WINDOW, report="found by pasting compose files of READMEs", before="failed")
def test_a_compose_file_is_read(form: str) -> None:
    text = COMPOSE[form]
    found = read(text)
    assert found.model is not None
    assert (found.model.repo, found.model.quant) == (REPO, "Q4_K_M")
    assert (found.load, found.answer) == (LOAD, ANSWER)
    assert pasted_kind(text) == "command"


@pytest.mark.parametrize("item", ['"{\\"enable_thinking\\": false}"', "'{\"enable_thinking\": false}'"])
@pytest.mark.parametrize("form", ["[--chat-template-kwargs, {0}]", "\n      - --chat-template-kwargs\n      - {0}"])
def test_quotation_marks_inside_a_word_of_a_compose_file_belong_to_it(form: str, item: str) -> None:
    found = read(f"services:\n  llama:\n    image: {IMAGE}\n    command: {form.replace('{0}', item)}\n")
    assert found.answer == {"enable_thinking": False}


def test_what_is_docker_composes_own_is_named() -> None:
    remarks = {each.words: each.sentence for each in read(COMPOSE["a text"]).remarks}

    assert remarks.keys() == {"ports", "restart: unless-stopped"}
    assert all("Docker" in each for each in remarks.values())


@case(PASTED_COMMAND, Way.WINDOW, report="found by pasting compose files of READMEs", before="failed")
def test_compose_files_of_other_programs_are_read() -> None:
    ollama = read(
        "services:\n  ollama:\n    image: ollama/ollama:latest\n    environment:\n"
        "      - OLLAMA_CONTEXT_LENGTH=32768\n    volumes:\n      - ollama:/models"
    )
    vllm = read(
        "services:\n  vllm:\n    image: vllm/vllm-openai:latest\n    command: --model Qwen/Qwen3.5-27B "
        "--max-model-len 65536\n    ipc: host"
    )

    assert (ollama.program, ollama.load) == ("ollama", {"n_ctx": 32768})
    assert (vllm.program, vllm.load) == ("vllm", {"n_ctx": 65536})
    assert vllm.model is not None
    assert vllm.model.words


@pytest.mark.parametrize("program", OTHERS)
@case(PASTED_COMMAND, Way.WINDOW, report="found by pasting real texts: 25 of 46 failed", before="failed")
def test_lines_of_other_programs_are_read(program: str) -> None:
    text, model, load, answer = OTHERS[program]
    found = read(text)
    assert found.model is not None
    assert (found.model.text, found.load, found.answer) == (model, load, answer)
    assert pasted_kind(text) == "command"


def test_every_flag_of_docker_is_named() -> None:
    remarks = {each.words: each.sentence for each in read(AROUND["docker"]).remarks}
    assert {"--gpus all", "-p 8080:8080", "-v ~/models:/models"} <= remarks.keys()
    assert "Docker" in remarks["--gpus all"]


@pytest.mark.parametrize(
    "text",
    [
        "docker run hello-world",
        "docker run -d -p 80:80 nginx",
        "pip install llama-cpp-python",
        "I pulled ghcr.io/ggml-org/llama.cpp:server-cuda yesterday.",
        "user@pc:~$ ls -la",
        "# Notes\n- llama-server is fine\n- so is vllm",
        "```python\nprint('-c 16384')\n```",
        "git clone https://github.com/ggml-org/llama.cpp && cd llama.cpp && cmake -B build -DGGML_CUDA=ON",
        "hf auth login",
        "services:\n  web:\n    image: nginx:latest\n    command: -c /etc/nginx.conf",
        "![A picture](a.png)\nimage: of a llama\nIt was -c 16384 in size.",
    ],
)
def test_other_lines_and_prose_are_no_commands(text: str) -> None:
    assert not pasted_kind(text)


@pytest.mark.parametrize(
    "flag", ["--host", "--port 8080", "-hf", "--tp-size 2", "-tp 2", "--mem-fraction-static", "--api-key"]
)
@case(PASTED_COMMAND, Way.WINDOW, report="found by pasting single flags into the search of options", before="failed")
def test_a_single_flag_is_known(flag: str) -> None:
    assert flag_note(flag).endswith(".")
    assert "doesn't serve" not in flag_note(flag), "QwenDesk has a server"


@case(PASTED_COMMAND, Way.WINDOW, report="found by pasting real texts: 25 of 46 failed", before="failed")
async def test_a_transcript_pasted_into_the_composer_is_offered_as_a_command(desk: Desk) -> None:
    mime = QMimeData()
    mime.setText(AROUND["output below"])
    desk.paste(mime)

    assert desk.is_shown("composer.pasted.show")
