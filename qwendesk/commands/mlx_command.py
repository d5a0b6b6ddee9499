"""The commands of MLX, Apple's engine for Macs, for the options of a model.

mlx_lm serves text; mlx_vlm also takes pictures. Both load folders in a format of their own, which the mlx-community on
Hugging Face publishes in several widths. Sizes are estimates: published folders have 0.58 bytes per parameter in 4 bit
(20.4 of 35 billion, 69.6 of 122 billion) and 1.08 in 8 bit.
"""

import json
import shlex
from typing import Any

from qwendesk.commands.serving import Serving, gb, original_model, parameters_of
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions

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
