"""The commands of programs that load other formats than GGUF: vLLM, SGLang and MLX.

Both load the original repositories, keep the whole model in video memory and divide it among the cards. vLLM's flags
are those of its `serve` command, SGLang's those of `sglang.launch_server`.

mlx_lm serves text; mlx_vlm also takes pictures. Both load folders in a format of their own, which the mlx-community on
Hugging Face publishes in several widths. Sizes are estimates: published folders have 0.58 bytes per parameter in 4 bit
(20.4 of 35 billion, 69.6 of 122 billion) and 1.08 in 8 bit.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from qwendesk.commands.gpu_split import Split, best_split
from qwendesk.commands.serving import (
    WORK_BYTES,
    Serving,
    fitting_repository,
    gb,
    memory_share,
    original_model,
    parameters_of,
)
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions

_WITH_TEXT_CONFIG = re.compile(r"Qwen3\.[5-9]")
# The RoPE parameters of the Qwen3.5 model cards, which replace those in the repository.
_YARN: Mapping[str, Any] = MappingProxyType(
    {
        "mrope_interleaved": True,
        "mrope_section": [11, 11, 10],
        "rope_type": "yarn",
        "rope_theta": 10_000_000,
        "partial_rotary_factor": 0.25,
    }
)


def vllm_arguments(
    load: LoadOptions, answer: GenerationOptions, serving: Serving, *, windows: bool
) -> tuple[list[str], list[str]]:
    """Return arguments of `vllm serve` about the model and the cards, and sentences to write beside the command."""
    repo, notes = fitting_repository(load, serving, "vLLM")
    split = best_split(serving.cards, serving.n_heads, serving.n_kv_heads)
    args = [repo, "--host", "127.0.0.1", "--port", "8000"]
    args += _tensor_and_pipeline(split)
    args += ["--gpu-memory-utilization", f"{memory_share(serving.cards):g}", "--enable-prefix-caching"]
    if load.rope_scaling == "yarn" and load.rope_freq_scale:
        args += _yarn(load, repo, "--hf-overrides", "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1", notes)
    if load.vision == "off":
        args += ["--limit-mm-per-prompt", '{"image": 0, "video": 0}']
    args += ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"]
    if not answer.enable_thinking:
        args += ["--default-chat-template-kwargs", '{"enable_thinking": false}']
    drafts = ["--speculative-config", json.dumps({"method": "mtp", "num_speculative_tokens": load.draft_n_max})]
    args += _drafts(load, repo, split, drafts, notes)
    notes += _pc_notes("vLLM", serving, split, windows=windows)
    bench = ["vllm", "bench", "throughput", "--model", repo, "--dataset-name", "random", "--input-len", "1024"]
    bench += ["--output-len", "256", "--num-prompts", "64", *_tensor_and_pipeline(split)]
    notes.append(f"How fast this PC is with many requests at once: {shlex.join(bench)}")
    return args, notes


def in_docker(program: str, args: Sequence[str], serving: Serving) -> list[str]:
    """Return the form of a command for Docker; [] where a container would have no model or no GPU.

    `args` follow the image's name. The port stays this PC's own, though the server listens to all in its container.
    Sources: docs.vllm.ai "Using Docker", docs.sglang.io "Install SGLang", method 3.
    """
    makers = {card.maker for card in serving.cards}
    image, port = _IMAGES.get((program, "amd" in makers), ("", 0))
    if not serving.base_repo or not image or serving.is_mac:
        return []
    gpus = "--device /dev/kfd --device /dev/dri --group-add video" if "amd" in makers else "--gpus all"
    inside = shlex.join("0.0.0.0" if before == "--host" else word for before, word in pairwise(("", *args)))
    return [
        f"In Docker: docker run --rm {gpus} --ipc=host -p 127.0.0.1:{port}:{port} "
        f"-e HF_HOME=/models -v ~/.cache/huggingface:/models {image} {inside}"
    ]


# Images of a program, for NVIDIA's cards and for AMD's, with its port. SGLang's for AMD are for servers.
_IMAGES: Mapping[tuple[str, bool], tuple[str, int]] = MappingProxyType(
    {
        ("vLLM", False): ("vllm/vllm-openai:latest", 8000),
        ("vLLM", True): ("vllm/vllm-openai-rocm:latest", 8000),
        ("SGLang", False): ("lmsysorg/sglang:latest", 30000),
    }
)


def _drafts(load: LoadOptions, repo: str, split: Split, flags: list[str], notes: list[str]) -> list[str]:
    """Return the flags for drafts by the model's own head (MTP), if they are wanted and possible; else say what is.

    vLLM and SGLang draft only where each card has a part of every layer (docs.vllm.ai, "Speculative Decoding").
    """
    if not _WITH_TEXT_CONFIG.search(repo):
        return []
    if split.pipeline > 1:
        notes.append("Drafts (MTP) don't work with a pipeline of cards.")
        return []
    if load.speculative == "mtp":
        return flags
    notes.append(f"Drafts (MTP) make a single answer faster, many at once often slower: {shlex.join(flags)}")
    return []


def sglang_command(
    load: LoadOptions, answer: GenerationOptions, sampling: Mapping[str, Any], serving: Serving, *, windows: bool
) -> str:
    """Return the command with comments. SGLang has no flag for `sampling` in chats, so a comment has the values."""
    repo, notes = fitting_repository(load, serving, "SGLang")
    split = best_split(serving.cards, serving.n_heads, serving.n_kv_heads)
    args = ["python", "-m", "sglang.launch_server", "--model-path", repo]
    args += ["--host", "127.0.0.1", "--port", "30000"]
    args += ["--context-length", str(load.n_ctx)] if load.n_ctx else []
    args += _sizes(split, "--tp-size", "--pp-size")
    args += ["--mem-fraction-static", f"{_static_share(serving):g}"]
    if load.rope_scaling == "yarn" and load.rope_freq_scale:
        variable = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
        args += _yarn(load, repo, "--json-model-override-args", variable, notes)
    args += ["--reasoning-parser", "qwen3", "--tool-call-parser", "qwen3_coder"]
    drafts = ["--speculative-algorithm", "NEXTN", "--speculative-num-steps", str(load.draft_n_max)]
    drafts += ["--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", str(load.draft_n_max + 1)]
    args += _drafts(load, repo, split, drafts, notes)
    notes.append(f"SGLang takes these with each request, not here: {json.dumps(dict(sampling))}")
    if not answer.enable_thinking:
        notes.append('So does thinking: {"chat_template_kwargs": {"enable_thinking": false}}')
    notes += _pc_notes("SGLang", serving, split, windows=windows)
    notes += in_docker("SGLang", args, serving)
    return "\n".join([shlex.join(args), *(f"# {note}" for note in notes)])


def _tensor_and_pipeline(split: Split) -> list[str]:
    return _sizes(split, "--tensor-parallel-size", "--pipeline-parallel-size")


def _sizes(split: Split, tensor: str, pipeline: str) -> list[str]:
    sizes = ((tensor, split.tensor), (pipeline, split.pipeline))
    return [word for flag, size in sizes if size > 1 for word in (flag, str(size))]


def _pc_notes(program: str, serving: Serving, split: Split, *, windows: bool) -> list[str]:
    """Return what to say about the split, and about systems and cards that the program doesn't run on."""
    notes = [split.reason] if split.reason else []
    if split.order:
        numbers = ",".join(map(str, split.order))
        notes.append(f"Set CUDA_VISIBLE_DEVICES={numbers} in the environment, so that linked cards are neighbours.")
    makers = {card.maker for card in serving.cards}
    if "apple" in makers:
        notes.append(f"{program} doesn't use a Mac's GPU. MLX does.")
    if "amd" in makers:
        notes.append(f"On AMD cards, {program} needs ROCm, which supports fewer cards than Vulkan does.")
    if windows:
        notes.append(f"{program} runs on Linux. On Windows, start it in WSL.")
    return notes


def _yarn(load: LoadOptions, repo: str, flag: str, variable: str, notes: list[str]) -> list[str]:
    if not _WITH_TEXT_CONFIG.search(repo):
        notes.append("This context needs YaRN, whose values are on the model's card.")
        return []
    notes.append(f"For this context, set {variable} in the environment. Short prompts get worse.")
    values = {
        **_YARN,
        "factor": round(1 / load.rope_freq_scale, 2),
        "original_max_position_embeddings": load.yarn_orig_ctx,
    }
    return [flag, json.dumps({"text_config": {"rope_parameters": values}})]


def _static_share(serving: Serving) -> float:
    """Return the share of each card for weights and caches: SGLang takes the memory to work with beside it."""
    share = memory_share(serving.cards)
    if not serving.cards:
        return share
    work = WORK_BYTES / min(card.total_bytes for card in serving.cards)
    return max(int(100 * (share - work)) / 100, 0.1)


_WIDTHS: tuple[tuple[str, float], ...] = (("-8bit", 1.08), ("-4bit", 0.58))
# Tokens of an answer without a limit: what Qwen's cards advise, because MLX's own limit is 512.
_LONGEST_ANSWER = 32_768


def mlx_command(load: LoadOptions, answer: GenerationOptions, serving: Serving) -> str:
    """Return the command that serves text, with comments that say how to send pictures, and what MLX lacks."""
    name = serving.base_repo.rpartition("/")[2]
    if not name:
        return "# QwenDesk doesn't know the original model of this file, so it can't name a folder for MLX.\n"
    repo, notes = _folder(name, serving)
    lines = [shlex.join(["mlx_lm.server", "--model", repo, *_flags(answer)])]
    if not serving.is_mac:
        lines.insert(0, "# MLX runs only on Macs with Apple silicon. This PC isn't one.")
    once = ["mlx_lm.generate", "--model", repo, "--max-tokens", str(_answer_tokens(answer)), "--prompt", "..."]
    notes.append(f"For one answer in the terminal: {shlex.join(once)}")
    if load.mmproj and load.vision != "off":
        pictures = ["mlx_vlm.server", "--model", repo, "--host", "127.0.0.1", "--port", "8080"]
        notes.append(f"mlx_lm reads no pictures. For pictures: {shlex.join(pictures)}")
    notes.append("MLX has no context length to set: the cache grows with the chat until memory is full.")
    if load.rope_scaling == "yarn":
        notes.append("MLX has no flag for YaRN, so chats end at the length that the model was trained on.")
    if answer.presence_penalty or answer.frequency_penalty or answer.repeat_penalty != 1:
        notes.append("Penalties have no flag: send presence_penalty and the others with each request.")
    return "\n".join([*lines, *(f"# {note}" for note in notes)])


def _folder(name: str, serving: Serving) -> tuple[str, list[str]]:
    """Return the repository of the widest format that fits the Mac, and what to say about it."""
    folders = [(f"mlx-community/{name}{suffix}", round(parameters_of(f"-{name}") * n)) for suffix, n in _WIDTHS]
    repo, weights = folders[-1]
    room = max((card.budget_bytes or card.total_bytes for card in serving.cards), default=0) if serving.is_mac else 0
    size = f"It is another download of about {gb(weights)}: MLX doesn't load GGUF files." if weights else ""
    notes = [size] if size else ["It is another download: MLX doesn't load GGUF files."]
    if room and weights:
        fitting = next((each for each in folders if each[1] + serving.kv_bytes <= room), None)
        if fitting is None:
            notes.append(
                f"It doesn't fit: with this context it needs about {gb(weights + serving.kv_bytes)}, and the GPU may "
                f"use {gb(room)}. Choose a smaller model."
            )
        else:
            repo, weights = fitting
            notes[0] = (
                f"It is another download of about {gb(weights)}, which fits into the {gb(room)} that the GPU may use. "
                "MLX doesn't load GGUF files."
            )
    model = original_model(serving.base_repo)
    if model is None or not model.is_on_mlx:
        notes.append("This name follows the pattern of mlx-community, and wasn't checked. Look there for it.")
    return repo, notes


def _flags(answer: GenerationOptions) -> list[str]:
    values: tuple[tuple[str, Any], ...] = (
        ("--temp", answer.temperature),
        ("--top-p", answer.top_p),
        ("--top-k", answer.top_k),
        ("--min-p", answer.min_p),
        ("--max-tokens", _answer_tokens(answer)),
    )
    flags = ["--host", "127.0.0.1", "--port", "8080"]
    flags += [
        word for flag, value in values for word in (flag, f"{value:g}" if isinstance(value, float) else str(value))
    ]
    variables: dict[str, bool | str] = {} if answer.enable_thinking else {"enable_thinking": False}
    if answer.preserve_thinking:
        variables["preserve_thinking"] = True
    return [*flags, "--chat-template-args", json.dumps(variables)] if variables else flags


def _answer_tokens(answer: GenerationOptions) -> int:
    return answer.max_tokens if answer.max_tokens > 0 else _LONGEST_ANSWER
