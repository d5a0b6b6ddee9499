"""Failures of a worker in words that help users: the lines of the engine's log, and the exit code of its
process.

The sentences name no load options where many may help: which one does is found by engines/load_decision.py.

llama.cpp reports failures only in its log, so each line is matched with the patterns below. The comment on a pattern
names the source of the line: a file of llama.cpp (in the version of llama-cpp-python 0.3.36) or a part of the system.
"""

import functools
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.core.engine_knowledge import may_need_newer, read_knowledge
from qwendesk.core.failures import EngineExit, LoadFailure, LoadFailureKind
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import join_sentences, mark, tr
from qwendesk.engine.protocol import GRAMMAR_EXIT_CODE, LoadRefused

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
    # mtmd.cpp mtmd_context: the embedding sizes of mmproj and model differ
    (r"mismatch between text model \(n_embd = \d+\) and (?:gen-audio )?mmproj", "mmproj_mismatch"),
    # worker/loader.py: the mmproj supports audio but not images
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
    # ggml-backend.cpp: the backend refuses a tensor above maxStorageBufferRange, and ggml aborts
    (r"pre-allocated tensor \((?P<name>cache_[kv]_\w+).*in a buffer \(.+\) that cannot run", "kv_tensor_too_large"),
    # ggml-vulkan-buffers.cpp: above maxBufferSize, however much memory is free
    (r"Requested buffer size exceeds device buffer size limit", "buffer_too_large"),
    # vulkan.hpp's exception text and the spelling of VkResult
    (r"ErrorOutOfDeviceMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY", "out_of_vram"),
    # ggml-vulkan-buffers.cpp
    (r"ggml_vulkan: (?:Device )?[Mm]emory allocation of size \d+ failed", "out_of_vram"),
    # ggml-metal-device.m
    (r"ggml_metal\w*: error: failed to allocate buffer", "out_of_vram"),
    # llama-model.cpp and ggml-alloc.c name the buffer type, which is that of a device or of the host
    (rf"(?:unable|failed) to allocate {_HOST_BUFFER} buffer", "out_of_ram"),
    (r"(?:unable|failed) to allocate \S+ buffer(?: of size|$)", "out_of_vram"),
    # ggml.c ggml_aligned_malloc and ggml_malloc; CPU buffers in ggml-backend.cpp; C++ and Python themselves
    (r"insufficient memory|failed to allocate +[\d.]+ MB|ErrorOutOfHostMemory", "out_of_ram"),
    (r"failed to allocate buffer of size|std::bad_alloc|\bMemoryError\b|Cannot allocate memory", "out_of_ram"),
    # llama-context.cpp, llama-kv-cache.cpp, llama-memory-recurrent.cpp; an earlier line names the device
    (r"failed to allocate (?:compute \w+ buffers|buffer for (?:kv|rs) cache)", "out_of_ram"),
    # the loader of Linux and of Windows: these libraries come with NVIDIA's driver and with nothing else
    (r"(?P<name>libcuda\.so|nvcuda\.dll)", "missing_library"),
    # ctypes and llama_cpp/_ctypes_extensions.py while the package is imported
    (r"Failed to load shared library|cannot open shared object file|Shared library with base name", "missing_library"),
    (r"Library not loaded|DLL load failed|specified module could not be found", "missing_library"),
    (r"No module named '(?:llama_cpp|qwendesk)'", "missing_library"),
    # ggml-cuda.cu at start, with messages of CUDA
    (r"CUDA driver version is insufficient|no CUDA-capable device", "missing_library"),
    # llama-context.cpp, llama.cpp
    (r"quantized V cache was requested|invalid value for main_gpu", "bad_option"),
    # mtmd.cpp: without a reason in an earlier line, the file is a GGUF file but has no vision encoder
    (r"Failed to load CLIP model from", "mmproj_mismatch"),
)
_UNKNOWN_ARCHITECTURE = "unknown model architecture"
# Lines of backends that can't pin host memory. The load goes on, only slower, so they are not its failure.
_WARNING = "pinned memory"

# A pattern for lines of the engine, with the title and the sentence to show; {0} is the file's name.
_HINTS: tuple[tuple[str, str, str], ...] = (
    # llama-model.cpp
    (
        r"CLIP cannot be used as main model",
        mark("This is a vision file"),
        mark("{0} is a vision file (mmproj), not a model. Choose the model; its vision file is found automatically."),
    ),
    # llama-model-loader.cpp: the tensors are not those of the architecture
    (
        r"missing tensor|tensor '.*' not found|wrong (?:shape|number of tensors)|(?:array )?key not found in model",
        mark("The engine can't use this file"),
        mark(
            "{0} was converted by a program that is too old, too new or faulty for this engine. Download a current "
            "file of this model, or update QwenDesk."
        ),
    ),
    # llama-model-loader.cpp with check_tensors
    (r"invalid data", mark("The file is damaged"), mark("{0} contains invalid numbers. Download it again.")),
)


def classify_load(refused: LoadRefused | EngineExit, options: LoadOptions) -> LoadFailure:
    """Return why loading with `options` failed, what the user can do, and the lines of the engine."""
    if isinstance(refused, LoadRefused) and refused.stage == "cancelled":
        return msgspec.structs.replace(cancelled_load(), engine_lines=refused.engine_lines)
    if isinstance(refused, LoadRefused) and refused.stage == "options":
        return LoadFailure("bad_option", tr("An option can't be used"), refused.sentence, refused.engine_lines)
    kind, name = _kind(refused)
    in_vision = isinstance(refused, LoadRefused) and refused.stage == "vision"
    file = Path(options.mmproj if in_vision else options.model).name
    title, sentence = _words(kind, file, name)
    if kind == "unsupported_architecture":
        sentence = join_sentences(sentence, _who_knows(name, refused), tr("Or choose another model."))
    if kind in ("other", "engine_crashed"):
        title, sentence = _plain_words(refused, file)
    return LoadFailure(kind, title, sentence, refused.engine_lines)


def _who_knows(name: str, refused: LoadRefused | EngineExit) -> str:
    """Return which engine can load what this one doesn't know. Releases say so only of architectures."""
    is_architecture = any(_UNKNOWN_ARCHITECTURE in line for line in refused.engine_lines)
    return read_knowledge().advice(name) if is_architecture else may_need_newer()


def cancelled_load() -> LoadFailure:
    """Return the failure of a load that the user stopped."""
    return LoadFailure("cancelled", tr("Loading was stopped"), tr("No model is loaded. Choose one to load it."))


def _kind(refused: LoadRefused | EngineExit) -> tuple[LoadFailureKind, str]:
    """Return the kind of the failure, and the name in the matching line (of an architecture or a file) or ""."""
    if isinstance(refused, EngineExit):
        code = None if refused.exit_code is None else unsigned(refused.exit_code)
        if code in ILLEGAL_INSTRUCTION_CODES:
            return "illegal_instruction", ""
        if code in MISSING_LIBRARY_CODES:
            return "missing_library", ""
        if code is None:
            return "other", ""  # QwenDesk stopped the worker, and the sentence of `refused` says why
        is_memory = code in OUT_OF_MEMORY_CODES or refused.is_memory_kill
        last: LoadFailureKind = "out_of_ram" if is_memory else "other" if code == KILLED_CODE else "engine_crashed"
        lines: tuple[str, ...] = refused.engine_lines
    else:
        last = "other"
        lines = (*refused.engine_lines, refused.message)
    lines = tuple(line for line in lines if _WARNING not in line)
    for pattern, kind in _rules():
        for line in lines:
            if match := pattern.search(line):
                return kind, match.groupdict().get("name") or ""
    return last, ""


@functools.cache
def _rules() -> tuple[tuple[re.Pattern[str], LoadFailureKind], ...]:
    """Return the table with its patterns compiled, which takes milliseconds and is needed only after a failure."""
    return tuple((re.compile(pattern), kind) for pattern, kind in _TABLE)


def _words(kind: LoadFailureKind, file: str, name: str) -> tuple[str, str]:
    """Return the title and the sentence of a failure."""
    match kind:
        case "out_of_vram":
            return tr("Not enough video memory"), tr(
                "{0} doesn't fit into the free video memory. Close games and other programs that use the GPU, or "
                "choose a smaller quant.",
                file,
            )
        case "buffer_too_large":
            return tr("A buffer is too large for the GPU"), tr(
                "{0} needs a larger piece of video memory than the GPU's driver gives out at once, even if enough is "
                "free. Use a shorter context or fewer layers on the GPU.",
                file,
            )
        case "kv_tensor_too_large":
            return tr("The KV cache is too large for the GPU"), tr(
                "For this context, the KV cache of one layer of {0} is larger than the GPU can use at once. Use a "
                "shorter context, a quantized KV cache, or the CPU.",
                file,
            )
        case "out_of_ram":
            return tr("Not enough memory"), tr(
                "{0} doesn't fit into the free memory (RAM). Close other programs, or choose a smaller quant or model.",
                file,
            )
        case "unsupported_architecture":
            return tr("Unknown kind of model"), tr('{0} needs "{1}", which this engine doesn\'t know.', file, name)
        case "not_gguf":
            return tr("Not a model file"), tr(
                "{0} isn't a GGUF file, or it's far too old. A download may have saved an error page instead of the "
                "file: download it again.",
                file,
            )
        case "truncated":
            return tr("The file is incomplete"), tr(
                "{0} ends too early: the download was cut off, or the file is damaged. Download it again.", file
            )
        case "mmproj_mismatch":
            return tr("The vision file belongs to another model"), tr(
                "{0} doesn't fit this model. Use the mmproj file from the model's own folder or repository, or load "
                "the model without pictures.",
                file,
            )
        case "missing_file":
            return tr("File not found"), tr("{0} could not be found. Choose the file again.", Path(name).name or file)
        case "missing_library" if name:
            return tr("No NVIDIA driver"), tr(
                "This engine needs NVIDIA's driver, which this PC doesn't have. Install the driver, or choose another "
                "engine on the Engine page."
            )
        case "missing_library":
            return tr("A library is missing"), tr(
                "The engine couldn't load one of its libraries. Install the newest graphics driver and, on Windows, "
                "Microsoft's Visual C++ runtime from {0}. Or use another engine: “Test engine” on the Engine page "
                "shows which library is missing.",
                RUNTIME_ADDRESS,
            )
        case "illegal_instruction":
            return tr("The engine doesn't fit this CPU"), tr(
                "The engine was built for a newer CPU. Use an engine for older CPUs, or build it on this computer with "
                "`make run ENGINE=cpu`."
            )
        case "bad_option":
            return tr("An option can't be used"), tr(
                "The engine refused one of the options for this model; its lines below say which. Set it back to its "
                "default and load again."
            )
        case "cancelled":
            return cancelled_load().title, cancelled_load().sentence
        case _:
            return tr("The model couldn't be loaded"), tr("{0} couldn't be loaded.", file)


def _plain_words(refused: LoadRefused | EngineExit, file: str) -> tuple[str, str]:
    """Return the title and the sentence of a failure of unknown kind: from a hint, else from the engine's message."""
    if isinstance(refused, EngineExit):
        return tr("The engine stopped while loading"), refused.sentence
    for pattern, title, sentence in _HINTS:
        if any(re.search(pattern, line) for line in refused.engine_lines):
            return tr(title), tr(sentence, file)
    match refused.stage:
        case "template":
            title = tr("The chat template can't be used")
            advice = tr("Choose another one with the option “Chat template file”.")
        case "lora":
            title, advice = tr("A LoRA adapter can't be used"), tr("Check the option “LoRA adapters”.")
        case _:
            title, advice = tr("The model couldn't be loaded"), tr("The engine's own lines below say more.")
            return title, join_sentences(tr("{0}: {1}", file, refused.sentence), advice)
    return title, join_sentences(refused.sentence, advice)


# Where Microsoft offers the Visual C++ runtime, which a fresh Windows lacks.
RUNTIME_ADDRESS = "https://aka.ms/vs/17/release/vc_redist.x64.exe"

_OUT_OF_MEMORY = mark("The engine stopped unexpectedly, probably because memory ran out.")
_KILLED = mark("The engine was killed, by another program or by your system.")
_STOPPED = mark("The engine was stopped by another program.")
_INTERRUPTED = mark("The engine was interrupted from the keyboard.")
_INTERNAL_ERROR = mark("The engine stopped because of an internal error.")
_INSTRUCTION = mark("The engine uses instructions that this CPU doesn't have.")
_MEMORY_ACCESS = mark("The engine crashed (invalid memory access).")
_ARITHMETIC = mark("The engine crashed (arithmetic error).")

_GRAMMAR = mark("A JSON schema or grammar kept the engine busy for too long, so it was stopped.")

_SIGNALS = {
    "SIGKILL": _KILLED,
    "SIGTERM": _STOPPED,
    "SIGHUP": _STOPPED,
    "SIGINT": _INTERRUPTED,
    "SIGILL": _INSTRUCTION,
    "SIGSEGV": _MEMORY_ACCESS,
    "SIGBUS": mark("The engine crashed (a file that it had mapped became shorter, or its disk was removed)."),
    "SIGFPE": _ARITHMETIC,
    "SIGABRT": _INTERNAL_ERROR,
    "SIGTRAP": _INTERNAL_ERROR,
    "SIGSYS": mark("The engine was stopped by a security policy."),
}

# NTSTATUS codes, which Windows uses as exit codes (ntstatus.h); 3 is the exit code of abort() in the C runtime.
_WINDOWS_CODES = {
    3: _INTERNAL_ERROR,
    0xC0000005: _MEMORY_ACCESS,
    0xC0000006: mark("The engine crashed (a file that it had mapped couldn't be read)."),
    0xC0000017: mark("The engine couldn't get enough memory."),
    0xC000001D: _INSTRUCTION,
    0xC0000094: _ARITHMETIC,
    0xC00000FD: mark("The engine crashed (stack overflow)."),
    0xC000012D: mark("The engine couldn't get enough memory (the page file is full)."),
    0xC0000135: mark("The engine couldn't find one of its libraries."),
    0xC0000139: mark("One of the engine's libraries has the wrong version."),
    0xC000013A: _INTERRUPTED,
    0xC0000142: mark("The engine couldn't start one of its libraries."),
    0xC0000409: _INTERNAL_ERROR,
    0x40010004: _STOPPED,
}

# What Task Manager and `taskkill` (1) and other Python programs (15) name as the exit code of what they end.
_ENDED_FROM_OUTSIDE = frozenset({1, 15})
# What Python writes before it exits with 1 by itself.
_TRACEBACK = re.compile(r'Traceback \(most recent call last\)|File ".*", line \d')
# What ctypes and llama_cpp/_ctypes_extensions.py say while the package is imported.
_MISSING_LIBRARY = re.compile("Failed to load shared library|Could not find module|cannot open shared object file")

# SIGILL is 4 on every platform with signals.
ILLEGAL_INSTRUCTION_CODES = frozenset({-4, 0xC000001D})
OUT_OF_MEMORY_CODES = frozenset({0xC0000017, 0xC000012D})
# SIGKILL, by which Linux ends a process when memory runs out, and anyone may.
KILLED_CODE = -9
_COUNTERS = Path("/proc/vmstat")
MISSING_LIBRARY_CODES = frozenset({0xC0000135, 0xC0000139, 0xC0000142})


def unsigned(exit_code: int) -> int:
    """Return the code as the tables above have it: Windows codes unsigned, and signals of POSIX negative."""
    return exit_code & 0xFFFFFFFF if exit_code < -1000 else exit_code


def count_memory_kills(counters: Path = _COUNTERS) -> int | None:
    """Return how many processes the kernel has killed since the PC started because memory ran out; None if unknown."""
    try:
        found = re.search(r"^oom_kill (\d+)$", counters.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return int(found[1]) if found is not None else None


def describe_exit(exit_code: int | None, lines: Sequence[str] = (), *, is_memory_kill: bool = False) -> str:
    """Return a sentence on why the engine exited. Negative codes are signal numbers, as in Python.

    `lines` are the last ones of its standard error. `is_memory_kill` says that the kernel has killed a process for its
    memory since the engine started.
    """
    if exit_code is None:
        return tr("The engine stopped.")
    if exit_code > 0 and any(_MISSING_LIBRARY.search(line) for line in lines):
        return tr(
            "The engine couldn't load one of its libraries. Install the newest graphics driver and, on Windows, "
            "Microsoft's Visual C++ runtime from {0}.",
            RUNTIME_ADDRESS,
        )
    code = unsigned(exit_code)
    if code == KILLED_CODE and is_memory_kill:
        return tr(_OUT_OF_MEMORY)
    if code == GRAMMAR_EXIT_CODE:
        return tr(_GRAMMAR)
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return tr(_SIGNALS[name]) if name in _SIGNALS else tr("The engine was stopped by the signal {0}.", name)
    if code in _WINDOWS_CODES:
        return tr(_WINDOWS_CODES[code])
    if sys.platform == "win32" and code in _ENDED_FROM_OUTSIDE and not any(map(_TRACEBACK.search, lines)):
        return tr("The engine was ended by another program, such as Task Manager.")
    return tr("The engine stopped with exit code {0}.", code if code < 0x10000 else hex(code))
