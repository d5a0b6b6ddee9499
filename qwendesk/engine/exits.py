"""What a worker's exit status says, in words."""

import signal

_SIGNALS = {
    "SIGKILL": "was ended from outside (out of memory, or killed)",
    "SIGTERM": "was asked to end from outside",
    "SIGHUP": "was asked to end from outside",
    "SIGINT": "was interrupted from the keyboard",
    "SIGILL": "met a CPU instruction that this processor does not have",
    "SIGSEGV": "crashed (invalid memory access)",
    "SIGBUS": "crashed (a file it had mapped shrank or its disk went away)",
    "SIGFPE": "crashed (arithmetic error)",
    "SIGABRT": "gave up on an internal error",
    "SIGTRAP": "gave up on an internal error",
    "SIGSYS": "was stopped by a security policy",
}

# NTSTATUS codes, which Windows gives as exit codes (ntstatus.h); 3 is what abort() of the C runtime exits with.
_WINDOWS_CODES = {
    3: "gave up on an internal error",
    0xC0000005: "crashed (invalid memory access)",
    0xC0000006: "crashed (a file it had mapped could not be read)",
    0xC0000017: "could not get enough memory",
    0xC000001D: "met a CPU instruction that this processor does not have",
    0xC0000094: "crashed (arithmetic error)",
    0xC00000FD: "crashed (stack overflow)",
    0xC000012D: "could not get enough memory (the page file is full)",
    0xC0000135: "did not find one of its libraries",
    0xC0000139: "found one of its libraries in a version that does not fit",
    0xC000013A: "was interrupted from the keyboard",
    0xC0000142: "could not start one of its libraries",
    0xC0000409: "gave up on an internal error",
    0x40010004: "was ended from outside",
}

ILLEGAL_INSTRUCTION_CODES = frozenset({-4, 0xC000001D})
"""SIGILL is 4 on every platform with signals."""
OUT_OF_MEMORY_CODES = frozenset({-9, 0xC0000017, 0xC000012D})
MISSING_LIBRARY_CODES = frozenset({0xC0000135, 0xC0000139, 0xC0000142})


def unsigned(exit_code: int) -> int:
    """The code as the tables have it: negative only for a POSIX signal (Windows codes may come signed)."""
    return exit_code & 0xFFFFFFFF if exit_code < -1000 else exit_code


def describe_exit(exit_code: int | None) -> str:
    """A whole sentence on why the engine ended; negative codes are signal numbers, as Python gives them."""
    if exit_code is None:
        return "The engine ended."
    code = unsigned(exit_code)
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            return f"The engine was ended by signal {-code}."
        return f"The engine {_SIGNALS.get(name, f'was ended by the signal {name}')}."
    if code in _WINDOWS_CODES:
        return f"The engine {_WINDOWS_CODES[code]}."
    return f"The engine ended by itself with exit code {code if code < 0x10000 else hex(code)}."
