"""Converts options to commands of other programs (llama-server, vLLM, SGLang, MLX) and to an Ollama Modelfile.

Built from the settings table. Options with default values are left out, but all programs except llama-server always get
the sampling options. Comments say what the other program lacks, and what that costs.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from qwendesk.commands.safetensors_commands import in_docker, mlx_command, sglang_command, vllm_arguments
from qwendesk.commands.serving import Serving
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.option_rules import lora_adapter
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, table
from qwendesk.core.translation import tr

CommandKind = Literal["llama-server", "ollama", "vllm", "sglang", "mlx"]
COMMAND_KINDS: tuple[CommandKind, ...] = ("llama-server", "ollama", "vllm", "sglang", "mlx")
_NO_SERVING = Serving()

Args = list[str]
# llama-server's defaults where they differ from QwenDesk's.
_LLAMA_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"temperature": 0.8, "top_k": 40, "min_p": 0.05, "presence_penalty": 0.0, "chat_states_mib": 8192}
)
# Values that leave a choice to the program.
_UNSAID = ("", "auto", ())


def command(
    kind: CommandKind,
    load: LoadOptions,
    answer: GenerationOptions,
    serving: Serving = _NO_SERVING,
    *,
    windows: bool = False,
) -> str:
    """Return the text to paste. `load` should be decided: an "auto" is left to the other program.

    `serving` is for the programs that don't load GGUF files. `windows` quotes llama-server's arguments for Windows, and
    says of programs that don't run there what to do.
    """
    if kind == "ollama":
        return _modelfile(load, answer)
    if kind == "vllm":
        return _vllm(load, answer, serving, windows=windows)
    if kind == "sglang":
        _, sampling = _vllm_options(load, answer)
        return sglang_command(load, answer, sampling, serving, windows=windows)
    if kind == "mlx":
        return mlx_command(load, answer, serving)
    args = _llama_server(load, answer)
    return " ".join(map(_quoted_for_windows, args)) if windows else shlex.join(args)


def difference(kind: CommandKind, answer: GenerationOptions) -> str:
    """Return in a sentence what a program makes of the sampling values that it is given; "" if it's the same."""
    has_penalty = answer.presence_penalty or answer.frequency_penalty or answer.repeat_penalty != 1
    if kind != "llama-server" or not has_penalty or answer.penalty_last_n != -1:
        return ""
    return tr("llama-server's penalties cover the last 64 tokens only. Here they cover the whole answer.")


def _quoted_for_windows(word: str) -> str:
    """Return an argument that cmd and PowerShell both hand on as it is.

    They would split a pattern such as "blk.(1|2)=CPU", and PowerShell "CUDA0,CUDA1".
    """
    if re.fullmatch(r"[\w./:\\=+-]+", word):
        return word
    inner = re.sub(r'(\\*)"', r'\1\1\\"', word)
    return '"' + re.sub(r"(\\+)$", r"\1\1", inner) + '"'


def _llama_server(load: LoadOptions, answer: GenerationOptions) -> Args:
    args = ["llama-server"]
    for options, entries in ((load, table(LoadOptions)), (answer, table(GenerationOptions))):
        for key, entry in entries.items():
            args += _flag(entry, getattr(options, key), load, answer)
    return [*args, "--jinja", "--parallel", "1"]


def _flag(entry: Entry, value: Any, load: LoadOptions, answer: GenerationOptions) -> Args:
    """Return one option as llama-server's arguments; none if the value is llama-server's default."""
    special = _SPECIAL.get(entry.key)
    if special is not None:
        return special(value, load, answer)
    default = _LLAMA_DEFAULTS.get(entry.key, entry.default)
    if not entry.setting.flag or value in _UNSAID or value == default:
        return []
    if isinstance(value, bool):
        return [entry.setting.flag]
    if isinstance(value, tuple):
        return [entry.setting.flag, ",".join(_text(item) for item in value)]
    return [entry.setting.flag, _text(value)]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def _pictures(value: str, load: LoadOptions) -> Args:
    if value == "off" or not load.mmproj:
        return ["--no-mmproj"] if value == "off" else []
    return ["--no-mmproj-offload"] if value == "cpu" else []


def _each(flag: str) -> Callable[[tuple[str, ...], LoadOptions, GenerationOptions], Args]:
    """Return a function that repeats the flag for every item."""
    return lambda items, _load, _answer: [piece for item in items for piece in (flag, item)]


def _lora(items: tuple[str, ...], _load: LoadOptions, _answer: GenerationOptions) -> Args:
    args: Args = []
    for item in items:
        path, scale = lora_adapter(item)
        args += ["--lora", path] if scale == 1 else ["--lora-scaled", f"{path}:{_text(scale)}"]
    return args


def _bias(items: tuple[str, ...], _load: LoadOptions, _answer: GenerationOptions) -> Args:
    args: Args = []
    for item in items:
        token, _, bias = item.partition("=")
        args += ["--logit-bias", f"{token}{bias if bias.startswith('-') else '+' + bias.lstrip('+')}"]
    return args


def _rope_scale(value: float) -> Args:
    """Return the scale as the guides write it: --rope-scale is 1 divided by the frequency scale."""
    if not value or value == 1:
        return []
    factor = round(1 / value, 6)
    return ["--rope-scale", _text(factor)] if 1 / factor == value else ["--rope-freq-scale", _text(value)]


def _draft_head(path: str, load: LoadOptions) -> Args:
    is_used = path and load.speculative in ("auto", "mtp")
    return ["--model-draft", path, "--spec-type", "draft-mtp"] if is_used else []


def _closing(text: str) -> Args:
    """Return the message without </think>, which llama-server adds itself."""
    message = text.replace("</think>", "").strip()
    return ["--reasoning-budget-message", message] if message else []


def _template_variables(answer: GenerationOptions) -> Args:
    values: dict[str, bool | str] = {}
    if answer.preserve_thinking:
        values["preserve_thinking"] = True
    if answer.reasoning_effort != "auto":
        values["reasoning_effort"] = answer.reasoning_effort
    return ["--chat-template-kwargs", json.dumps(values)] if values else []


# Options whose arguments are more than a flag and its value, by key.
#
# A penalty window of -1 is left out: llama-server would count the prompt too, and its default is 64 tokens.
_SPECIAL: Mapping[str, Callable[[Any, LoadOptions, GenerationOptions], Args]] = MappingProxyType(
    {
        "mmproj": lambda value, load, _a: ["--mmproj", value] if value and load.vision != "off" else [],
        "vision": lambda value, load, _a: _pictures(value, load),
        "draft_model": lambda value, load, _a: _draft_head(value, load),
        "override_tensor": _each("--override-tensor"),
        "stop": _each("--reverse-prompt"),
        "lora": _lora,
        "penalty_last_n": lambda value, _l, _a: ["--repeat-last-n", str(value)] if value not in (-1, 64) else [],
        "rope_freq_scale": lambda value, _l, _a: _rope_scale(value),
        "logit_bias": _bias,
        "enable_thinking": lambda value, _l, _a: ["--reasoning", "on" if value else "off"],
        "preserve_thinking": lambda _value, _l, answer: _template_variables(answer),
        "reasoning_effort": lambda _value, _l, _a: [],  # with preserve_thinking
        "thinking_close": lambda value, _l, answer: _closing(value) if answer.thinking_budget > 0 else [],
    }
)


_OLLAMA_ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {"type_k": "OLLAMA_KV_CACHE_TYPE", "type_v": "OLLAMA_KV_CACHE_TYPE", "flash_attn": "OLLAMA_FLASH_ATTENTION"}
)
_OLLAMA_SWITCH: Mapping[str, str] = MappingProxyType({"on": "1", "off": "0"})


def _modelfile(load: LoadOptions, answer: GenerationOptions) -> str:
    lines = [f"FROM {load.model}"]
    if load.mmproj and load.vision != "off":
        lines.append(f"FROM {load.mmproj}")
    unsaid: list[str] = []
    environment: dict[str, str] = {}
    for entry, value in _chosen(load, answer):
        if entry.key in _OLLAMA_CANNOT or (entry.key == "n_gpu_layers" and _has_experts_in_ram(load)):
            continue
        if entry.setting.ollama:
            is_too_long = entry.key == "n_ctx" and _is_stretched(load)
            lines += _parameters(entry, load.yarn_orig_ctx if is_too_long else value)
        elif entry.key in _OLLAMA_ENVIRONMENT:
            environment[_OLLAMA_ENVIRONMENT[entry.key]] = _OLLAMA_SWITCH.get(value, str(value))
        elif entry.key not in (
            "aim",
            "break_loops",
            "enable_thinking",
            "parallel_tool_calls",
            "thinking_close",
            "cache_budget_mib",
            "chat_states_mib",
            "speculative",
            "draft_model",
            "draft_n_max",
        ):
            unsaid.append(f"{entry.setting.label} ({entry.setting.flag or entry.key})")
    lines += [f"# Set {name}={value} where ollama serve starts." for name, value in environment.items()]
    if not answer.enable_thinking:
        lines.append("# Thinking is switched off with: ollama run NAME --think=false")
    lines += [f"# Ollama has no parameter for: {text}" for text in unsaid]
    lines += [f"# {sentence}" for sentence in _ollama_costs(load, answer)]
    return "\n".join(lines) + "\n"


# Options that Ollama lacks, for which `_ollama_costs` has a sentence.
_OLLAMA_CANNOT = ("n_cpu_moe", "override_tensor", "rope_scaling", "rope_freq_scale", "yarn_orig_ctx")


def _ollama_costs(load: LoadOptions, answer: GenerationOptions) -> Iterator[str]:
    """Yield what Ollama ignores or can't do, and what that costs."""
    penalties = {
        "presence_penalty": answer.presence_penalty != 0,
        "frequency_penalty": answer.frequency_penalty != 0,
        "repeat_penalty": answer.repeat_penalty != 1,
    }
    ignored = [name for name, is_set in penalties.items() if is_set]
    if ignored:
        yield (
            f"Ollama before 0.17.5 ignores {' and '.join(ignored)} without a word: thinking may repeat itself until "
            "the context is full."
        )
    if _has_experts_in_ram(load):
        yield (
            "Without num_gpu, Ollama moves whole layers to the CPU: 3 to 5 times slower by user reports. It can't keep "
            "the experts of some layers in RAM, only those of all, since 0.30: LLAMA_ARG_CPU_MOE=1 where ollama serve "
            "starts, and num_gpu 99."
        )
    if _is_stretched(load):
        yield f"Ollama has no YaRN, so num_ctx ends at the {load.yarn_orig_ctx} tokens that the model was trained on."


def _has_experts_in_ram(load: LoadOptions) -> bool:
    return bool(load.n_cpu_moe not in ("auto", 0) or load.override_tensor)


def _is_stretched(load: LoadOptions) -> bool:
    return bool(load.rope_scaling == "yarn" and load.rope_freq_scale and 0 < load.yarn_orig_ctx < load.n_ctx)


def _parameters(entry: Entry, value: Any) -> list[str]:
    if entry.key == "n_gpu_layers" and value == "all":
        value = 999
    values = value if isinstance(value, tuple) else (value,)
    return [f"PARAMETER {entry.setting.ollama} {_quoted(item)}" for item in values]


def _quoted(value: Any) -> str:
    text = _text(value)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text


def _chosen(load: LoadOptions, answer: GenerationOptions) -> Iterator[tuple[Entry, Any]]:
    """Yield the options to write with their values: sampling options always, others if they are not the default."""
    always = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty")
    for options, entries in ((load, table(LoadOptions)), (answer, table(GenerationOptions))):
        for key, entry in entries.items():
            value = getattr(options, key)
            if key in ("model", "mmproj", "chat_template_file", "vision") or value in _UNSAID:
                continue
            if key in always or value != entry.default:
                yield entry, value


def _vllm(load: LoadOptions, answer: GenerationOptions, serving: Serving, *, windows: bool) -> str:
    (repo, *model_args), notes = vllm_arguments(load, answer, serving, windows=windows)
    options, sampling = _vllm_options(load, answer)
    args = ["vllm", "serve", repo, *options]
    if repo == load.model and load.chat_template_file:
        args += ["--chat-template", load.chat_template_file]
    args += [*model_args, "--override-generation-config", json.dumps(sampling)]
    notes += in_docker("vLLM", args[2:], serving)
    return "\n".join([shlex.join(args), *(f"# {note}" for note in notes)])


def _vllm_options(load: LoadOptions, answer: GenerationOptions) -> tuple[Args, dict[str, Any]]:
    """Return the options that are flags of vLLM, and the sampling values by the names of its generation config."""
    args: Args = []
    sampling: dict[str, Any] = {}
    for entry, value in _chosen(load, answer):
        name = entry.setting.vllm
        if name.startswith("--"):
            args += [name, _text(value)]
        elif name:
            sampling[_VLLM_NAMES.get(name, name)] = value
    return args, sampling


_VLLM_NAMES: Mapping[str, str] = MappingProxyType({"max_tokens": "max_new_tokens"})


def for_commands(asked: LoadOptions, decided: LoadOptions | None) -> LoadOptions:
    """Return the options to make a command from: the decided ones with the user's aim, or `asked` if None."""
    return msgspec.structs.replace(decided, aim=asked.aim) if decided is not None else asked
