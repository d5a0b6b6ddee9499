"""Expected failures as values, which are returned and not raised."""

from typing import Literal

import msgspec

from qwendesk.core.options import LoadOptions

LoadFailureKind = Literal[
    "out_of_vram",
    "out_of_ram",
    "buffer_too_large",
    "kv_tensor_too_large",
    "unsupported_architecture",
    "not_gguf",
    "truncated",
    "mmproj_mismatch",
    "missing_file",
    "missing_library",
    "illegal_instruction",
    "cancelled",
    "bad_option",
    "engine_crashed",
    "other",
]


class LoadFailure(msgspec.Struct, frozen=True):
    """Why a model did not load, in words for users, with lines of the engine's log."""

    kind: LoadFailureKind
    title: str
    sentence: str
    """Description of the failure and of the next step."""
    engine_lines: tuple[str, ...] = ()
    nearest: LoadOptions | None = None
    """The same options with the nearest value that fits, if the planner refused a value that the user set."""


class EngineExit(msgspec.Struct, frozen=True):
    """An unexpected exit of the engine worker."""

    exit_code: int | None
    sentence: str
    engine_lines: tuple[str, ...] = ()
    was_started: bool = True
    """False if the system refused to start its program."""
    is_memory_kill: bool = False
    """True if the kernel killed it because memory ran out, as far as it says so."""
