# ruff: noqa: E501 (the lines of tables are as they were printed)
"""Texts that people paste of measured speeds, in the forms in which public threads of 2025 and 2026 have them.

The figures of FRAMEWORK are those of a public page of a Framework Desktop (September 2026), of MAC those of an M4 Pro,
of SPLIT_CARDS and ESCAPED the forms of such pages with other figures.
"""

import json
from typing import Final

# A heading names the file; the card stands in the text, as people write it.
FRAMEWORK: Final = """\
Framework Desktop, Ryzen AI MAX+ 395 / Radeon 8060S, 128 GB

### Qwen3.6-35B-A3B-UD-Q4_K_XL.gguf

| model                          |       size |     params | backend    | ngl |  fa |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | --: | --------------: | -------------------: |
| qwen35moe 35B.A3B Q4_K - Medium |  20.81 GiB |    34.66 B | Vulkan     |  99 |   1 |           pp512 |       1501.23 ± 8.75 |
| qwen35moe 35B.A3B Q4_K - Medium |  20.81 GiB |    34.66 B | Vulkan     |  99 |   1 |           tg128 |         60.78 ± 0.23 |
| qwen35moe 35B.A3B Q4_K - Medium |  20.81 GiB |    34.66 B | Vulkan     |  99 |   1 |   pp512 @ d8192 |       1235.50 ± 3.20 |
| qwen35moe 35B.A3B Q4_K - Medium |  20.81 GiB |    34.66 B | Vulkan     |  99 |   1 |   tg128 @ d8192 |         57.06 ± 0.41 |

build: e85e15cf6 (11188)
"""

# The whole terminal, fenced. llama-bench names the card before its table.
TERMINAL: Final = """\
```console
user@box:~$ ./build/bin/llama-bench -m models/Qwen3.6-35B-A3B-UD-Q4_K_M.gguf -fa 1 -d 0,32768
ggml_cuda_init: found 1 CUDA devices (Total VRAM: 24124 MiB):
  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes, VRAM: 24124 MiB (23700 MiB free)
| model                          |       size |     params | backend    | ngl | fa |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | -: | --------------: | -------------------: |
| qwen35moe 35B.A3B Q4_K - Medium |  20.60 GiB |    34.66 B | CUDA       |  -1 |  1 |           pp512 |      2870.12 ± 21.40 |
| qwen35moe 35B.A3B Q4_K - Medium |  20.60 GiB |    34.66 B | CUDA       |  -1 |  1 |           tg128 |        121.62 ± 0.45 |
| qwen35moe 35B.A3B Q4_K - Medium |  20.60 GiB |    34.66 B | CUDA       |  -1 |  1 |  tg128 @ d32768 |         98.20 ± 0.12 |
| qwen35moe 35B.A3B Q4_K - Medium |  20.60 GiB |    34.66 B | CUDA       |  -1 |  1 |     pp512+tg128 |        410.33 ± 1.10 |

build: 1fd5f48a (12001)
```
"""

# Older tables: a space in the test, an old name of the Vulkan driver, experts on the CPU, a smaller KV cache.
EXPERTS: Final = """\
ggml_vulkan: Found 1 Vulkan devices:
ggml_vulkan: 0 = NVIDIA GeForce RTX 3060 (NVIDIA) | uma: 0 | fp16: 1 | warp size: 32 | shared memory: 49152
| model                          |       size |     params | backend    | ngl | n_cpu_moe | type_k | type_v | test   |     t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | --------: | -----: | -----: | ------ | ------: |
| qwen35moe 35B.A3B Q4_K - Medium |  20.60 GiB |    34.66 B | Vulkan     |  99 |        24 |   q8_0 |   q8_0 | tg 128 | 38.4 ± 0.2 |
"""

SPLIT_CARDS: Final = """\
ggml_cuda_init: found 2 CUDA devices (Total VRAM: 31692 MiB):
  Device 0: NVIDIA GeForce RTX 5070 Ti, compute capability 12.0, VMM: yes, VRAM: 15842 MiB
  Device 1: NVIDIA GeForce RTX 5060 Ti, compute capability 12.0, VMM: yes, VRAM: 15850 MiB
| model                          |       size |     params | backend    | ngl | sm    |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | ----- | --------------: | -------------------: |
| qwen35 27B IQ4_XS - 4.25 bpw   |  13.90 GiB |    26.90 B | CUDA,RPC   |  99 | layer |           tg128 |         33.10 ± 0.05 |
| qwen35 27B IQ4_XS - 4.25 bpw   |  13.90 GiB |    26.90 B | CUDA,RPC   |  99 | none  |           tg128 |         46.20 ± 0.05 |
"""

# A Mac: llama-bench names the threads and no layers, because BLAS counts as a CPU there.
MAC: Final = """\
ggml_metal_device_init: GPU name:   Apple M4 Pro
| model                          |       size |     params | backend    | threads | type_k | type_v | fa |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | ------: | -----: | -----: | -: | --------------: | -------------------: |
| qwen35moe 35B.A3B IQ4_XS - 4.25 bpw |  16.50 GiB |    34.66 B | BLAS,MTL   |       8 |   q4_1 |   q4_1 |  1 |           tg128 |         41.64 ± 0.04 |

build: d05fe1d7d (9010)
"""

# A reply on GitHub: quoted, the best row bold, underscores escaped by an editor, no-break spaces, a German locale.
ESCAPED: Final = """\
> > | model | size | params | backend | ngl | test | t/s |
> > |---|---:|---:|---|---:|---:|---:|
> > | qwen35 9B Q8\\_0 | 8,86 GiB | 8,95 B | CUDA | 99 | pp512 | 7.846,58 ± 13,85 |
> > | **qwen35 9B Q8\\_0** | **8,86 GiB** | 8,95 B | CUDA | 99 | **tg128\u00a0\\@\u00a0d=16,384** | **83,17 ± 0,10** |
"""

_FIELDS: Final = {
    "build_commit": "8cf427ff", "build_number": 11163, "cpu_info": "AMD Ryzen 7 7800X3D 8-Core Processor",
    "gpu_info": "NVIDIA GeForce RTX 4080", "backends": "CUDA", "model_filename": "models/Qwen3.5-9B-Q8_0.gguf",
    "model_type": "qwen35 9B Q8_0", "model_size": 9513000000, "model_n_params": 8953803264, "n_batch": 2048,
    "n_threads": 8, "type_k": "f16", "type_v": "f16", "n_gpu_layers": 99, "n_cpu_moe": 0, "split_mode": "layer",
    "main_gpu": 0, "no_kv_offload": False, "flash_attn": -1, "devices": "auto", "tensor_split": "0.00",
    "tensor_buft_overrides": "none", "n_prompt": 0, "n_gen": 128, "n_depth": 4096,
    "test_time": "2026-09-24T11:57:09Z", "avg_ts": 79.25, "stddev_ts": 0.1,
}  # fmt: skip
_PROMPT: Final = _FIELDS | {"n_prompt": 512, "n_gen": 0, "avg_ts": 7285.676949}
JSON: Final = json.dumps([_PROMPT | {"samples_ts": [7285.6]}, _FIELDS | {"samples_ts": [79.2, 79.3]}], indent=2)
JSON_LINES: Final = f"{json.dumps(_PROMPT)}\n{json.dumps(_FIELDS)}\n"
CSV: Final = "\n".join(
    (",".join(_FIELDS), *(",".join(f'"{value}"' for value in row.values()) for row in (_PROMPT, _FIELDS)))
)


def wrapped(text: str, width: int) -> str:
    """Return the text as a narrow terminal shows it, and as it's copied from there."""
    lines = (line[start : start + width] for line in text.splitlines() for start in range(0, max(len(line), 1), width))
    return "\n".join(line.rstrip() for line in lines)
