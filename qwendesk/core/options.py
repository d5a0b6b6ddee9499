"""The options for loading a model. Those for generating an answer are in core/generation_options.py.

The field names are the keys of `--set key=value` and of the settings table (core/settings.py). The values here are not
always what is used: the planner decides the options that are at their default here (hardware/ladder.py, where the
context lengths of each aim are).
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from qwendesk.core.settings import Setting

CacheType = Literal["f16", "bf16", "f32", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]

_MODEL, _GPU, _MEMORY, _CONTEXT, _VISION, _SPEED = "Model", "GPU", "Memory", "Context", "Pictures", "Speed"
_CACHE, _DRAFTS = "Chat memory (KV cache)", "Drafts"
_YARN = "Only used with the RoPE scaling yarn."


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to load a model. A change needs a reload. The planner replaces every "auto" before loading."""

    needs_reload: ClassVar[bool] = True

    model: Annotated[str, Setting("Model file", "--model", "The GGUF file to load.", _MODEL)]
    mmproj: Annotated[
        str,
        Setting("Vision file (mmproj)", "--mmproj", "The vision encoder of the model.", _VISION),
    ] = ""
    aim: Annotated[
        Literal["speed", "balanced", "long_context"],
        Setting(
            "Aim", "",
            "What to favour when memory is short: Speed keeps the model on the GPU, Long context keeps room for long "
            "chats.",
            _MEMORY,
        ),
    ] = "balanced"
    n_ctx: Annotated[
        int,
        Setting(
            "Context length", "--ctx-size",
            "How many tokens of text and pictures fit in one chat. Longer needs more memory. 0 chooses automatically. "
            "Beyond the trained length, YaRN is used if it works with the model.",
            _CONTEXT, unit="tokens", low=0, high=4_194_304, basic=True, ollama="num_ctx", vllm="--max-model-len",
        ),
    ] = 0
    n_batch: Annotated[
        int,
        Setting("Batch size", "--batch-size", "The most tokens passed to the engine at once.", _SPEED,
                unit="tokens", low=1, high=65_536, ollama="num_batch"),
    ] = 2048
    n_ubatch: Annotated[
        Literal["auto"] | int,
        Setting(
            "Evaluation batch size", "--ubatch-size",
            "How many prompt tokens are processed together. Larger is faster (user reports with experts on the CPU: "
            "458 tok/s with 512, 706 with 1024) but needs more memory, and Stop waits for the current batch.",
            _SPEED, unit="tokens", low=1, high=65_536, source="r/LocalLLaMA reports collected in 2026",
        ),
    ] = "auto"
    n_threads: Annotated[
        int,
        Setting("CPU threads", "--threads", "Threads for generating text. 0 uses all physical cores.",
                _SPEED, low=0, high=512, ollama="num_thread"),
    ] = 0
    n_threads_batch: Annotated[
        int,
        Setting("CPU threads for prompts", "--threads-batch",
                "Threads for processing prompts. 0 uses as many as for generating.",
                _SPEED, low=0, high=512),
    ] = 0
    n_gpu_layers: Annotated[
        Literal["auto", "all"] | int,
        Setting("GPU offload", "--n-gpu-layers",
                "Layers in VRAM. Auto keeps as many as fit. A number that you set replaces this plan, as in "
                "llama.cpp, where it turns --fit off.",
                _GPU, unit="layers", low=0, high=10_000, basic=True, ollama="num_gpu"),
    ] = "auto"
    n_cpu_moe: Annotated[
        Literal["auto"] | int,
        Setting(
            "Expert layers on CPU", "--n-cpu-moe",
            "How many layers keep their experts in RAM while the rest is on the GPU. For a mixture-of-experts model, "
            "this saves VRAM at the lowest cost in speed.",
            _GPU, unit="layers", low=0, high=10_000, basic=True,
        ),
    ] = "auto"
    override_tensor: Annotated[
        tuple[str, ...],
        Setting("Tensor placement", "--override-tensor",
                "PATTERN=DEVICE pairs. The first regular expression that matches a tensor's name places it.", _GPU,
                placeholder=r"blk\.1\d\..*_exps=CPU"),
    ] = ()
    split_mode: Annotated[
        Literal["layer", "row", "tensor", "none"],
        Setting("Split mode", "--split-mode",
                "How several GPUs share a model. Layer suits most PCs, because little crosses the slots. Row and "
                "tensor send data for every layer and need fast links: NVLink, or PCIe 4.0 x8 or more for each GPU. "
                "The Engine page says what yours are good for.",
                _GPU),
    ] = "layer"
    tensor_split: Annotated[
        tuple[float, ...],
        Setting("Split shares", "--tensor-split", "Share of the model on each GPU, for example 3,1.", _GPU,
                placeholder="3, 1"),
    ] = ()
    main_gpu: Annotated[
        int, Setting("Main GPU", "--main-gpu", "The GPU to use if the model isn't split.", _GPU,
                     low=0, high=63, ollama="main_gpu")
    ] = 0
    devices: Annotated[
        tuple[str, ...],
        Setting("Devices", "--device", "Names of the devices to use. None uses only the CPU, empty uses all GPUs.",
                _GPU, placeholder="CUDA0; CUDA1"),
    ] = ()
    flash_attn: Annotated[
        Literal["auto", "on", "off"],
        Setting("Flash attention", "--flash-attn", "Saves memory and time. Required for a quantised V cache.", _MEMORY),
    ] = "auto"
    type_k: Annotated[
        Literal["auto"] | CacheType,
        Setting(
            "K cache type", "--cache-type-k",
            "q8_0 halves the cache at +0.0043 perplexity, but users report small LaTeX mistakes from 20-40K tokens. "
            "Auto uses f16 if it fits.",
            _CACHE, source="collected reports, 2026", basic=True,
        ),
    ] = "auto"
    type_v: Annotated[
        Literal["auto"] | CacheType,
        Setting("V cache type", "--cache-type-v", "As for K. Quantised types need flash attention.", _CACHE,
                basic=True),
    ] = "auto"
    load_mode: Annotated[
        Literal["auto", "mmap", "mlock", "none"],
        Setting(
            "Load mode", "--load-mode",
            "mmap reads the file as needed, mlock keeps it in RAM, None copies it. Auto uses None if experts stay in "
            "RAM, otherwise mmap.",
            _MEMORY,
        ),
    ] = "auto"
    lazy_mode: Annotated[
        Literal["auto", "on", "off"],
        Setting(
            "Tables on disk", "--lazy-mode",
            "Some models, such as Qwen3.8-Flash-Next, have a table of which each token needs a few rows. On reads them "
            "from the file, which should be on an SSD. Off keeps the table in RAM. Auto is on from 4 GiB, but off for "
            "a GPU that shares the RAM.",
            _MEMORY, source="llama.cpp b11312",
        ),
    ] = "auto"
    offload_kqv: Annotated[
        bool, Setting("KV cache on GPU", "--no-kv-offload",
                      "If off, the KV cache is kept in RAM, which is slow.", _CACHE)
    ] = True
    op_offload: Annotated[
        bool,
        Setting("GPU helps with CPU layers", "--no-op-offload",
                "Process large batches of CPU layers on the GPU.", _GPU),
    ] = True
    swa_full: Annotated[
        bool,
        Setting("Full sliding-window cache", "--swa-full", "Keep all positions of sliding-window layers.", _CACHE),
    ] = False
    kv_overrides: Annotated[
        tuple[str, ...],
        Setting("Header overrides", "--override-kv",
                "KEY=TYPE:VALUE, where TYPE is int, float, bool or str. The example uses 6 experts a token: faster "
                "than with the number that the model was trained with, and less accurate.",
                _MODEL,
                placeholder="qwen35moe.expert_used_count=int:6"),
    ] = ()
    rope_scaling: Annotated[
        Literal["auto", "none", "linear", "yarn"],
        Setting("RoPE scaling", "--rope-scaling",
                "yarn extends the context beyond the trained length, but reduces quality in short chats. Auto uses it "
                "only for a context that needs it, with models that it is known to work with.",
                _CONTEXT),
    ] = "auto"
    rope_freq_base: Annotated[
        float, Setting("RoPE base frequency", "--rope-freq-base", "0 uses the model's default.", _CONTEXT, low=0)
    ] = 0.0
    rope_freq_scale: Annotated[
        float,
        Setting("RoPE frequency scale", "--rope-freq-scale",
                "1 divided by llama.cpp's --rope-scale: 0.25 for YaRN with factor 4. 0 chooses automatically.",
                _CONTEXT, low=0),
    ] = 0.0
    yarn_ext_factor: Annotated[
        float, Setting("YaRN extrapolation mix", "--yarn-ext-factor", _YARN, _CONTEXT, minus_one="Default")
    ] = -1.0
    yarn_attn_factor: Annotated[
        float, Setting("YaRN attention factor", "--yarn-attn-factor", _YARN, _CONTEXT, minus_one="Default")
    ] = -1.0
    yarn_beta_fast: Annotated[
        float, Setting("YaRN low correction", "--yarn-beta-fast", _YARN, _CONTEXT, minus_one="Default")
    ] = -1.0
    yarn_beta_slow: Annotated[
        float, Setting("YaRN high correction", "--yarn-beta-slow", _YARN, _CONTEXT, minus_one="Default")
    ] = -1.0
    yarn_orig_ctx: Annotated[
        int, Setting("YaRN trained context", "--yarn-orig-ctx",
                     "The context length that the model was trained on. 0 chooses automatically.", _CONTEXT,
                     unit="tokens", low=0)
    ] = 0
    speculative: Annotated[
        Literal["auto", "off", "mtp", "lookup"],
        Setting("Token drafts", "",
                "Guess the next tokens and check several at once. mtp asks the model's draft head, inside the file or "
                "beside it. lookup takes guesses from the chat, which is faster for edits, code, quotes and tables. "
                "Guessing pauses where it doesn't pay off.",
                _DRAFTS),
    ] = "auto"
    draft_model: Annotated[
        str,
        Setting("Draft head file", "--model-draft",
                "The model's draft head (MTP) in a file of its own. One beside the model is found automatically.",
                _DRAFTS),
    ] = ""
    draft_n_max: Annotated[
        int,
        Setting("Most drafted tokens", "",
                "How many tokens are guessed at once. Each needs memory for a copy of the recurrent state.",
                _DRAFTS, unit="tokens", low=1, high=16),
    ] = 3
    numa: Annotated[
        Literal["off", "distribute", "isolate", "numactl"],
        Setting("NUMA", "--numa", "For computers with several CPU sockets.", _SPEED),
    ] = "off"
    chat_template_file: Annotated[
        str,
        Setting("Chat template file", "--chat-template-file",
                "A Jinja file to use instead of the model's own template.",
                _MODEL),
    ] = ""
    vision: Annotated[
        Literal["auto", "gpu", "cpu", "off"],
        Setting("Pictures", "--no-mmproj-offload", "Where pictures are processed. CPU saves VRAM but is slower.",
                _VISION, basic=True),
    ] = "auto"
    image_min_tokens: Annotated[
        int,
        Setting("Fewest tokens per picture", "--image-min-tokens",
                "Smaller pictures are enlarged. 0 uses the model's default.",
                _VISION, unit="tokens", low=0, high=65_536),
    ] = 0
    image_max_tokens: Annotated[
        int,
        Setting("Most tokens per picture", "--image-max-tokens",
                "Larger pictures are scaled down. 0 uses the model's default.",
                _VISION, unit="tokens", low=0, high=65_536),
    ] = 0
    lora: Annotated[
        tuple[str, ...],
        Setting("LoRA adapters", "--lora", "FILE or FILE=SCALE. Separate several with semicolons.", _MODEL,
                placeholder="style.gguf=0.5; tone.gguf"),
    ] = ()
    check_tensors: Annotated[
        bool, Setting("Check tensor data", "--check-tensors", "Look for invalid values while loading. Slower.", _MODEL)
    ] = False
    cache_budget_mib: Annotated[
        int,
        Setting("Prompt cache", "",
                "RAM for checkpoints and processed pictures, so that answers start sooner.",
                _MEMORY, unit="MiB", low=0, high=1_048_576),
    ] = 1024
    chat_states_mib: Annotated[
        int,
        Setting("Chats kept in RAM", "--cache-ram",
                "RAM for the states of other chats, so that going back to one continues at once. It is used only while "
                "that much is free. 0 keeps none.",
                _MEMORY, unit="MiB", low=0, high=1_048_576),
    ] = 4096


class DecidedOptions(LoadOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Load options as the engine takes them: the planner has replaced every "auto" by a value.

    The defaults are llama.cpp's. `flash_attn`, `rope_scaling` and `lazy_mode` may still be "auto": llama.cpp resolves
    them itself.
    """

    n_ubatch: int = 512
    n_gpu_layers: Literal["all"] | int = "all"
    n_cpu_moe: int = 0
    type_k: CacheType = "f16"
    type_v: CacheType = "f16"
    load_mode: Literal["mmap", "mlock", "none"] = "mmap"
    vision: Literal["gpu", "cpu", "off"] = "gpu"
    speculative: Literal["off", "mtp", "lookup"] = "off"


def decided_options(options: LoadOptions, **changes: Any) -> DecidedOptions:
    """Return `options` with `changes`; every remaining "auto" becomes llama.cpp's default."""
    values = msgspec.structs.asdict(options) | changes
    return msgspec.convert({key: value for key, value in values.items() if value != "auto"}, DecidedOptions)
