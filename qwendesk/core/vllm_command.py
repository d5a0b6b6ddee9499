"""The command `vllm serve` for the options of a model, with the formats and the split that suit the graphics cards.

vLLM keeps the whole model in video memory and loads the original repositories, not GGUF files. Qwen publishes them in
three formats. Their sizes here are estimates from the number of parameters in the name, and the command says so.
"""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB

_FORMATS: tuple[tuple[str, float], ...] = (("", 2.0), ("-FP8", 1.05), ("-GPTQ-Int4", 0.75))
"""Suffixes of the repositories, best quality first, with bytes per parameter.

0.75 is that of a 25 GB file of 35B with 4-bit experts, whose attention stays in 16 bit.
"""
_PUBLISHED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Qwen/Qwen3.5-27B": ("", "-FP8", "-GPTQ-Int4"),
        "Qwen/Qwen3.5-35B-A3B": ("", "-FP8", "-GPTQ-Int4"),
        "Qwen/Qwen3.5-122B-A10B": ("", "-FP8", "-GPTQ-Int4"),
        "Qwen/Qwen3.5-397B-A17B": ("", "-FP8", "-GPTQ-Int4"),
        "Qwen/Qwen3.6-27B": ("", "-FP8"),
        "Qwen/Qwen3.6-35B-A3B": ("", "-FP8"),
        "Qwen/Qwen3.8-27B": ("", "-FP8"),
    }
)
"""The formats that Qwen publishes; of other models only the original."""
_WORK_BYTES = 2 * GIB
"""Activations, CUDA graphs and the vision encoder on each card, roughly."""
_HIGHEST_SHARE, _USUAL_SHARE = 0.95, 0.9
_WITH_TEXT_CONFIG = re.compile(r"Qwen3\.[5-9]")
_YARN: Mapping[str, Any] = MappingProxyType(
    {
        "mrope_interleaved": True,
        "mrope_section": [11, 11, 10],
        "rope_type": "yarn",
        "rope_theta": 10_000_000,
        "partial_rotary_factor": 0.25,
    }
)
"""The RoPE parameters of the Qwen3.5 model cards, which replace those in the repository."""


class Card(msgspec.Struct, frozen=True):
    """A graphics card, in bytes."""

    total_bytes: int
    budget_bytes: int | None = None
    """What a plan may use of it; None if unknown."""


def vllm_arguments(
    load: LoadOptions, answer: GenerationOptions, base_repo: str, cards: Sequence[Card], kv_bytes: int
) -> tuple[list[str], list[str]]:
    """Return arguments of `vllm serve` about the model and the cards, and sentences to write beside the command.

    `base_repo` is the repository of the unquantised model, "" if unknown. `kv_bytes` is the size of the KV cache that
    the context needs in 16 bit.
    """
    repo, notes = _repository(load, base_repo, cards, kv_bytes)
    args = [repo, *_split(cards, notes)]
    share = _memory_share(cards)
    args += ["--gpu-memory-utilization", f"{share:g}", "--enable-prefix-caching"]
    if load.rope_scaling == "yarn" and load.rope_freq_scale:
        args += _yarn(load, repo, notes)
    if load.vision == "off":
        args += ["--limit-mm-per-prompt", '{"image": 0, "video": 0}']
    args += ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"]
    if not answer.enable_thinking:
        args += ["--default-chat-template-kwargs", '{"enable_thinking": false}']
    return args, notes


def _repository(load: LoadOptions, base_repo: str, cards: Sequence[Card], kv_bytes: int) -> tuple[str, list[str]]:
    """Return the repository of the best format that fits the cards, and what to say about it."""
    if not base_repo:
        return load.model, [
            "vLLM loads GGUF files only for some models. Name the repository of the original model instead."
        ]
    parameters = _parameters(base_repo)
    if not cards or not parameters:
        return base_repo, ["vLLM needs the whole model in video memory. Check that this format fits your cards."]
    published = _PUBLISHED.get(base_repo, ("",))
    sizes = [(base_repo + suffix, round(parameters * n_bytes)) for suffix, n_bytes in _FORMATS if suffix in published]
    room = _room(cards)
    for repo, weights in sizes:
        if weights + kv_bytes <= room:
            return repo, [f"{repo} is about {_gb(weights)} and fits into the {_gb(room)} that vLLM can use for it."]
    repo, weights = sizes[-1]
    needed = _gb(weights + kv_bytes)
    sentence = (
        f"No format from Qwen fits: {repo} needs about {needed} with this context, and the cards have {_gb(room)} for "
        "it. vLLM can't keep a part in RAM at a useful speed. Choose a smaller model, or llama-server."
    )
    return repo, [sentence]


def _split(cards: Sequence[Card], notes: list[str]) -> list[str]:
    """Return the split over the cards: by tensors if they are equal and 2, 4 or 8, otherwise by layers."""
    n_cards = len(cards)
    if n_cards < 2:
        return []
    sizes = [card.total_bytes for card in cards]
    if n_cards in (2, 4, 8) and min(sizes) > 0.95 * max(sizes):
        notes.append(
            "Tensor parallel needs fast links between the cards. With slow slots, use --pipeline-parallel-size "
            f"{n_cards} alone" + (", with pairs on NVLink 2 of each." if n_cards == 4 else ".")
        )
        return ["--tensor-parallel-size", str(n_cards)]
    notes.append("The cards differ or aren't 2, 4 or 8: layers are divided, and the smallest card sets the limit.")
    return ["--pipeline-parallel-size", str(n_cards)]


def _yarn(load: LoadOptions, repo: str, notes: list[str]) -> list[str]:
    if not _WITH_TEXT_CONFIG.search(repo):
        notes.append("This context needs YaRN, whose values are on the model's card.")
        return []
    notes.append("For this context, set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 in the environment. Short prompts get worse.")
    values = {
        **_YARN,
        "factor": round(1 / load.rope_freq_scale, 2),
        "original_max_position_embeddings": load.yarn_orig_ctx,
    }
    return ["--hf-overrides", json.dumps({"text_config": {"rope_parameters": values}})]


def _memory_share(cards: Sequence[Card]) -> float:
    """Return the share of each card that vLLM may take: what a plan may use of the fullest one."""
    shares = [card.budget_bytes / card.total_bytes for card in cards if card.budget_bytes and card.total_bytes]
    return int(100 * min([*shares, _HIGHEST_SHARE])) / 100 if shares else _USUAL_SHARE


def _room(cards: Sequence[Card]) -> int:
    """Return the bytes for weights and KV cache; every card holds as much as the smallest."""
    smallest = min(card.total_bytes for card in cards)
    return max(0, len(cards) * round(smallest * _memory_share(cards) - _WORK_BYTES))


def _parameters(repo: str) -> float:
    """Return the number of parameters that the name gives, as in "35B-A3B"; 0 if it gives none."""
    found = re.search(r"-(\d+(?:\.\d+)?)B(?:-|$)", repo)
    return float(found[1]) * 1e9 if found else 0


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / GIB:.0f} GB"
