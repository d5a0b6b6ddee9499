"""Reads a pasted command line of llama.cpp or another program, or a Modelfile: what it means here."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any

import msgspec

from qwendesk.commands.command_text import read_commands
from qwendesk.commands.compose_file import ComposeService, read_compose
from qwendesk.core.errors import BadOption
from qwendesk.core.flags import Flag, Program, find_flag
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.model_titles import ModelName, gguf_words, read_model_name
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import check, parse, table
from qwendesk.core.translation import tr

# From this number on, people mean all layers.
_ALL_LAYERS = 99
_SWITCHES = MappingProxyType({"1": "on", "true": "on", "0": "off", "false": "off", "": "on"})
# vLLM's suffixes: small letters are decimal.
_UNITS = MappingProxyType({"k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2})


def flag_value(flag: Flag, name: str, text: str) -> Any:
    """Return the value that the option `flag.key` gets from `text`, written after the flag `name`.

    Raises BadOption for a text that is not a valid value.
    """
    entry = {**table(LoadOptions), **table(GenerationOptions)}[flag.key]
    if flag.value:
        return parse(entry, flag.value)
    convert = _BY_NAME.get(name) or _BY_KEY.get(flag.key)
    try:
        value = convert(text) if convert is not None else text
    except (ValueError, ZeroDivisionError):
        raise BadOption(tr("Bad value"), tr("“{0}” isn't a valid value.", text)) from None
    if isinstance(value, str):
        return parse(entry, value)
    check(entry, value)
    return value


def _gpu_layers(text: str) -> str:
    if text == "-1":
        return "auto"
    return "all" if text.isdecimal() and int(text) >= _ALL_LAYERS else text


def _count(text: str) -> str | int:
    number = re.fullmatch(r"([\d.]+)([kKmM])", text)
    return round(float(number[1]) * _UNITS[number[2]]) if number else "0" if text in ("auto", "-1") else text


def _unlimited(text: str) -> str:
    """Return -1 for Ollama's -2, which means until the context is full."""
    return "-1" if text == "-2" else text


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _shares(text: str) -> tuple[float, ...]:
    return tuple(float(item) for item in re.split(r"[,/]", text) if item.strip())


def _bias(text: str) -> tuple[str, ...]:
    found = re.fullmatch(r"(\d+)([+-].+)", text)
    if found is None:
        raise ValueError(text)
    return (f"{found[1]}={found[2].removeprefix('+')}",)


def _scaled_adapter(text: str) -> tuple[str, ...]:
    pairs = [item.rpartition(":") for item in _items(text)]
    return tuple(f"{path}={float(scale):g}" for path, _, scale in pairs)


def _closing(text: str) -> str:
    return f"\n\n{text}\n</think>\n\n"


_BY_KEY: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {
        "n_ctx": _count,
        "n_gpu_layers": _gpu_layers,
        "n_threads": lambda text: "0" if text == "-1" else text,
        "n_threads_batch": lambda text: "0" if text == "-1" else text,
        "max_tokens": _unlimited,
        "flash_attn": lambda text: _SWITCHES.get(text, text),
        "enable_thinking": lambda text: "on" if text in ("", "auto", "high", "medium", "low") else text,
        "override_tensor": _items,
        "kv_overrides": _items,
        "devices": _items,
        "tensor_split": _shares,
        "lora": _items,
        "logit_bias": _bias,
        "stop": lambda text: (text,),
        "thinking_close": _closing,
    }
)
_BY_NAME: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {"--rope-scale": lambda text: 1 / float(text), "--lora-scaled": _scaled_adapter}
)


_PROGRAMS: Mapping[str, Program] = {
    "llama-server": "llama.cpp",
    "llama-cli": "llama.cpp",
    "llama-mtmd-cli": "llama.cpp",
    "llama-bench": "llama.cpp",
    "llama-run": "llama.cpp",
    "llama": "llama.cpp",
    "ollama": "ollama",
    "vllm": "vllm",
    "vllm.entrypoints.openai.api_server": "vllm",
    "sglang": "sglang",
    "sglang.launch_server": "sglang",
    **dict.fromkeys(("mlx_lm", "mlx_lm.server", "mlx_lm.chat", "mlx_lm.generate", "mlx_vlm.server"), "mlx"),
    "hf": "hf",
    "huggingface-cli": "hf",
}
# Docker images by a part of their names, with the program that they start.
_IMAGES: Mapping[str, str] = MappingProxyType(
    {"/llama.cpp:": "llama-server", "vllm/vllm-openai": "vllm", "sglang": "sglang", "ollama/ollama": "ollama"}
)
# Flags of docker that take no value.
_DOCKER_SWITCHES = frozenset({"-it", "-ti", "-i", "-t", "-d", "--rm", "--init", "--privileged", "--detach"})
# What the images of llama.cpp with all of its programs take first.
_STARTS = frozenset({"--server", "-s", "--run", "-r"})
# Programs that load other formats, by their names.
_OTHER_FORMATS: Mapping[str, str] = MappingProxyType({"vllm": "vLLM", "sglang": "SGLang", "mlx": "MLX"})
_MODEL_FLAGS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "llama.cpp": frozenset({"-m", "--model", "-hf", "-hfr", "--hf-repo", "-hff", "--hf-file"}),
        "vllm": frozenset({"--model"}),
        "sglang": frozenset({"--model", "--model-path"}),
        "mlx": frozenset({"--model", "-m"}),
    }
)
# llama.cpp's variables that aren't called like the flag.
_VARIABLES = MappingProxyType({"N_PARALLEL": "parallel", "N_PREDICT": "predict"})
_QUANT = re.compile(r"(UD-)?(I?Q\d\w*|BF16|F16|MXFP4\w*)")
_JSON_FLAGS = {
    "--chat-template-kwargs",
    "--chat-template-args",
    "--default-chat-template-kwargs",
    "--override-generation-config",
}
_JSON_NAMES = {
    "repetition_penalty": "repeat_penalty", "max_new_tokens": "max_tokens", "max_tokens": "max_tokens",
}  # fmt: skip
_TWO_WORDS = {"run", "pull", "create", "serve", "server", "generate", "show", "chat", "bench"}
_LAUNCHERS = {"sudo", "nohup", "time", "exec", "env", "nice", "python", "python3", "-m", "uv", "uvx", "$", ">", "&"}


class Remark(msgspec.Struct, frozen=True):
    """Something in the command that isn't taken over, and why."""

    words: str
    """As it was written."""
    sentence: str


class ReadCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a pasted command here."""

    program: Program
    model: ModelName | None = None
    load: Mapping[str, Any]
    """Load options by key."""
    answer: Mapping[str, Any]
    """Generation options by key."""
    system_prompt: str = ""
    remarks: tuple[Remark, ...] = ()


def read_command(text: str) -> ReadCommand | None:
    """Return what a pasted text means; None if it is no command line of these programs and no Modelfile.

    Flags alone, such as "-ngl 99 -c 65536", count as llama.cpp's.
    """
    if re.search(r"^[^\S\n]*FROM\s+\S", text, re.IGNORECASE | re.MULTILINE):
        return _Reader("ollama").modelfile(text)
    service = read_compose(text, lambda image: bool(_started_by(image)))
    if service is not None:
        return _read_service(service)
    commands = read_commands(text) or []
    if len(commands) == 1 and re.match(r"--?[A-Za-z]", commands[0][0]):
        return _Reader("llama.cpp").flags(commands[0])
    return next(filter(None, map(_read, commands)), None)


def _read_service(service: ComposeService) -> ReadCommand | None:
    """Return what a service of a compose file means: that is what `docker run` with its image does."""
    variables = [word for each in service.variables for word in ("-e", each)]
    remarks = [Remark(each, tr("This is a setting of Docker. QwenDesk runs without it.")) for each in service.others]
    return _read(["docker", "run", *variables, service.image, *service.words], remarks)


def _read(words: list[str], remarks: Sequence[Remark] = ()) -> ReadCommand | None:
    """Return what one command means; None if it isn't one of these programs."""
    if {"docker", "podman"} & set(words[:2]):
        words, of_docker = _without_docker(words)
        remarks = (*of_docker, *remarks)
    start = next((index for index, word in enumerate(words) if _program(word) is not None), None)
    if start is None or any(not _may_precede(word) for word in words[:start]):
        return None
    program = _program(words[start])
    assert program is not None, "`start` is the index of a program"
    reader = _Reader(program, remarks)
    reader.environment(words[:start])
    rest = words[start + 1 :]
    if program == "hf":
        return reader.download(rest[1:]) if rest[:1] == ["download"] else None
    if rest and rest[0] in _TWO_WORDS:
        rest = rest[1:]
    return reader.flags(rest)


def _without_docker(words: list[str]) -> tuple[list[str], list[Remark]]:
    """Return the variables and the command that docker runs, and remarks about docker's own flags."""
    remarks: list[Remark] = []
    variables: list[str] = []
    image = next((index for index, word in enumerate(words) if _started_by(word)), None)
    if image is None:  # docker exec runs a program in a container that is there
        after = words[words.index("exec") + 1 :] if "exec" in words else []
        container = next((index for index, word in enumerate(after) if not word.startswith("-")), len(after))
        return after[container + 1 :], remarks
    index = next((index for index, word in enumerate(words) if word.startswith("-")), image)
    while index < image:
        flag, separator, value = words[index].partition("=")
        takes_word = flag not in _DOCKER_SWITCHES and not separator and not words[index + 1].startswith("-")
        if takes_word and index + 1 < image:
            index += 1
            value = words[index]
        if flag in ("-e", "--env"):
            variables.append(value)
        else:
            written = f"{flag}{separator or ' '}{value}" if value else flag
            remarks.append(Remark(written, tr("This is a flag of Docker. QwenDesk runs without it.")))
        index += 1
    rest = words[image + 1 :]
    if any(_program(word) is not None for word in rest):
        return [*variables, *rest], remarks
    return [*variables, _started_by(words[image]), *rest[int(rest[:1] != [] and rest[0] in _STARTS) :]], remarks


def _started_by(word: str) -> str:
    """Return the program that a docker image starts; "" if the word is no image of these programs."""
    is_image = not word.startswith("-") and "=" not in word
    return next((program for part, program in _IMAGES.items() if is_image and part in word), "")


def _program(word: str) -> Program | None:
    name = PureWindowsPath(PurePosixPath(word).name).name.removesuffix(".exe")
    return _PROGRAMS.get(name)


def _may_precede(word: str) -> bool:
    return word in _LAUNCHERS or re.match(r"\$?\w+[:=]", word) is not None


class _Reader:
    """Collects what the words of one command mean."""

    def __init__(self, program: Program, remarks: Sequence[Remark] = ()) -> None:
        self._program: Program = program
        self._model: ModelName | None = None
        self._load: dict[str, Any] = {}
        self._answer: dict[str, Any] = {}
        self._system_prompt = ""
        self._remarks = list(remarks)

    def environment(self, words: list[str]) -> None:
        """Read the variables that are set before the program's name."""
        for word in words:
            name, _, value = word.removeprefix("$env:").partition("=")
            flag = find_flag(name, "ollama")
            if name.startswith("LLAMA_ARG_") and value:
                variable = name.removeprefix("LLAMA_ARG_")
                self._flag(f"--{_VARIABLES.get(variable, variable.lower().replace('_', '-'))}={value}", [])
            elif name == "CUDA_VISIBLE_DEVICES":
                self._remark(word, tr("Choose the GPUs with the option Devices."))
            elif flag is not None and value:
                self._take(flag, name, [value])

    def flags(self, words: list[str]) -> ReadCommand:
        index = 0
        while index < len(words):
            index += self._flag(words[index], words[index + 1 :])
        return self._result()

    def download(self, words: list[str]) -> ReadCommand:
        """Read the arguments of `hf download`: a repository, and the names or patterns of files in it."""
        flag, names, patterns = "", [], []
        for word in words:
            if word.startswith("-"):
                flag, _, value = word.partition("=")
                words_of_flag = [value] if value else []
            else:
                words_of_flag = [word]
            for each in words_of_flag:
                if flag == "--include":
                    patterns.append(each)
                elif flag:
                    self._remark(f"{flag} {each}", tr("Models are downloaded on the Models page."))
                    flag = ""
                else:
                    names.append(each)
        if names:
            files = [each for each in (*names[1:], *patterns) if "mmproj" not in each.lower()]
            path = next((each for each in files if each.endswith(".gguf") and "*" not in each), "")
            quant = next(filter(None, map(_QUANT.search, files)), None)
            self._model = ModelName(repo=names[0], path=path, quant=quant[0] if quant is not None and not path else "")
        return self._result()

    def modelfile(self, text: str) -> ReadCommand:
        for instruction, argument in _instructions(text):
            if instruction == "FROM":
                self._name_model(argument)
            elif instruction == "PARAMETER":
                name, _, value = argument.partition(" ")
                flag = find_flag(name.lower(), "ollama")
                if flag is None:
                    self._remark(f"PARAMETER {name}", tr("QwenDesk doesn't know this parameter."))
                else:
                    self._take(flag, name, [_unquoted(value.strip())])
            elif instruction == "SYSTEM":
                self._system_prompt = _unquoted(argument)
            elif instruction == "ADAPTER":
                self._set("lora", (argument,))
            elif instruction == "TEMPLATE":
                self._remark(
                    "TEMPLATE", tr("Ollama's templates are in another language. QwenDesk uses the one in the model.")
                )
            else:
                self._remark(instruction, tr("This has no effect here."))
        return self._result()

    def _flag(self, word: str, rest: list[str]) -> int:
        """Read the flag `word`. Return how many words were used."""
        name, separator, given = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.startswith("-") or re.fullmatch(r"-\d.*", word):
            self._plain_word(word)
            return 1
        if self._program not in _OTHER_FORMATS and name.startswith("--"):
            name = name.replace("_", "-")
        values = [given] if separator else rest
        if name in _MODEL_FLAGS.get(self._program, ()) and values:
            self._name_model(values[0], name)
            return 1 if separator else 2
        flag = find_flag(name, self._program)
        if flag is None:
            takes_word = not separator and bool(rest) and not rest[0].startswith("-")
            used = f"{word} {rest[0]}" if takes_word else word
            self._remark(used, tr("QwenDesk doesn't know this flag."))
            return 2 if takes_word else 1
        n_values = flag.n_values
        if n_values < 0:
            n_values = int(bool(separator) or bool(rest and not rest[0].startswith("-")))
        if len(values) < n_values:
            self._remark(word, tr("The value is missing."))
            return 1 + len(rest)
        self._take(flag, name, values[:n_values])
        return 1 if separator else 1 + n_values

    def _take(self, flag: Flag, name: str, values: list[str]) -> None:
        written = " ".join([name, *values])
        if name in _JSON_FLAGS:
            self._take_json(written, values[0])
            return
        if not flag.key:
            self._remark(written, tr(flag.note))
            return
        try:
            self._set(flag.key, flag_value(flag, name, values[0] if values else ""))
        except BadOption as error:
            self._remark(written, error.sentence)
            return
        if name == "OLLAMA_KV_CACHE_TYPE":
            self._set("type_v", self._load["type_k"])
        if flag.key == "n_gpu_layers":
            self._remark(written, tr(flag.note))

    def _take_json(self, written: str, text: str) -> None:
        """Take options from a JSON object, such as {"enable_thinking": false}."""
        try:
            content = decode_json(text)
        except msgspec.DecodeError:
            content = None
        if not isinstance(content, dict):
            self._remark(written, tr("This isn't a JSON object."))
            return
        entries = table(GenerationOptions)
        for key, value in content.items():
            option = _JSON_NAMES.get(str(key), str(key))
            try:
                if option not in entries:
                    raise BadOption("", tr("QwenDesk doesn't know this parameter."))
                self._set(option, flag_value(Flag(program=self._program, names=(), key=option), "", json.dumps(value)))
            except BadOption as error:
                self._remark(f"{key}: {json.dumps(value)}", error.sentence)

    def _set(self, key: str, value: Any) -> None:
        options = self._load if key in table(LoadOptions) else self._answer
        is_list = isinstance(value, tuple) and key in ("override_tensor", "lora", "kv_overrides", "stop", "logit_bias")
        options[key] = (*options.get(key, ()), *value) if is_list else value

    def _plain_word(self, word: str) -> None:
        if self._model is None and self._program != "llama.cpp":
            self._name_model(word)
        else:
            self._remark(word, tr("Write the prompt in the chat."))

    def _name_model(self, text: str, flag: str = "") -> None:
        if flag in ("-hff", "--hf-file") and self._model is not None:
            self._model = msgspec.structs.replace(self._model, path=text)
            return
        is_file = flag == "-m" or text.lower().endswith(".gguf") or text.startswith((".", "/", "~"))
        if self._program not in _OTHER_FORMATS and is_file:
            if self._model is not None and "mmproj" in text.lower():
                self._set("mmproj", text)
            else:
                self._model = ModelName(file=text)
            return
        named = read_model_name(text)
        if self._program in _OTHER_FORMATS:
            self._model = ModelName(words=gguf_words(text))
            program = _OTHER_FORMATS[self._program]
            self._remark(text, tr("{0} loads another format. QwenDesk needs a GGUF file of the same model.", program))
        elif named is not None and (flag or "hf.co/" in text or "huggingface.co/" in text):
            self._model = named
        else:
            self._model = ModelName(words=re.sub(r"[:_]", " ", text.rpartition("/")[2]).removesuffix(" latest"))
            self._remark(text, tr("This is a name of Ollama's library. Search for the model on the Models page."))

    def _remark(self, words: str, sentence: str) -> None:
        self._remarks.append(Remark(words, sentence))

    def _result(self) -> ReadCommand:
        return ReadCommand(
            program=self._program,
            model=self._model,
            load=self._load,
            answer=self._answer,
            system_prompt=self._system_prompt,
            remarks=tuple(dict.fromkeys(self._remarks)),
        )


def _instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Modelfile with their arguments, which may have several lines in triple quotes."""
    pattern = re.compile(r'^[ \t]*([A-Za-z]+)[ \t]+("""[\s\S]*?"""|[^\r\n]*)', re.MULTILINE)
    return [(match[1].upper(), match[2].strip()) for match in pattern.finditer(text)]


def _unquoted(text: str) -> str:
    for mark in ('"""', '"'):
        if text.startswith(mark) and text.endswith(mark) and len(text) >= 2 * len(mark):
            return text[len(mark) : -len(mark)].strip() if mark == '"""' else text[1:-1]
    return text
