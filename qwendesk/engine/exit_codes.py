"""The meaning of a worker process's exit code."""

import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from qwendesk.core.translation import mark, tr
from qwendesk.engine.protocol import GRAMMAR_EXIT_CODE

RUNTIME_ADDRESS = "https://aka.ms/vs/17/release/vc_redist.x64.exe"
"""Where Microsoft offers the Visual C++ runtime, which a fresh Windows lacks."""

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

_ENDED_FROM_OUTSIDE = frozenset({1, 15})
"""What Task Manager and `taskkill` (1) and other Python programs (15) name as the exit code of what they end."""
_TRACEBACK = re.compile(r'Traceback \(most recent call last\)|File ".*", line \d')
"""What Python writes before it exits with 1 by itself."""
_MISSING_LIBRARY = re.compile("Failed to load shared library|Could not find module|cannot open shared object file")
"""What ctypes and llama_cpp/_ctypes_extensions.py say while the package is imported."""

ILLEGAL_INSTRUCTION_CODES = frozenset({-4, 0xC000001D})
"""SIGILL is 4 on every platform with signals."""
OUT_OF_MEMORY_CODES = frozenset({0xC0000017, 0xC000012D})
KILLED_CODE = -9
"""SIGKILL, by which Linux ends a process when memory runs out, and anyone may."""
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
