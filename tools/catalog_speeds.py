"""User reports of generation speed, each with its source: part of the catalog that build_catalog.py writes.

`python -m bench.speeds` compares the estimator with them. Sizes are in GB (10^9 bytes) here, as on the Hub.
"""

from typing import Any

from qwendesk.hub.catalog_schema import SpeedReport

_LOCAL = "r/LocalLLaMA, reports on the release of Qwen3.5"
_5080 = "r/LocalLLaMA, 1rei65v"
_MTP = "github.com/sudoingX/qwen38-mtp"
_STRIX = "dev.to/agustinsacco, Strix Halo benchmark suite"

_NOT_NAMED = "the source names no quant; size of the usual file that fits"
_NO_SHADER = "before llama.cpp had a Vulkan shader for gated delta net (llama.cpp#20354)"


def _report(model: str, gpus: tuple[str, ...], quant: str, gb: float, tok_s: float, **rest: Any) -> SpeedReport:
    return SpeedReport(model=model, gpus=gpus, quant=quant, n_bytes=round(gb * 1e9), tok_s=tok_s, **rest)


def _moe(gpus: tuple[str, ...], quant: str, gb: float, tok_s: float, **rest: Any) -> SpeedReport:
    """A report of Qwen3.5-35B-A3B from its first weeks."""
    return _report("Qwen3.5-35B-A3B", gpus, quant, gb, tok_s, **({"source": _LOCAL, "date": "2026-03"} | rest))


def _dense(gpus: tuple[str, ...], tok_s: float, *, quant: str = "Q4", gb: float = 16.5, **rest: Any) -> SpeedReport:
    """A report of Qwen3.8-27B: new chat, thinking off, context 131K with a cache in q4_0 unless stated."""
    usual = {"source": _MTP, "date": "2026-08-18", "n_ctx": 131_072, "cache_type": "q4_0", "placement": "vram"}
    return _report("Qwen3.8-27B", gpus, quant, gb, tok_s, **(usual | rest))


def _flash(gpus: tuple[str, ...], quant: str, gb: float, tok_s: float, **rest: Any) -> SpeedReport:
    return _report("Qwen3.8-Flash-Next", gpus, quant, gb, tok_s, **rest)


_RTX_3090 = {"gpu_gb": 24, "backend": "cuda", "placement": "vram"}
_RTX_5080 = {"gpu_gb": 16, "backend": "cuda", "ram_gb": 128, "n_ctx": 65_536, "cache_type": "q8_0"} | {
    "placement": "experts", "source": _5080, "date": "2026-02-25",
}  # fmt: skip
_OLD_RADEON = {"has_old_engine": True, "remark": f"{_NOT_NAMED}; {_NO_SHADER}"}

SPEEDS: tuple[SpeedReport, ...] = (
    # Qwen3.5-35B-A3B on one NVIDIA card
    _moe(("RTX 3090",), "Q4", 20.19, 111, **_RTX_3090, depth=4_096, n_ctx=131_072, remark=_NOT_NAMED),
    _moe(("RTX 3090",), "Q4", 20.19, 79, **_RTX_3090, depth=131_072, n_ctx=131_072, remark=_NOT_NAMED),
    _moe(("RTX 3090",), "UD-Q3_K_XL", 16.64, 94, **_RTX_3090, depth=122_880, n_ctx=122_880),
    _moe(("RTX 3090",), "UD-Q3_K_XL", 16.64, 71, **_RTX_3090, depth=262_144, n_ctx=262_144),
    _moe(("RTX 3090",), "MXFP4_MOE", 18.4, 112, **_RTX_3090, n_ctx=65_536, remark="size as in the report"),
    _moe(("RTX 3090",), "MXFP4_MOE", 18.4, 56, **_RTX_3090, depth=50_176, n_ctx=65_536,
        remark="size as in the report"),
    _moe(("24 GB card",), "UD-Q4_K_L", 20.19, 128, gpu_gb=24, backend="cuda", placement="vram"),
    _moe(("24 GB card",), "Q4_K_S", 20.72, 117, gpu_gb=24, backend="cuda", placement="vram",
        remark="lowest of a table of quants"),
    _moe(("RTX 4090",), "Q4", 20.19, 116, most_tok_s=122, gpu_gb=24, backend="cuda", placement="vram",
        remark=_NOT_NAMED),
    _moe(("RTX 5090",), "Q4", 22.24, 160, most_tok_s=185, gpu_gb=32, backend="cuda", placement="vram",
        remark=_NOT_NAMED),
    _moe(("RTX 5090",), "Q4", 22.24, 97, gpu_gb=32, backend="cuda", placement="vram", depth=262_144, n_ctx=262_144,
        remark=_NOT_NAMED),
    _moe(("Tesla P40",), "Q4_K_M", 22.02, 37, gpu_gb=24, backend="cuda", placement="vram"),
    _moe(("Tesla V100 32GB",), "UD-Q5_K_XL", 26.41, 38.4, gpu_gb=32, backend="cuda", placement="vram"),
    # The same with experts in RAM
    _moe(("RTX 5080",), "Q4_K_M", 22.02, 69.6, on_cpu=24, **_RTX_5080),
    _moe(("RTX 5080",), "Q4_K_M", 22.02, 51.0, on_cpu=40, **_RTX_5080),
    _moe(("RTX 5080",), "Q8_0", 36.9, 35.7, on_cpu=40, **_RTX_5080),
    _moe(("RTX 5080",), "Q8_0", 36.9, 40.5, **_RTX_5080),
    _moe(("16 GB card",), "UD-Q4_K_XL", 22.24, 51, gpu_gb=16, backend="cuda", placement="experts", on_cpu=16,
        n_ctx=262_144, cache_type="q4_0"),
    _moe(("16 GB card",), "UD-Q4_K_XL", 22.24, 32, gpu_gb=16, backend="cuda", placement="experts", on_cpu=16,
        depth=238_592, n_ctx=262_144, cache_type="q4_0"),
    _moe(("RTX 5060 Ti 16GB",), "Q4", 20.19, 44.3, gpu_gb=16, backend="cuda", placement="experts", depth=102_400,
        n_ctx=131_072, remark=_NOT_NAMED),
    _moe(("12 GB card",), "Q4", 20.19, 40, gpu_gb=12, backend="cuda", placement="experts", n_ctx=131_072,
        remark=f"{_NOT_NAMED}; depth not stated"),
    _moe(("6 GB card",), "Q4", 20.19, 14, gpu_gb=6, ram_gb=16, backend="cuda", placement="disk", remark=_NOT_NAMED),
    # AMD, shared memory, two cards, CPU
    _moe(("RX 7800 XT",), "Q4", 20.19, 13, most_tok_s=21, gpu_gb=16, **_OLD_RADEON),
    _moe(("RX 7900 XT",), "Q4", 20.19, 13, most_tok_s=21, gpu_gb=20, **_OLD_RADEON),
    _moe(("Radeon AI PRO R9700",), "Q4", 22.24, 127.4, gpu_gb=32, backend="vulkan", placement="vram",
        remark=_NOT_NAMED),
    _moe(("Radeon 8060S",), "Q8_0", 36.9, 38.5, gpu_gb=128, backend="vulkan", placement="vram", depth=4_096),
    _moe(("Apple M4 Max",), "Q4", 22.02, 60, most_tok_s=70, gpu_gb=64, placement="vram",
        remark=f"{_NOT_NAMED}; llama.cpp or MLX"),
    _moe(("Apple M4 Pro",), "Q4", 22.02, 30, gpu_gb=48, placement="vram", remark=f"{_NOT_NAMED}; llama.cpp or MLX"),
    _moe(("RTX 5070 Ti", "RTX 5060 Ti 16GB"), "MXFP4_MOE", 21.58, 70, gpu_gb=16, backend="vulkan", placement="vram"),
    _moe((), "Q4", 22.02, 5, most_tok_s=6, ram_gb=64, backend="cpu", placement="cpu", remark="two channels of DDR5"),
    _report("Qwen3.5-122B-A10B", ("NVIDIA GB10",), "Q4", 76.46, 8, most_tok_s=15, gpu_gb=128, placement="vram",
        source=_LOCAL, date="2026-03", remark=f"{_NOT_NAMED}; engine not named"),
    _report("Qwen3.5-27B", ("RTX 3090",), "Q4_K_M", 16.74, 29, **_RTX_3090, depth=122_880, n_ctx=122_880,
        cache_type="q4_0", source=_LOCAL, date="2026-03", remark="23.8 GiB used, so the cache was quantized"),
    _report("Qwen3.5-27B", ("Radeon 8060S",), "Q4_K_M", 16.74, 11.87, gpu_gb=128, backend="vulkan", placement="vram",
        source="github.com/ggml-org/llama.cpp/issues/20354", date="2026-03-10"),
    _report("Qwen3.5-27B", ("Radeon 8060S",), "Q4_K_M", 16.74, 11.81, gpu_gb=128, backend="rocm", placement="vram",
        source="github.com/ggml-org/llama.cpp/issues/20354", date="2026-03-10"),
    _report("Qwen3.5-122B-A10B", ("Radeon 8060S",), "Q4_K_M", 76.46, 23.2, mtp_tok_s=24.4, gpu_gb=128,
        backend="vulkan", placement="vram", n_ctx=128_000, cache_type="q4_0", source=_STRIX, date="2026-05"),
    _report("Qwen3.6-35B-A3B", ("Radeon 8060S",), "UD-Q8_K_XL", 38.5, 45.5, mtp_tok_s=51.0, gpu_gb=128,
        backend="vulkan", placement="vram", n_ctx=128_000, cache_type="q4_0", source=_STRIX, date="2026-05"),
    _report("Qwen3.6-27B", ("Radeon 8060S",), "UD-Q4_K_XL", 17.61, 11.8, mtp_tok_s=20.0, gpu_gb=128,
        backend="vulkan", placement="vram", n_ctx=128_000, cache_type="q4_0", source=_STRIX, date="2026-05"),
    _report("Qwen3.6-35B-A3B", ("Radeon AI PRO R9700",), "UD-Q4_K_XL", 22.24, 104.5, gpu_gb=32, backend="vulkan",
        placement="vram", source="zolotukhin.ai", date="2026-05-09"),
    _report("Qwen3.6-35B-A3B", ("RTX 5080",), "UD-Q4_K_XL", 22.24, 56, gpu_gb=16, ram_gb=128, backend="cuda",
        placement="experts", depth=131_072, n_ctx=131_072, cache_type="q8_0", source="openclawradar.com",
        date="2026-05-20"),
    _report("Qwen3.6-35B-A3B", ("RTX 4060 Ti 8GB",), "Q4_K_S", 20.72, 41.6, gpu_gb=8, backend="cuda",
        placement="experts", depth=16_384, n_ctx=200_000, cache_type="q8_0", source="threadnavigator.com",
        date="2026-05"),
    # Qwen3.8-27B
    _dense(("RTX 3090",), 31, gpu_gb=24, backend="cuda", mtp_tok_s=41),
    _dense(("RTX 3090",), 41.3, gpu_gb=24, backend="cuda", mtp_tok_s=63.5, remark="b10450"),
    _dense(("RTX 3090",), 43.9, quant="UD-Q4_K_XL", gb=17.56, gpu_gb=24, backend="cuda", mtp_tok_s=79.6,
        remark="overclocked"),
    _dense(("RTX 3090",), 52, quant="UD-Q2_K_XL", gb=9.83, gpu_gb=24, backend="cuda", mtp_tok_s=86),
    _dense(("RTX 4090",), 47.7, gpu_gb=24, backend="cuda", mtp_tok_s=76),
    _dense(("RTX 5090",), 61, most_tok_s=77, gpu_gb=32, backend="cuda", mtp_tok_s=109),
    _dense(("RX 7900 XTX",), 28.8, gpu_gb=24, backend="vulkan", mtp_tok_s=70.7),
    _dense(("RX 9060 XT 16GB",), 15.2, quant="Q3", gb=13.15, gpu_gb=16, mtp_tok_s=28.7, n_ctx=32_768,
        remark=_NOT_NAMED),
    _dense(("RTX 5060 Ti 16GB",), 26.3, quant="Q3", gb=13.15, gpu_gb=16, backend="cuda", mtp_tok_s=59.5,
        n_ctx=32_768, remark=_NOT_NAMED),
    _dense(("RTX 5060 Ti 16GB", "RTX 5060 Ti 16GB"), 37, gpu_gb=16, backend="cuda", mtp_tok_s=66,
        remark="split mode tensor"),
    _dense(("RTX 3080 10GB",), 45, quant="UD-IQ2_XXS", gb=7.27, gpu_gb=10, backend="cuda", mtp_tok_s=64, n_ctx=16_384),
    _dense(("RTX 5060 Laptop",), 4.2, quant="IQ4_XS", gb=14.25, gpu_gb=8, backend="cuda", mtp_tok_s=7.3,
        placement="layers"),
    _dense(("RTX 3080 Ti Laptop",), 14.8, quant="UD-Q3_K_XL", gb=13.15, gpu_gb=16, backend="cuda", mtp_tok_s=28.6,
        n_ctx=32_768),
    _dense(("RTX 3060",), 9.7, quant="Q4_K_S", gb=15.36, gpu_gb=12, backend="cuda", placement="layers", n_ctx=98_304,
        source="unsloth/Qwen3.8-27B-GGUF, discussion 61", remark="feed-forward on the CPU"),
    _dense(("Radeon 8060S",), 11.5, gpu_gb=128, mtp_tok_s=23.7),
    _dense(("Apple M4",), 5.8, quant="Q3", gb=13.15, gpu_gb=24, backend="metal", mtp_tok_s=5.8, n_ctx=32_768,
        remark=_NOT_NAMED),
    _dense(("Apple M3 Ultra",), 22.8, gpu_gb=96, backend="metal", mtp_tok_s=24.2),
    _dense(("Radeon AI PRO R9700",), 27, gpu_gb=32, mtp_tok_s=43),
    _dense(("Radeon AI PRO R9700",), 25.5, gpu_gb=32, depth=32_768),
    _dense(("Tesla P40", "Tesla P40"), 11.7, gpu_gb=24, backend="cuda", mtp_tok_s=22.6),
    # Qwen3.8-Flash-Next
    _flash(("RTX 3090",), "UD-IQ3_XXS", 82.0, 16.3, gpu_gb=24, ram_gb=62, ram_kind="DDR4-2667",
        backend="cuda", placement="experts",
        on_cpu=48, date="2026-09-07", source="public code"),
    _flash(("RTX 4090",), "UD-Q4_K_XL", 111.3, 22.5, gpu_gb=24, ram_gb=110, ram_kind="DDR4",
        backend="cuda", placement="experts",
        on_cpu=40, n_ctx=81_920, date="2026-08-27", source="Crow#140"),
    _flash(("RTX 5090",), "UD-Q2_K_XL", 78.9, 41.8, gpu_gb=32, ram_gb=64, ram_kind="DDR5",
        backend="cuda", placement="experts",
        on_cpu=30, depth=33_792, n_ctx=40_960, date="2026", source="public code"),
    _flash(("RTX 3060",), "UD-Q2_K_XL", 78.9, 10.7, gpu_gb=12, ram_gb=40, ram_kind="DDR4",
        backend="cuda", placement="experts",
        date="2026", source="public code"),
    _flash(("Radeon 8060S",), "UD-Q4_K_XL", 111.3, 22.0, gpu_gb=128, backend="vulkan", placement="vram", depth=2_048,
        n_ctx=131_072, date="2026", source="strix-halo-llamacpp#12"),
    _flash(("Radeon 8060S",), "UD-Q4_K_XL", 111.3, 12.9, gpu_gb=128, backend="vulkan", placement="vram",
        depth=60_000, n_ctx=131_072, date="2026", source="strix-halo-llamacpp#12"),
    _flash(("Radeon 8060S",), "UD-Q4_K_XL", 111.3, 9.1, gpu_gb=128, backend="vulkan", placement="vram",
        depth=123_000, n_ctx=131_072, date="2026", source="strix-halo-llamacpp#12"),
    _flash(("NVIDIA GB10",), "UD-IQ4_XS", 93.7, 28.4, mtp_tok_s=43.9, gpu_gb=128, backend="cuda", placement="vram",
        date="2026-10-01", source="github.com/ggml-org/llama.cpp/pull/29761"),
    _flash(("NVIDIA GB10",), "UD-IQ4_XS", 93.7, 14.1, gpu_gb=128, backend="cuda", placement="vram", depth=131_072,
        n_ctx=262_144, date="2026-10-01", source="github.com/ggml-org/llama.cpp/pull/29751",
        remark="21.8 with that pull request, which came after the vendored engine"),
    _flash(("Apple M3 Max",), "UD-IQ4_XS", 93.7, 27.4, mtp_tok_s=38.8, gpu_gb=128, backend="metal", placement="vram",
        date="2026-08", source="github.com/ggml-org/llama.cpp/issues/27836"),
)  # fmt: skip
