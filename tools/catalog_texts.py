"""What the catalog says in words and quality numbers: the part that no collected list of files has."""

import types
from collections.abc import Mapping

from qwendesk.hub.catalog_schema import Quality, QuantNote

PURPOSES: Mapping[str, str] = types.MappingProxyType(
    {
        "Qwen3.5-35B-A3B": "Fast all-rounder for agents and long contexts: only 3B of 35B work on each token.",
        "Qwen3.5-27B": "Deepest reasoning on one GPU; 3 to 5 times slower than 35B-A3B.",
        "Qwen3.5-122B-A10B": "For several GPUs, or one GPU and a lot of RAM.",
        "Qwen3.5-397B-A17B": "For servers: needs 100 GB or more.",
        "Qwen3.5-9B": "For GPUs with 8 GB: fits completely in video memory.",
        "Qwen3.5-4B": "For small GPUs and laptops.",
        "Qwen3.5-2B": "For a first try: downloads in a minute and runs everywhere.",
        "Qwen3.5-0.8B": "The smallest: fast, but with simple answers.",
        "Qwen3.6-35B-A3B": "Successor of Qwen3.5-35B-A3B and just as fast. Can keep earlier thinking.",
        "Qwen3.6-27B": "Successor of Qwen3.5-27B: deepest reasoning on one GPU. Can keep earlier thinking.",
    }
)
"""What each model is for. The planner decides what fits this PC."""

PRESETS: Mapping[str, str] = types.MappingProxyType(
    {
        "Qwen3.5-2B": "Qwen3.5-0.8B/2B (non-thinking default)",
        "Qwen3.5-0.8B": "Qwen3.5-0.8B/2B (non-thinking default)",
        "Qwen3.6-35B-A3B": "Qwen3.6-35B-A3B",
        "Qwen3.6-27B": "Qwen3.6-27B",
    }
)
"""Which presets of the facts a model has, where they are not the common ones."""
COMMON_PRESETS = "Qwen3.5 (35B,122B,27B,9B,4B)"

_FEBRUARY, _LATER = "Series A: before the re-release", "Series B: one 24 GB GPU, re-released files"
_FEBRUARY_SOURCE = "Community test on WikiText-2 (r/LocalLLaMA)"
_LATER_SOURCE = "Community test on a 24 GB GPU (r/LocalLLaMA)"


def _perplexity(quant: str, value: float, *, later: bool, is_before_fix: bool = False) -> Quality:
    return Quality(
        model="Qwen3.5-35B-A3B",
        uploader="unsloth",
        quant=quant,
        measure="perplexity",
        value=value,
        series=_LATER if later else _FEBRUARY,
        source=_LATER_SOURCE if later else _FEBRUARY_SOURCE,
        date="" if later else "2026-02",
        is_before_fix=is_before_fix,
    )


QUALITY: tuple[Quality, ...] = (
    _perplexity("Q8_0", 6.534, later=False),
    _perplexity("Q4_K_M", 6.669, later=False, is_before_fix=True),
    _perplexity("UD-Q4_K_XL", 7.170, later=False, is_before_fix=True),
    _perplexity("Q3_K_S", 6.765, later=True),
    _perplexity("Q3_K_M", 6.683, later=True),
    _perplexity("UD-Q3_K_XL", 6.692, later=True),
    _perplexity("UD-IQ4_XS", 6.629, later=True),
    _perplexity("UD-IQ4_NL", 6.630, later=True),
    _perplexity("UD-Q4_K_L", 6.589, later=True),
    _perplexity("Q4_K_S", 6.589, later=True),
    _perplexity("Q4_K_M", 6.559, later=True),
    _perplexity("UD-Q4_K_XL", 6.552, later=True),
)

NOTES: tuple[QuantNote, ...] = (
    QuantNote(
        quant="MXFP4_MOE",
        text="Experts in 4-bit floating point on purpose, unlike early Unsloth files with MXFP4 by mistake. "
        "More than 100 tok/s on a 24 GB GPU, but 20 to 30 tok/s less than UD-Q4_K_XL on an RTX 5090; its quality "
        "hasn't been tested.",
        source="Community reports (r/LocalLLaMA)",
        date="2026",
    ),
    QuantNote(
        quant="UD-Q4_K_XL",
        model="Qwen3.5-35B-A3B",
        uploader="unsloth",
        text="Files from before 2026-02-27 have attention tensors in MXFP4 and lose quality (perplexity 7.170). "
        "The current file doesn't, and is the best of its size (6.552).",
        source="huggingface.co/unsloth/Qwen3.5-35B-A3B-GGUF/discussions/10",
        date="2026-03-05",
    ),
    QuantNote(
        quant="Q4_K_S",
        model="Qwen3.5-35B-A3B",
        uploader="unsloth",
        text="UD-Q4_K_L is 0.5 GB smaller and has the same perplexity (6.589).",
        source=_LATER_SOURCE,
        instead="UD-Q4_K_L",
    ),
)
