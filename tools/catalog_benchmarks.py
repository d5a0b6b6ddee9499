"""Published benchmark figures of the models, each with its source: part of the catalog that build_catalog.py writes."""

from collections.abc import Mapping

from qwendesk.hub.catalog_schema import Benchmark

_DATES = {
    "Qwen3.5-35B-A3B": "2026-02-24",
    "Qwen3.5-27B": "2026-02-24",
    "Qwen3.5-122B-A10B": "2026-02-24",
    "Qwen3.5-9B": "2026-03-02",
    "Qwen3.5-4B": "2026-03-02",
    "Qwen3.6-35B-A3B": "2026-04-16",
    "Qwen3.6-27B": "2026-04-22",
    "Qwen3.8-27B": "2026-08-14",
    "Qwen3.8-Flash-Next": "2026-08-26",
}
"""Days of the model cards."""
_CARDS: Mapping[str, Mapping[str, float]] = {
    "GPQA Diamond": {
        "Qwen3.5-35B-A3B": 84.2,
        "Qwen3.5-27B": 85.5,
        "Qwen3.5-122B-A10B": 86.6,
        "Qwen3.5-9B": 81.7,
        "Qwen3.5-4B": 76.2,
        "Qwen3.6-35B-A3B": 86.0,
        "Qwen3.6-27B": 87.8,
        "Qwen3.8-27B": 89.2,
        "Qwen3.8-Flash-Next": 91.7,
    },
    "MMLU-Pro": {
        "Qwen3.5-35B-A3B": 85.3,
        "Qwen3.5-27B": 86.1,
        "Qwen3.5-122B-A10B": 86.7,
        "Qwen3.5-9B": 82.5,
        "Qwen3.5-4B": 79.1,
        "Qwen3.6-35B-A3B": 85.2,
        "Qwen3.6-27B": 86.2,
    },
    "SuperGPQA": {
        "Qwen3.5-35B-A3B": 63.4,
        "Qwen3.5-27B": 65.6,
        "Qwen3.5-122B-A10B": 67.1,
        "Qwen3.6-35B-A3B": 64.7,
    },
    "LiveCodeBench v6": {
        "Qwen3.5-35B-A3B": 74.6,
        "Qwen3.5-27B": 80.7,
        "Qwen3.5-122B-A10B": 78.9,
        "Qwen3.6-35B-A3B": 80.4,
        "Qwen3.6-27B": 83.9,
        "Qwen3.8-27B": 90.3,
        "Qwen3.8-Flash-Next": 91.9,
    },
    "SWE-bench Verified": {
        "Qwen3.5-35B-A3B": 69.2,
        "Qwen3.5-27B": 72.4,
        "Qwen3.5-122B-A10B": 72.0,
        "Qwen3.6-35B-A3B": 73.4,
        "Qwen3.6-27B": 77.2,
    },
    "SWE-bench Pro": {
        "Qwen3.6-35B-A3B": 49.5,
        "Qwen3.6-27B": 53.5,
        "Qwen3.8-27B": 61.7,
        "Qwen3.8-Flash-Next": 62.5,
    },
    "Terminal-Bench 2.0": {
        "Qwen3.5-35B-A3B": 40.5,
        "Qwen3.5-27B": 41.6,
        "Qwen3.5-122B-A10B": 49.4,
        "Qwen3.6-35B-A3B": 51.5,
        "Qwen3.6-27B": 59.3,
    },
    "IFEval": {
        "Qwen3.5-35B-A3B": 91.9,
        "Qwen3.5-27B": 95.0,
        "Qwen3.5-122B-A10B": 93.4,
        "Qwen3.5-9B": 91.5,
        "Qwen3.5-4B": 89.8,
    },
    "BFCL v4": {"Qwen3.5-35B-A3B": 67.3, "Qwen3.5-27B": 68.5, "Qwen3.5-122B-A10B": 72.2},
    "CodeForces": {"Qwen3.5-35B-A3B": 2028, "Qwen3.5-27B": 1899, "Qwen3.5-122B-A10B": 2100},
    "MMMU": {"Qwen3.5-35B-A3B": 81.4, "Qwen3.6-27B": 82.9},
    "MathVision": {"Qwen3.5-35B-A3B": 83.9, "Qwen3.6-27B": 85.1},
    "MMBench": {"Qwen3.5-35B-A3B": 91.5},
    "VideoMME": {"Qwen3.5-35B-A3B": 86.6, "Qwen3.6-27B": 87.7},
}
"""By benchmark and model, from the model cards of the maker, in percent (CodeForces: rating).

Models of one row were tested in the same way. SWE-bench Verified of the 27B was given as 72.4 on its own card and as
75.0 on a later one.
"""
_INDEX = {
    "Qwen3.5-27B": (42, "2026-03"),
    "Qwen3.5-9B": (32, "2026-03"),
    "Qwen3.5-4B": (27, "2026-03"),
    "Qwen3.5-2B": (16, "2026-03"),
    "Qwen3.5-0.8B": (9, "2026-03"),
    "Qwen3.6-35B-A3B": (43, "2026-05"),
    "Qwen3.6-27B": (46, "2026-05"),
}
"""Intelligence Index of Artificial Analysis, with thinking."""

BENCHMARKS: tuple[Benchmark, ...] = (
    *(
        Benchmark(name=name, model=model, score=score, source=f"huggingface.co/Qwen/{model}", date=_DATES[model])
        for name, scores in _CARDS.items()
        for model, score in scores.items()
    ),
    *(
        Benchmark(
            name="Intelligence Index", model=model, score=score, source="artificialanalysis.ai", date=date,
            is_independent=True,
        )
        for model, (score, date) in _INDEX.items()
    ),
)  # fmt: skip
