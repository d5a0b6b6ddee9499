"""From the engine's own words to a load failure that people can act on. Pure.

llama.cpp reports failures in its log only, so the log's lines are searched by the table below. Each row names the
source file (of the llama.cpp that llama-cpp-python 0.3.36 carries) or the system that the line comes from.
"""

import re
from pathlib import Path

import msgspec

from qwendesk.core.failures import EngineDeath, LoadFailure, LoadFailureKind
from qwendesk.core.options import LoadOptions
from qwendesk.engine.exits import ILLEGAL_INSTRUCTION_CODES, MISSING_LIBRARY_CODES, OUT_OF_MEMORY_CODES, unsigned
from qwendesk.engine.protocol import LoadRefused

_HOST_BUFFER = r"(?:CPU\w*|\w+_Host|AMX|ACCEL|BLAS)"

_TABLE: tuple[tuple[str, LoadFailureKind], ...] = (
    # llama-model.cpp llama_model_create
    (r"unknown model architecture: '(?P<name>[^']*)'", "unsupported_architecture"),
    # llama-vocab.cpp: a newer model of a known architecture
    (r"unknown (?:pre-)?tokenizer(?: type)?: '(?P<name>[^']*)'", "unsupported_architecture"),
    # clip.cpp: a vision encoder that this version does not know
    (r"unknown (?:vision )?projector type:? (?P<name>\S+)", "unsupported_architecture"),
    # gguf.cpp: a newer file format
    (r"this GGUF file is version (?P<name>\d+) but", "unsupported_architecture"),
    # mtmd.cpp mtmd_context: the mmproj's vectors do not fit the model's
    (r"mismatch between text model \(n_embd = \d+\) and (?:gen-audio )?mmproj", "mmproj_mismatch"),
    # our loader: the mmproj hears but does not see
    (r"mmproj file has no vision encoder", "mmproj_mismatch"),
    # llama-model-loader.h and llama-adapter.cpp
    (r"data is not within the file bounds", "truncated"),
    # llama-mmap.cpp and llama-model-loader.cpp; gguf.cpp when the header itself is cut
    (r"unexpectedly reached end of file|corrupted model: \d+ tensors expected", "truncated"),
    (r"exceeds remaining file size|failed to read (?:tensor (?:info|data)|key-value pairs|header)\b", "truncated"),
    # clip.cpp
    (r"failed to seek for tensor", "truncated"),
    # llama-model-loader.cpp, shards of a split model
    (r"failed to load GGUF split from (?P<name>.+)", "missing_file"),
    # gguf.cpp
    (r"invalid magic characters|failed to read magic|bad GGUF version|GGUFv1 is no longer", "not_gguf"),
    # gguf.cpp and llama-mmap.cpp, with strerror's text
    (r"failed to open (?:GGUF file )?'?(?P<name>.+?)'?(?: \(|: )(?:No such file|.*cannot find)", "missing_file"),
    # clip.cpp
    (r"Does this file exist\?", "missing_file"),
    # ggml-cuda.cu: cudaMalloc's own line, or the abort of any call (ggml_cuda_error)
    (r"cudaMalloc failed|(?:CUDA|ROCm|MUSA) error: out of memory", "out_of_vram"),
    # vulkan.hpp's exception text and the spelling of VkResult
    (r"ErrorOutOfDeviceMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY", "out_of_vram"),
    # ggml-vulkan-buffers.cpp
    (r"ggml_vulkan: (?:Device )?[Mm]emory allocation of size \d+ failed", "out_of_vram"),
    # ggml-metal-device.m
    (r"ggml_metal\w*: error: failed to allocate buffer", "out_of_vram"),
    # llama-model.cpp and ggml-alloc.c name the buffer type: a device's, or the host's
    (rf"(?:unable|failed) to allocate {_HOST_BUFFER} buffer", "out_of_ram"),
    (r"(?:unable|failed) to allocate \S+ buffer(?: of size|$)", "out_of_vram"),
    # ggml.c ggml_aligned_malloc and ggml_malloc; ggml-backend.cpp's CPU buffers; C++ and Python themselves
    (r"insufficient memory|failed to allocate +[\d.]+ MB|ErrorOutOfHostMemory", "out_of_ram"),
    (r"failed to allocate buffer of size|std::bad_alloc|\bMemoryError\b|Cannot allocate memory", "out_of_ram"),
    # llama-context.cpp, llama-kv-cache.cpp, llama-memory-recurrent.cpp: on what device, an earlier line says
    (r"failed to allocate (?:compute \w+ buffers|buffer for (?:kv|rs) cache)", "out_of_ram"),
    # ctypes and llama_cpp/_ctypes_extensions.py while the package is imported
    (r"Failed to load shared library|cannot open shared object file|Shared library with base name", "missing_library"),
    (r"Library not loaded|DLL load failed|specified module could not be found", "missing_library"),
    (r"No module named '(?:llama_cpp|qwendesk)'", "missing_library"),
    # ggml-cuda.cu at start, CUDA's own texts
    (r"CUDA driver version is insufficient|no CUDA-capable device", "missing_library"),
    # llama-context.cpp, llama.cpp
    (r"quantized V cache was requested|invalid value for main_gpu", "bad_option"),
    # mtmd.cpp: no reason given before it, so the file is a GGUF, but no vision encoder
    (r"Failed to load CLIP model from", "mmproj_mismatch"),
)
_RULES = tuple((re.compile(pattern), kind) for pattern, kind in _TABLE)

_HINTS: tuple[tuple[str, str, str], ...] = (
    # llama-model.cpp: pattern, title and the rest of a sentence that begins with the file's name
    (
        r"CLIP cannot be used as main model",
        "This is a picture file",
        "is a picture file (mmproj), not a model. Choose the model itself; its picture file is a second choice.",
    ),
    # llama-model-loader.cpp: the tensors are not those that the architecture has
    (
        r"missing tensor|tensor '.*' not found|wrong (?:shape|number of tensors)|(?:array )?key not found in model",
        "The file does not fit the engine",
        "was made by a converter that is too old, too new or faulty for this engine. Download a current file of this "
        "model, or update QwenDesk.",
    ),
    # llama-model-loader.cpp with check_tensors
    (r"invalid data", "The file is damaged", "holds invalid numbers. Download it again."),
)


def classify_load(refused: LoadRefused | EngineDeath, options: LoadOptions) -> LoadFailure:
    """Why loading `options` failed, with a next step; the engine's own lines are attached."""
    if isinstance(refused, LoadRefused) and refused.stage == "cancelled":
        return msgspec.structs.replace(cancelled_load(), engine_lines=refused.engine_lines)
    if isinstance(refused, LoadRefused) and refused.stage == "options":
        return LoadFailure("bad_option", "An option cannot be used", refused.message, refused.engine_lines)
    kind, name = _kind(refused)
    in_vision = isinstance(refused, LoadRefused) and refused.stage == "vision"
    file = Path(options.mmproj if in_vision else options.model).name
    title, sentence = _words(kind, file, name)
    if kind in ("other", "engine_died"):
        title, sentence = _plain_words(refused, file)
    return LoadFailure(kind, title, sentence, refused.engine_lines)


def cancelled_load() -> LoadFailure:
    """The failure of a load that somebody stopped."""
    return LoadFailure("cancelled", "Loading was stopped", "No model is loaded. Choose one to load it.")


def _kind(refused: LoadRefused | EngineDeath) -> tuple[LoadFailureKind, str]:
    """The kind, and the name the matching line holds (an architecture, a file) or ""."""
    if isinstance(refused, EngineDeath):
        code = None if refused.exit_code is None else unsigned(refused.exit_code)
        if code in ILLEGAL_INSTRUCTION_CODES:
            return "illegal_instruction", ""
        if code in MISSING_LIBRARY_CODES:
            return "missing_library", ""
        if code is None:
            return "other", ""  # we ended it ourselves, and its sentence says why
        last: LoadFailureKind = "out_of_ram" if code in OUT_OF_MEMORY_CODES else "engine_died"
        lines: tuple[str, ...] = refused.engine_lines
    else:
        last = "other"
        lines = (*refused.engine_lines, refused.message)
    for pattern, kind in _RULES:
        for line in lines:
            if match := pattern.search(line):
                return kind, match.groupdict().get("name") or ""
    return last, ""


def _words(kind: LoadFailureKind, file: str, name: str) -> tuple[str, str]:
    """Title and sentence for people."""
    match kind:
        case "out_of_vram":
            return "Not enough video memory", (
                f"{file} does not fit into the video memory that is free. Use a shorter context, keep more expert "
                "layers on the CPU, choose a smaller quant, or close games and other programs that use the GPU."
            )
        case "out_of_ram":
            return "Not enough memory", (
                f"{file} does not fit into the memory (RAM) that is free. Use a shorter context, choose a smaller "
                "quant or model, or close other programs."
            )
        case "unsupported_architecture":
            return "Unknown kind of model", (
                f'{file} needs "{name}", which this version of the engine does not know. Update QwenDesk, or choose '
                "another model."
            )
        case "not_gguf":
            return "Not a model file", (
                f"{file} is no GGUF file (or one far too old). If it was downloaded, it may be an error page or a "
                "pointer instead of the file: download it again."
            )
        case "truncated":
            return "The file is incomplete", (
                f"{file} ends too early: the download was cut off or the file is damaged. Download it again."
            )
        case "mmproj_mismatch":
            return "The picture file belongs to another model", (
                f"{file} does not fit this model. Use the mmproj file from the folder or repository that the model "
                "comes from, or load without pictures."
            )
        case "missing_file":
            return "File not found", f"{Path(name).name or file} is not there any more. Choose the file again."
        case "missing_library":
            return "A library is missing", (
                "The engine could not load one of the libraries it needs, such as the GPU driver's. Install or update "
                'the GPU driver, or use the CPU engine. "Test engine" on the Engine page or `qwendesk doctor` shows '
                "which one."
            )
        case "illegal_instruction":
            return "The engine does not fit this processor", (
                "The engine was built for a newer processor than this one. Build it on this computer with "
                "`make run ENGINE=cpu`, or use an engine for older processors."
            )
        case "bad_option":
            return "An option cannot be used", (
                "The engine refused one of the options together with this model; its lines below say which. "
                "Set it back to its default and load again."
            )
        case "cancelled":
            return cancelled_load().title, cancelled_load().sentence
        case _:
            return "The model could not be loaded", f"{file} could not be loaded."


def _plain_words(refused: LoadRefused | EngineDeath, file: str) -> tuple[str, str]:
    """For failures of no kind of their own: a hint where a line gives one, else what the engine said."""
    if isinstance(refused, EngineDeath):
        return "The engine ended while loading", refused.sentence
    for pattern, title, rest in _HINTS:
        if any(re.search(pattern, line) for line in refused.engine_lines):
            return title, f"{file} {rest}"
    message = refused.message.strip().rstrip(".")
    if refused.stage == "template":
        return "The chat template cannot be used", (
            f"{message[:1].upper()}{message[1:]}. Choose another one with the option chat_template_file."
        )
    if refused.stage == "lora":
        return "A LoRA adapter cannot be used", f"{message[:1].upper()}{message[1:]}: check the option lora."
    return "The model could not be loaded", f"{file}: {message}. The engine's own lines below say more."
