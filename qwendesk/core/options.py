"""Every option of the engine, declared once: how a model is loaded, and how an answer is made.

The field names are the keys of `--set key=value` and of the settings table (see core/settings.py).
"""

from typing import Annotated, ClassVar, Literal

import msgspec

from qwendesk.core.settings import Setting

CacheType = Literal["f16", "bf16", "f32", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]

_MODEL, _GPU, _MEMORY, _CONTEXT, _VISION, _SPEED = "Model", "GPU", "Memory", "Context", "Pictures", "Speed"
_SAMPLING, _REPETITION, _THINKING, _OUTPUT = "Sampling", "Repetition", "Thinking", "Output"
_QWEN_CARD = "Qwen3.5 model card"


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to load a model. Changing any of these needs a reload. A value named auto is decided before loading."""

    needs_reload: ClassVar[bool] = True

    model: Annotated[str, Setting("Model file", "--model", "The GGUF file to load.", _MODEL)]
    mmproj: Annotated[
        str,
        Setting("Picture file (mmproj)", "--mmproj", "The vision encoder that belongs to the model.", _VISION),
    ] = ""
    aim: Annotated[
        Literal["speed", "balanced", "long_context"],
        Setting(
            "Aim", "",
            "What gets the memory where there is too little: Speed keeps the model on the GPU, Long context keeps room "
            "for long chats.",
            _MEMORY, basic=True,
        ),
    ] = "balanced"
    n_ctx: Annotated[
        int,
        Setting(
            "Context length", "--ctx-size",
            "How much text and pictures the model sees at once. Longer needs more memory; 0 takes the model's own.",
            _CONTEXT, unit="tokens", low=0, high=4_194_304, basic=True, ollama="num_ctx", vllm="--max-model-len",
        ),
    ] = 0
    n_batch: Annotated[
        int,
        Setting("Batch size", "--batch-size", "Most tokens handed to the engine at once.", _SPEED,
                unit="tokens", low=1, high=65_536, ollama="num_batch"),
    ] = 2048
    n_ubatch: Annotated[
        Literal["auto"] | int,
        Setting(
            "Evaluation batch size", "--ubatch-size",
            "Tokens computed together while a prompt is read. Larger reads faster (512: 458, 1024: 706 tok/s were "
            "reported with experts on the CPU) and needs more memory; Stop waits for one such batch.",
            _SPEED, unit="tokens", low=1, high=65_536, source="r/LocalLLaMA reports collected in 2026",
        ),
    ] = "auto"
    n_threads: Annotated[
        int,
        Setting("CPU threads", "--threads", "Threads while writing; 0 takes the physical cores.",
                _SPEED, low=0, high=512, ollama="num_thread"),
    ] = 0
    n_threads_batch: Annotated[
        int,
        Setting("CPU threads for reading", "--threads-batch", "Threads while reading a prompt; 0 takes the same.",
                _SPEED, low=0, high=512),
    ] = 0
    n_gpu_layers: Annotated[
        Literal["auto", "all"] | int,
        Setting("GPU offload", "--n-gpu-layers", "Layers kept in video memory; Auto takes what fits.", _GPU,
                unit="layers", low=0, high=10_000, ollama="num_gpu"),
    ] = "auto"
    n_cpu_moe: Annotated[
        Literal["auto"] | int,
        Setting(
            "Expert layers on CPU", "--n-cpu-moe",
            "Layers whose experts stay in RAM while everything else is on the GPU: the cheapest way to save video "
            "memory on a mixture of experts.",
            _GPU, unit="layers", low=0, high=10_000,
        ),
    ] = "auto"
    override_tensor: Annotated[
        tuple[str, ...],
        Setting("Tensor placement", "--override-tensor",
                "PATTERN=DEVICE pairs; the first regular expression that matches a tensor's name decides.", _GPU),
    ] = ()
    split_mode: Annotated[
        Literal["layer", "row", "tensor", "none"],
        Setting("Split mode", "--split-mode", "How several GPUs share a model.", _GPU),
    ] = "layer"
    tensor_split: Annotated[
        tuple[float, ...],
        Setting("Split shares", "--tensor-split", "Share of the model per GPU, for example 3,1.", _GPU),
    ] = ()
    main_gpu: Annotated[
        int, Setting("Main GPU", "--main-gpu", "The GPU that is used when nothing is split.", _GPU,
                     low=0, high=63, ollama="main_gpu")
    ] = 0
    devices: Annotated[
        tuple[str, ...],
        Setting("Devices", "--device", "Names of the devices to use, or none for the CPU alone; empty: all GPUs.",
                _GPU),
    ] = ()
    flash_attn: Annotated[
        Literal["auto", "on", "off"],
        Setting("Flash attention", "--flash-attn", "Saves memory and time; a quantised V cache needs it.", _MEMORY),
    ] = "auto"
    type_k: Annotated[
        Literal["auto"] | CacheType,
        Setting(
            "K cache type", "--cache-type-k",
            "q8_0 halves the cache at +0.0043 perplexity; small LaTeX slips were reported from 20-40K tokens on. "
            "Auto: f16 while it fits.",
            _MEMORY, source="collected reports, 2026",
        ),
    ] = "auto"
    type_v: Annotated[
        Literal["auto"] | CacheType,
        Setting("V cache type", "--cache-type-v", "As for K; quantised types need flash attention.", _MEMORY),
    ] = "auto"
    load_mode: Annotated[
        Literal["auto", "mmap", "mlock", "none"],
        Setting(
            "Load mode", "--load-mode",
            "mmap reads the file as needed, mlock pins it in RAM, None copies it. Auto: None when experts stay in "
            "RAM, else mmap.",
            _MEMORY,
        ),
    ] = "auto"
    offload_kqv: Annotated[
        bool, Setting("KV cache on GPU", "--no-kv-offload", "Off keeps the whole cache in RAM: slow.", _MEMORY)
    ] = True
    op_offload: Annotated[
        bool,
        Setting("GPU helps with CPU layers", "--no-op-offload", "Large batches of CPU layers run on the GPU.", _GPU),
    ] = True
    swa_full: Annotated[
        bool,
        Setting("Full sliding-window cache", "--swa-full", "Keep all positions of sliding-window layers.", _MEMORY),
    ] = False
    kv_overrides: Annotated[
        tuple[str, ...],
        Setting("Header overrides", "--override-kv", "KEY=TYPE:VALUE, TYPE being int, float, bool or str.", _MODEL),
    ] = ()
    rope_scaling: Annotated[
        Literal["auto", "none", "linear", "yarn"],
        Setting("RoPE scaling", "--rope-scaling", "yarn reaches beyond the trained context; it hurts short texts.",
                _CONTEXT),
    ] = "auto"
    rope_freq_base: Annotated[
        float, Setting("RoPE base frequency", "--rope-freq-base", "0 takes the model's.", _CONTEXT, low=0)
    ] = 0.0
    rope_freq_scale: Annotated[
        float, Setting("RoPE frequency scale", "--rope-freq-scale", "0 takes the model's.", _CONTEXT, low=0)
    ] = 0.0
    yarn_ext_factor: Annotated[
        float, Setting("YaRN extrapolation mix", "--yarn-ext-factor", "-1 takes the default.", _CONTEXT)
    ] = -1.0
    yarn_attn_factor: Annotated[
        float, Setting("YaRN attention factor", "--yarn-attn-factor", "-1 takes the default.", _CONTEXT)
    ] = -1.0
    yarn_beta_fast: Annotated[
        float, Setting("YaRN low correction", "--yarn-beta-fast", "-1 takes the default.", _CONTEXT)
    ] = -1.0
    yarn_beta_slow: Annotated[
        float, Setting("YaRN high correction", "--yarn-beta-slow", "-1 takes the default.", _CONTEXT)
    ] = -1.0
    yarn_orig_ctx: Annotated[
        int, Setting("YaRN trained context", "--yarn-orig-ctx", "0 takes the model's.", _CONTEXT, unit="tokens", low=0)
    ] = 0
    numa: Annotated[
        Literal["off", "distribute", "isolate", "numactl"],
        Setting("NUMA", "--numa", "For boards with several CPU sockets.", _SPEED),
    ] = "off"
    chat_template_file: Annotated[
        str,
        Setting("Chat template file", "--chat-template-file", "A Jinja file instead of the model's own template.",
                _MODEL),
    ] = ""
    vision: Annotated[
        Literal["auto", "gpu", "cpu", "off"],
        Setting("Pictures", "--no-mmproj-offload", "Where pictures are encoded: CPU saves video memory, slower.",
                _VISION, basic=True),
    ] = "auto"
    image_min_tokens: Annotated[
        int,
        Setting("Fewest tokens per picture", "--image-min-tokens", "Small pictures are enlarged; 0 takes the model's.",
                _VISION, unit="tokens", low=0, high=65_536),
    ] = 0
    image_max_tokens: Annotated[
        int,
        Setting("Most tokens per picture", "--image-max-tokens", "Larger pictures are reduced; 0 takes the model's.",
                _VISION, unit="tokens", low=0, high=65_536),
    ] = 0
    lora: Annotated[
        tuple[str, ...],
        Setting("LoRA adapters", "--lora", "FILE or FILE=SCALE, several separated by semicolons.", _MODEL),
    ] = ()
    check_tensors: Annotated[
        bool, Setting("Check tensor data", "--check-tensors", "Slower load that finds invalid numbers.", _MODEL)
    ] = False
    cache_budget_mib: Annotated[
        int,
        Setting("Prompt cache", "--cache-ram", "RAM for checkpoints and encoded pictures that keep turns instant.",
                _MEMORY, unit="MiB", low=0, high=1_048_576),
    ] = 1024


class GenerationOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one answer is made. Every request carries all of them; none needs a reload."""

    needs_reload: ClassVar[bool] = False

    temperature: Annotated[
        float,
        Setting("Temperature", "--temp", "Randomness; 0 always takes the likeliest token.", _SAMPLING,
                low=0, high=10, source=_QWEN_CARD, basic=True, ollama="temperature", vllm="temperature"),
    ] = 1.0
    top_k: Annotated[
        int, Setting("Top-k", "--top-k", "Keep the k likeliest tokens; 0 keeps all.", _SAMPLING,
                     low=0, high=1_000_000, ollama="top_k", vllm="top_k")
    ] = 20
    top_p: Annotated[
        float, Setting("Top-p", "--top-p", "Keep the likeliest tokens that add up to p.", _SAMPLING,
                       low=0, high=1, ollama="top_p", vllm="top_p")
    ] = 0.95
    min_p: Annotated[
        float, Setting("Min-p", "--min-p", "Drop tokens below this share of the best one.", _SAMPLING,
                       low=0, high=1, ollama="min_p", vllm="min_p")
    ] = 0.0
    typical_p: Annotated[
        float, Setting("Typical-p", "--typical", "Locally typical sampling; 1 is off.", _SAMPLING,
                       low=0, high=1, ollama="typical_p")
    ] = 1.0
    repeat_penalty: Annotated[
        float,
        Setting("Repeat penalty", "--repeat-penalty", "Above 1 makes recent tokens less likely.", _REPETITION,
                low=0.01, high=10, ollama="repeat_penalty", vllm="repetition_penalty"),
    ] = 1.0
    frequency_penalty: Annotated[
        float,
        Setting("Frequency penalty", "--frequency-penalty", "Grows with each repetition.",
                _REPETITION, low=-10, high=10, ollama="frequency_penalty", vllm="frequency_penalty"),
    ] = 0.0
    presence_penalty: Annotated[
        float,
        Setting("Presence penalty", "--presence-penalty",
                "Once for every token that occurred. Qwen3.5 needs 1.5 when it thinks, or long thoughts loop.",
                _REPETITION, low=-10, high=10, source=_QWEN_CARD, ollama="presence_penalty", vllm="presence_penalty"),
    ] = 1.5
    penalty_last_n: Annotated[
        int,
        Setting("Penalty window", "--repeat-last-n", "Tokens the penalties look back; 0 is off, -1 the whole context.",
                _REPETITION, unit="tokens", low=-1, high=4_194_304, ollama="repeat_last_n"),
    ] = 64
    dry_multiplier: Annotated[
        float, Setting("DRY strength", "--dry-multiplier", "Against repeated phrases; 0 is off.",
                       _REPETITION, low=0, high=100)
    ] = 0.0
    dry_base: Annotated[
        float, Setting("DRY base", "--dry-base", "Growth per token beyond the allowed length.",
                       _REPETITION, low=0, high=100)
    ] = 1.75
    dry_allowed_length: Annotated[
        int, Setting("DRY allowed length", "--dry-allowed-length", "Repetitions up to here are free.", _REPETITION,
                     unit="tokens", low=0, high=100_000)
    ] = 2
    dry_penalty_last_n: Annotated[
        int, Setting("DRY window", "--dry-penalty-last-n", "-1 the whole context, 0 off.", _REPETITION, unit="tokens",
                     low=-1, high=4_194_304)
    ] = -1
    xtc_probability: Annotated[
        float, Setting("XTC probability", "--xtc-probability", "Chance to cut the likeliest tokens; 0 is off.",
                       _SAMPLING,
                       low=0, high=1)
    ] = 0.0
    xtc_threshold: Annotated[
        float, Setting("XTC threshold", "--xtc-threshold", "Tokens above this may be cut.", _SAMPLING, low=0, high=1)
    ] = 0.1
    seed: Annotated[
        int, Setting("Seed", "--seed", "The same seed gives the same answer; -1 takes a new one.", _SAMPLING,
                     low=-1, high=4_294_967_294, ollama="seed", vllm="seed")
    ] = -1
    logit_bias: Annotated[
        tuple[str, ...],
        Setting("Logit bias", "--logit-bias", "TOKEN=BIAS pairs; TOKEN is a token id, BIAS a number or -inf.",
                _SAMPLING),
    ] = ()
    stop: Annotated[
        tuple[str, ...],
        Setting("Stop texts", "--reverse-prompt", "The answer ends before any of these; thoughts are not searched.",
                _OUTPUT, ollama="stop"),
    ] = ()
    max_tokens: Annotated[
        int,
        Setting("Longest output", "--predict", "Thought and answer together; -1 up to the context.", _OUTPUT,
                unit="tokens", low=-1, high=4_194_304, ollama="num_predict", vllm="max_tokens"),
    ] = -1
    json_schema: Annotated[
        str, Setting("JSON schema", "--json-schema", "The answer follows this schema (JSON text).", _OUTPUT)
    ] = ""
    grammar: Annotated[
        str,
        Setting("Grammar", "--grammar",
                "The answer follows this GBNF grammar from its rule root on. Not together with a JSON schema.",
                _OUTPUT, is_block=True),
    ] = ""
    enable_thinking: Annotated[
        bool, Setting("Thinking", "--reasoning", "Reason before answering: better on hard questions, slower.",
                      _THINKING, basic=True)
    ] = True
    preserve_thinking: Annotated[
        bool,
        Setting("Keep earlier thoughts", "--chat-template-kwargs",
                "Qwen3.6 can see its earlier thoughts; it costs room.",
                _THINKING),
    ] = False
    thinking_budget: Annotated[
        int,
        Setting("Thinking budget", "--reasoning-budget", "Tokens of thought before it must answer; -1 is unlimited.",
                _THINKING, unit="tokens", low=-1, high=4_194_304, basic=True),
    ] = -1
    thinking_close: Annotated[
        str,
        Setting("Closing text of a cut thought", "--reasoning-budget-message",
                "Inserted when the budget is used up or you press Answer now. It must hold </think>.", _THINKING,
                pattern=r"[\s\S]*</think>[\s\S]*", example="a text with </think> in it", is_block=True),
    ] = "\n</think>\n\n"
    context_overflow: Annotated[
        Literal["stop", "drop_oldest"],
        Setting("When the context is full", "", "Stop ends the answer, Drop the oldest leaves out the oldest turns.",
                _CONTEXT),
    ] = "stop"
    cache_prompt: Annotated[
        bool, Setting("Use the prompt cache", "--no-cache-prompt", "Off reads everything again each turn.", _SPEED)
    ] = True
