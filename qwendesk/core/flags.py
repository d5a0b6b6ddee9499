"""How llama.cpp, Ollama, vLLM, SGLang and MLX spell options, and what a flag of theirs is here.

An option's own flag is in its Setting; here are its other spellings, flags that stand for a certain value, and flags
without an option here, with a sentence that says why. llama.cpp's are those of its common/arg.cpp.
"""

import functools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, table
from qwendesk.core.translation import join_sentences, mark, tr

Program = Literal["llama.cpp", "ollama", "vllm", "sglang", "mlx", "hf"]


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """The spellings of one flag of a program, and what it is here."""

    program: Program
    names: tuple[str, ...]
    key: str = ""
    """The option that it sets; "" if there is none."""
    value: str = ""
    """Value of the option, as text; "" if that is the word that follows."""
    n_values: int = 1
    """Number of words that follow it; -1 if one may follow."""
    note: str = ""
    """Reason why it has no effect here, or what else to know, as a marked English sentence."""
    see: tuple[str, ...] = ()
    """Options to show to who searches for it, apart from `key`."""


def _value(names: str, key: str, note: str = "", *, n_values: int = 1) -> Flag:
    return Flag(program="llama.cpp", names=tuple(names.split()), key=key, note=note, n_values=n_values)


def _switch(names: str, key: str, value: str) -> Flag:
    return Flag(program="llama.cpp", names=tuple(names.split()), key=key, value=value, n_values=0)


def _unused(note: str, with_value: str, without: str = "", *, see: str = "") -> tuple[Flag, ...]:
    """Return the flags of llama.cpp that have no effect for the same reason, those that take a value first."""
    return tuple(
        Flag(program="llama.cpp", names=(name,), note=note, see=tuple(see.split()), n_values=n_values)
        for names, n_values in ((with_value, 1), (without, 0))
        for name in names.split()
    )


# Other spellings of llama.cpp for the flags in the settings table.
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "--model": "-m",
        "--mmproj": "-mm",
        "--model-draft": "-md --spec-draft-model",
        "--ctx-size": "-c",
        "--batch-size": "-b",
        "--ubatch-size": "-ub",
        "--threads": "-t",
        "--threads-batch": "-tb",
        "--n-gpu-layers": "-ngl --gpu-layers",
        "--n-cpu-moe": "-ncmoe",
        "--override-tensor": "-ot",
        "--split-mode": "-sm",
        "--tensor-split": "-ts",
        "--main-gpu": "-mg",
        "--device": "-dev",
        "--cache-type-k": "-ctk",
        "--cache-type-v": "-ctv",
        "--load-mode": "-lm",
        "--lazy-mode": "-lzm",
        "--cache-ram": "-cram",
        "--no-kv-offload": "-nkvo",
        "--temp": "--temperature",
        "--typical": "--typical-p",
        "--seed": "-s",
        "--logit-bias": "-l",
        "--reverse-prompt": "-r",
        "--predict": "-n --n-predict",
        "--json-schema": "-j",
    }
)

_ALWAYS_TEMPLATE = mark("QwenDesk always uses the chat template that is in the model.")
_ONE_CHAT = mark(
    "QwenDesk answers one chat at a time with the whole context, as --parallel 1 does. With a larger number, "
    "llama-server divides the context."
)
_FIT = mark("QwenDesk always plans what fits, for all options that you leave on Auto.")
_ALL_LAYERS = mark("A number set by hand is kept: QwenDesk then no longer chooses how many layers fit.")
_PLACED = mark("Expert layers on CPU does the same layer by layer, and Auto chooses as few as needed.")
_SERVER = mark("QwenDesk's own server is set up on the Server page.")
_DRAFT = mark("QwenDesk has options of its own for speculative decoding, so this has no effect.")
_CPU = mark("QwenDesk leaves CPU cores and priorities to the system. You can set the number of threads.")
_SAMPLER = mark("QwenDesk doesn't have this sampler.")
_CHECKPOINTS = mark("QwenDesk takes checkpoints itself. Prompt cache limits the RAM for them.")
_LOG = mark("QwenDesk writes its own log.")
_PROMPT = mark("Write the prompt in the chat.")
_DOWNLOAD = mark("Models are downloaded on the Models page.")
_CHATS_ONLY = mark("QwenDesk uses models for chats only.")
_TOOLS = mark("QwenDesk recognises tool calls by itself, and has tools of its own.")
_VIDEO = mark("Drop a clip on the chat. How many of its frames are used, you choose there.")
_LEFT_TO_ENGINE = mark("QwenDesk leaves this at llama.cpp's default.")
_TERMINAL = mark("This only matters in a terminal.")
_SPLIT = mark("QwenDesk always separates the thinking from the answer.")
_NO_SHIFT = mark("Qwen3.5's context can't be shifted. When the context is full says what happens instead.")

# Flags of llama.cpp that are more than another spelling. They come before the flags in the settings table.
LLAMA_CPP: tuple[Flag, ...] = (
    _value("-fa --flash-attn", "flash_attn", n_values=-1),
    _value("-ngl --gpu-layers --n-gpu-layers", "n_gpu_layers", _ALL_LAYERS),
    _switch("--no-mmap", "load_mode", "none"),
    _switch("--mmap", "load_mode", "mmap"),
    _switch("--mlock", "load_mode", "mlock"),
    _switch("-cmoe --cpu-moe", "n_cpu_moe", "10000"),
    Flag(program="llama.cpp", names=("-ot", "--override-tensor", "exps"), key="override_tensor", note=_PLACED,
         see=("n_cpu_moe",)),
    _value("--rope-scale", "rope_freq_scale"),
    _switch("-no-kvo -nkvo --no-kv-offload", "offload_kqv", "false"),
    _switch("-kvo --kv-offload", "offload_kqv", "true"),
    _switch("--op-offload", "op_offload", "true"),
    _switch("--cache-prompt", "cache_prompt", "true"),
    _switch("--no-mmproj --no-mmproj-auto", "vision", "off"),
    _switch("--no-mmproj-offload", "vision", "cpu"),
    _switch("--mmproj-offload", "vision", "gpu"),
    _value("-rea --reasoning", "enable_thinking"),
    _switch("--reasoning-preserve", "preserve_thinking", "true"),
    _switch("--no-reasoning-preserve", "preserve_thinking", "false"),
    _value("--reasoning-effort", "reasoning_effort"),
    Flag(program="llama.cpp", names=("--chat-template-kwargs",), key="enable_thinking",
         see=("preserve_thinking", "reasoning_effort")),
    _value("--lora-scaled", "lora"),
    Flag(program="llama.cpp", names=("-fitt", "--fit-target"), note=_FIT, see=("reserve_gb",)),
    Flag(program="llama.cpp", names=("-fitc", "--fit-ctx"), note=_FIT, see=("aim", "n_ctx")),
    Flag(program="llama.cpp", names=("-fit", "--fit"), note=_FIT, see=("aim", "reserve_gb")),
    *_unused(_ALWAYS_TEMPLATE, "--chat-template", "--jinja --no-jinja", see="chat_template_file"),
    *_unused(_ONE_CHAT, "-np --parallel -ns --sequences", "-cb --cont-batching -nocb --no-cont-batching"),
    *_unused(_ONE_CHAT, "--kv-unified-per-slot", "-kvu --kv-unified -no-kvu --no-kv-unified", see="n_ctx"),
    *_unused(
        _CHECKPOINTS,
        "-ctxcp --ctx-checkpoints --swa-checkpoints -cms --checkpoint-min-step --cache-reuse -sps "
        "--slot-prompt-similarity",
        "--cache-idle-slots --no-cache-idle-slots",
        see="cache_budget_mib",
    ),
    *_unused(_NO_SHIFT, "--keep", "--context-shift --no-context-shift", see="context_overflow"),
    *_unused(_SPLIT, "--reasoning-format", "--skip-chat-parsing --no-skip-chat-parsing"),
    *_unused(
        _SAMPLER,
        "--samplers --sampler-seq --sampling-seq --top-nsigma --top-n-sigma --dry-sequence-breaker --adaptive-target "
        "--adaptive-decay --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent",
        "--ignore-eos -bs --backend-sampling",
    ),
    *_unused(
        _CPU,
        "-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch -Crb --cpu-range-batch "
        "--cpu-strict-batch --prio-batch --poll-batch",
        see="n_threads n_threads_batch",
    ),
    *_unused(
        _SERVER,
        "--host --port --path --cors-origins --cors-methods --cors-headers --api-prefix --api-key --api-key-file "
        "--ssl-key-file --ssl-cert-file -to --timeout --sse-ping-interval --threads-http --slot-save-path "
        "--media-path -a --alias --tags --models-dir --models-preset --models-max --ui-config --webui-config "
        "--ui-config-file --webui-config-file --sleep-idle-seconds",
        "--reuse-port --cors-credentials --no-cors-credentials --ui --webui --no-ui --no-webui --ui-mcp-proxy "
        "--webui-mcp-proxy --no-ui-mcp-proxy --no-webui-mcp-proxy --metrics --props --slots --no-slots "
        "--models-autoload --no-models-autoload --prefill-assistant --no-prefill-assistant",
    ),
    *_unused(
        _DRAFT,
        "--spec-draft-hf -hfd -hfrd --hf-repo-draft --spec-draft-threads -td --threads-draft "
        "--spec-draft-threads-batch -tbd --threads-batch-draft --spec-draft-cpu-mask -Cd --cpu-mask-draft "
        "--spec-draft-cpu-range -Crd --cpu-range-draft --spec-draft-cpu-strict --cpu-strict-draft --spec-draft-prio "
        "--prio-draft --spec-draft-poll --poll-draft --spec-draft-cpu-mask-batch -Cbd --cpu-mask-batch-draft "
        "--spec-draft-cpu-strict-batch --cpu-strict-batch-draft --spec-draft-prio-batch --prio-batch-draft "
        "--spec-draft-poll-batch --poll-batch-draft --spec-draft-type-k -ctkd --cache-type-k-draft "
        "--spec-draft-type-v -ctvd --cache-type-v-draft --spec-draft-override-tensor -otd --override-tensor-draft "
        "--spec-draft-n-cpu-moe --spec-draft-ncmoe -ncmoed --n-cpu-moe-draft --spec-draft-n-max --spec-draft-n-min "
        "--spec-synth-len --spec-synth-rates --spec-draft-p-split --draft-p-split --spec-draft-p-min --draft-p-min "
        "--spec-draft-device -devd --device-draft --spec-draft-ngl -ngld --gpu-layers-draft --n-gpu-layers-draft "
        "--spec-type --spec-ngram-mod-n-min --spec-ngram-mod-n-max "
        "--spec-ngram-mod-n-match --spec-ngram-simple-size-n --spec-ngram-simple-size-m --spec-ngram-simple-min-hits "
        "--spec-ngram-map-k-size-n --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits --spec-ngram-map-k4v-size-n "
        "--spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits --draft --draft-n --draft-max --draft-min "
        "--draft-n-min --spec-ngram-size-n --spec-ngram-size-m --spec-ngram-min-hits -lcs --lookup-cache-static -lcd "
        "--lookup-cache-dynamic -cd --ctx-size-draft",
        "--spec-draft-cpu-moe -cmoed --cpu-moe-draft --spec-draft-backend-sampling --no-spec-draft-backend-sampling "
        "--spec-default --mtp --dflash --eagle3",
        see="speculative draft_n_max",
    ),
    *_unused(
        _LOG,
        "--log-file --log-prompts-dir --log-colors -lv --verbosity --log-verbosity",
        "--log-disable --log-jsonl --no-log-jsonl -v --verbose --log-verbose --log-prefix --no-log-prefix "
        "--log-timestamps --no-log-timestamps --perf --no-perf",
    ),
    *_unused(_PROMPT, "-p --prompt -f --file -bf --binary-file -sys --system-prompt -sysf --system-prompt-file --image "
             "--audio --grammar-file -jf --json-schema-file"),
    *_unused(_DOWNLOAD, "-hf -hfr --hf-repo -hff --hf-file -mu --model-url -mmu --mmproj-url -dr --docker-repo -hft "
             "--hf-token",
             "--offline --embd-gemma-default --fim-qwen-3b-default --fim-qwen-7b-default --fim-qwen-7b-spec "
             "--fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default --gpt-oss-120b-default "
             "--vision-gemma-4b-default --vision-gemma-12b-default --mmproj-auto"),
    *_unused(_CHATS_ONLY, "--pooling --embd-normalize", "--embedding --embeddings --rerank --reranking --spm-infill"),
    *_unused(_TOOLS, "--tools --tools-runtime --mcp-servers-config --mcp-servers-json",
             "-ag --agent -no-ag --no-agent"),
    *_unused(_VIDEO, "--video --video-fps --video-timestamp-interval --video-ffmpeg-dir"),
    *_unused(
        _LEFT_TO_ENGINE,
        "-ncffn --n-cpu-ffn -dt --defrag-thold --rpc --control-vector --control-vector-scaled "
        "--mtmd-batch-max-tokens --mmproj-device -gan --grp-attn-n -gaw --grp-attn-w",
        "--warmup --no-warmup --repack -nr --no-repack --no-host --lora-init-without-apply -sp --special "
        "-dio --direct-io --no-direct-io",
    ),
    Flag(program="llama.cpp", names=("--control-vector-layer-range",), n_values=2, note=_LEFT_TO_ENGINE),
    *_unused(
        _TERMINAL,
        "--prio-display",
        "-h --help --usage --version -cl --cache-list --completion-bash --list-devices -e --escape --no-escape -cnv "
        "--conversation -no-cnv --no-conversation -st --single-turn -i --interactive -if --interactive-first -mli "
        "--multiline-input --simple-io -co --color --no-display-prompt --display-prompt",
    ),
)  # fmt: skip


def _ollama(names: str, key: str = "", note: str = "", see: str = "", n_values: int = 1) -> Flag:
    return Flag(
        program="ollama", names=tuple(names.split()), key=key, note=note, see=tuple(see.split()), n_values=n_values
    )


_OLLAMA_KEEP = mark("Settings say after how long an idle model is unloaded.")
_OLLAMA_MIROSTAT = mark("Ollama no longer has this sampler, and QwenDesk doesn't have it either.")
# Environment variables, flags and parameters of Ollama that aren't in the settings table.
OLLAMA: tuple[Flag, ...] = (
    _ollama("num_gpu", "n_gpu_layers", _ALL_LAYERS),
    _ollama("OLLAMA_CONTEXT_LENGTH", "n_ctx"),
    _ollama("OLLAMA_FLASH_ATTENTION", "flash_attn"),
    _ollama("OLLAMA_KV_CACHE_TYPE", "type_k", see="type_v"),
    _ollama("OLLAMA_NUM_PARALLEL", note=_ONE_CHAT),
    _ollama("OLLAMA_KEEP_ALIVE keep_alive --keepalive", note=_OLLAMA_KEEP, see="eject_after_min"),
    _ollama("OLLAMA_GPU_OVERHEAD", note=_FIT, see="reserve_gb"),
    _ollama("OLLAMA_HOST OLLAMA_ORIGINS", note=_SERVER),
    _ollama("OLLAMA_MODELS OLLAMA_MAX_LOADED_MODELS", note=_DOWNLOAD),
    _ollama("use_mmap", see="load_mode", note=_LEFT_TO_ENGINE),
    _ollama("use_mlock low_vram vocab_only penalize_newline f16_kv", note=_LEFT_TO_ENGINE),
    _ollama("numa", see="numa", note=_LEFT_TO_ENGINE),
    _ollama("mirostat mirostat_eta mirostat_tau tfs_z", note=_OLLAMA_MIROSTAT),
    _ollama("num_keep", note=_NO_SHIFT, see="context_overflow"),
    _ollama("draft_num_predict", note=_DRAFT),
    _ollama("--think", "enable_thinking", n_values=-1),
    _ollama("--format", note=_PROMPT, see="json_schema"),
    _ollama("--verbose --hidethinking --nowordwrap", note=_TERMINAL, n_values=0),
    _ollama("--insecure", note=_DOWNLOAD, n_values=0),
    _ollama("--dimensions --truncate", note=_CHATS_ONLY),
)


def _vllm(names: str, key: str = "", note: str = "", see: str = "", n_values: int = 1) -> Flag:
    return Flag(
        program="vllm", names=tuple(names.split()), key=key, note=note, see=tuple(see.split()), n_values=n_values
    )


_VLLM_SPLIT = mark("QwenDesk uses all GPUs and splits the model by layers. Split mode and Split shares change that.")
_VLLM_MEMORY = mark("Set how much VRAM stays free instead. QwenDesk takes only what the model needs.")
_VLLM_BATCH = mark("For many users at once. QwenDesk answers one chat at a time.")
_VLLM_FORMAT = mark("QwenDesk loads GGUF files, whose format is in the file.")
_VLLM_CACHE = mark("Always on: QwenDesk reuses what was processed of a chat.")
_VLLM_KV = mark("K cache type and V cache type are llama.cpp's: q8_0 is the closest to fp8.")
_VLLM_PARSER = mark("QwenDesk recognises the model's thinking by itself.")
# Flags of `vllm serve` that aren't in the settings table.
VLLM: tuple[Flag, ...] = (
    _vllm("--chat-template", "chat_template_file"),
    _vllm("--generation-config --override-generation-config", note=_LEFT_TO_ENGINE, see="temperature top_p top_k"),
    _vllm("--default-chat-template-kwargs", "enable_thinking"),
    _vllm("--hf-overrides --rope-scaling --rope-theta", note=mark("QwenDesk sets YaRN for a context that needs it."),
          see="n_ctx rope_scaling rope_freq_scale"),
    _vllm("-tp --tensor-parallel-size -pp --pipeline-parallel-size -dp --data-parallel-size "
          "--distributed-executor-backend --mm-encoder-tp-mode", note=_VLLM_SPLIT,
          see="split_mode tensor_split devices"),
    _vllm("--enable-expert-parallel -ep", note=_VLLM_SPLIT, see="split_mode", n_values=0),
    _vllm("--gpu-memory-utilization", note=_VLLM_MEMORY, see="reserve_gb"),
    _vllm("--cpu-offload-gb --swap-space", note=_FIT, see="n_cpu_moe n_gpu_layers"),
    _vllm("--max-num-seqs --max-num-batched-tokens", note=_VLLM_BATCH, see="n_batch n_ubatch"),
    _vllm("--enable-chunked-prefill --no-enable-chunked-prefill --async-scheduling", note=_VLLM_BATCH,
          see="n_ubatch", n_values=0),
    _vllm("--enable-prefix-caching --no-enable-prefix-caching", note=_VLLM_CACHE, see="cache_prompt cache_budget_mib",
          n_values=0),
    _vllm("--kv-cache-dtype", note=_VLLM_KV, see="type_k type_v"),
    _vllm("-q --quantization --dtype --load-format --tokenizer --tokenizer-mode --config-format", note=_VLLM_FORMAT),
    _vllm("--language-model-only", see="vision", note=mark("Pictures off does the same."), n_values=0),
    _vllm("--limit-mm-per-prompt", see="vision", note=mark("Pictures off does the same as a limit of 0.")),
    _vllm("--mm-processor-cache-type --mm-processor-cache-gb", see="cache_budget_mib", note=_CHECKPOINTS),
    _vllm("--reasoning-parser", note=_VLLM_PARSER),
    _vllm("--tool-call-parser", note=_TOOLS),
    _vllm("--enable-auto-tool-choice", note=_TOOLS, n_values=0),
    _vllm("--speculative-config", note=_DRAFT),
    _vllm("--enforce-eager --trust-remote-code --disable-log-requests --disable-log-stats", note=_LEFT_TO_ENGINE,
          n_values=0),
    _vllm("--served-model-name --host --port --api-key --uvicorn-log-level", note=_SERVER),
    _vllm("--download-dir --revision --hf-config-path", note=_DOWNLOAD),
)  # fmt: skip


def _other(program: Program, names: str, key: str = "", note: str = "", see: str = "", n_values: int = 1) -> Flag:
    return Flag(
        program=program, names=tuple(names.split()), key=key, note=note, see=tuple(see.split()), n_values=n_values
    )


# Flags of `sglang.launch_server`.
SGLANG: tuple[Flag, ...] = (
    _other("sglang", "--context-length", "n_ctx"),
    _other("sglang", "--chat-template", "chat_template_file"),
    _other("sglang", "--tp --tp-size --tensor-parallel-size --pp-size --dp --dp-size --ep-size --nnodes --node-rank",
           note=_VLLM_SPLIT, see="split_mode tensor_split devices"),
    _other("sglang", "--mem-fraction-static", note=_VLLM_MEMORY, see="reserve_gb"),
    _other("sglang", "--max-running-requests --max-total-tokens --chunked-prefill-size", note=_VLLM_BATCH,
           see="n_batch n_ubatch"),
    _other("sglang", "--cpu-offload-gb", note=_FIT, see="n_cpu_moe n_gpu_layers"),
    _other("sglang", "--kv-cache-dtype", note=_VLLM_KV, see="type_k type_v"),
    _other("sglang", "--quantization --dtype --load-format --tokenizer-path", note=_VLLM_FORMAT),
    _other("sglang", "--reasoning-parser", note=_VLLM_PARSER),
    _other("sglang", "--tool-call-parser", note=_TOOLS),
    _other("sglang", "--speculative-algorithm --speculative-algo --speculative-num-steps --speculative-eagle-topk "
           "--speculative-num-draft-tokens --speculative-draft-model-path", note=_DRAFT, see="speculative"),
    _other("sglang", "--json-model-override-args", note=mark("QwenDesk sets YaRN for a context that needs it."),
           see="n_ctx rope_scaling rope_freq_scale"),
    _other("sglang", "--trust-remote-code --enable-metrics", note=_LEFT_TO_ENGINE, n_values=0),
    _other("sglang", "--attention-backend --mamba-scheduler-strategy", note=_LEFT_TO_ENGINE),
    _other("sglang", "--served-model-name --host --port --api-key --log-level", note=_SERVER),
)  # fmt: skip
# Flags of mlx_lm's programs.
MLX: tuple[Flag, ...] = (
    _other("mlx", "--temp", "temperature"),
    _other("mlx", "--top-p", "top_p"),
    _other("mlx", "--top-k", "top_k"),
    _other("mlx", "--min-p", "min_p"),
    _other("mlx", "--max-tokens", "max_tokens"),
    _other("mlx", "--seed", "seed"),
    _other("mlx", "--max-kv-size", "n_ctx"),
    _other("mlx", "--chat-template-args", "enable_thinking"),
    _other("mlx", "--kv-bits --kv-group-size --quantized-kv-start", note=_VLLM_KV, see="type_k type_v"),
    _other("mlx", "--prompt -p --system-prompt", note=_PROMPT),
    _other("mlx", "--draft-model --num-draft-tokens", note=_DRAFT, see="speculative draft_n_max"),
    _other("mlx", "--adapter-path", note=_VLLM_FORMAT, see="lora"),
    _other("mlx", "--trust-remote-code", note=_LEFT_TO_ENGINE, n_values=0),
    _other("mlx", "--host --port --log-level --allowed-origins", note=_SERVER),
)  # fmt: skip


# Options whose flag takes something else than the option's value; flag_table.py or command_reader.py has them.
_SPECIAL_FLAGS = frozenset({"vision", "preserve_thinking", "reasoning_effort", "enable_thinking", "thinking_close"})
_PROGRAMS: tuple[Program, ...] = ("llama.cpp", "ollama", "vllm", "sglang", "mlx", "hf")


class FlagSearch(msgspec.Struct, frozen=True):
    """The meaning as a flag of a text in a search field."""

    flags: tuple[Flag, ...]
    is_only_a_flag: bool
    """The text can't be an ordinary word, so that nothing else should be found."""

    @property
    def keys(self) -> frozenset[str]:
        """The options to show."""
        return frozenset(key for flag in self.flags for key in (flag.key, *flag.see) if key)


def find_flag(name: str, program: Program) -> Flag | None:
    """Return the flag of `program` that is spelled `name`; None if it has none."""
    return _flags()[program].get(name)


def search_flag(query: str) -> FlagSearch | None:
    """Return what the query means if its first word is the spelling of a flag, else None.

    A value after it is ignored, as in "-ctk q8_0" or "exps=CPU".
    """
    return _search(query.split("=", maxsplit=1)[0].split(" ", maxsplit=1)[0])


def spellings(key: str) -> tuple[str, ...]:
    """Return all spellings of the flags that set the option `key`."""
    found = (flag.names for program in _PROGRAMS for flag in _flags()[program].values() if flag.key == key)
    return tuple(dict.fromkeys(name for names in found for name in names))


def flag_note(query: str) -> str:
    """Return sentences about the flag in `query` that its options don't say; "" if there are none."""
    found = search_flag(query)
    if found is None or not found.is_only_a_flag:
        return ""
    answer_options = table(GenerationOptions)
    sentences = [tr(flag.note) for flag in found.flags if flag.note]
    sentences += [
        tr("{0} is on the tab Sampling.", tr(answer_options[key].setting.label))
        for key in sorted(found.keys)
        if key in answer_options
    ]
    return join_sentences(*dict.fromkeys(sentences))


@functools.lru_cache(maxsize=256)
def _search(name: str) -> FlagSearch | None:
    found = [flag for program in _PROGRAMS if (flag := find_flag(name, program)) is not None]
    if not found:
        return None
    return FlagSearch(tuple(found), not name.isalpha() or name == "exps")


@functools.cache
def _flags() -> Mapping[Program, Mapping[str, Flag]]:
    """Return the flags of each program by name. Those in flag_table.py come before those of the settings table."""
    rows = [*LLAMA_CPP, *OLLAMA, *VLLM, *SGLANG, *MLX]
    for options in (LoadOptions, GenerationOptions):
        for entry in table(options).values():
            rows += _flags_of(entry)
    found: dict[Program, dict[str, Flag]] = {program: {} for program in _PROGRAMS}
    for flag in rows:
        for name in flag.names:
            found[flag.program].setdefault(name, flag)
    return MappingProxyType(found)


def _flags_of(entry: Entry) -> Iterator[Flag]:
    setting, key = entry.setting, entry.key
    if setting.flag and key not in _SPECIAL_FLAGS:
        names = (setting.flag, *ALIASES.get(setting.flag, "").split())
        if isinstance(entry.default, bool):
            yield Flag(program="llama.cpp", names=names, key=key, value=str(not entry.default).lower(), n_values=0)
        else:
            yield Flag(program="llama.cpp", names=names, key=key)
    elif setting.flag and key == "thinking_close":
        yield Flag(program="llama.cpp", names=(setting.flag,), key=key)
    if setting.ollama:
        yield Flag(program="ollama", names=(setting.ollama,), key=key)
    if setting.vllm:
        yield Flag(program="vllm", names=(setting.vllm,), key=key)
