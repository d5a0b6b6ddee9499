"""Expected failures as values: callers look at them, nobody catches them."""

from typing import Literal

import msgspec

LoadFailureKind = Literal[
    "out_of_vram",
    "out_of_ram",
    "unsupported_architecture",
    "not_gguf",
    "truncated",
    "mmproj_mismatch",
    "missing_file",
    "missing_library",
    "illegal_instruction",
    "cancelled",
    "bad_option",
    "engine_died",
    "other",
]


class LoadFailure(msgspec.Struct, frozen=True):
    """Why a model did not load, in words for people, with the engine's own lines beneath."""

    kind: LoadFailureKind
    title: str
    sentence: str
    """What happened and what to do next."""
    engine_lines: tuple[str, ...] = ()


class EngineDeath(msgspec.Struct, frozen=True):
    """The worker process ended without being asked to."""

    exit_code: int | None
    sentence: str
    engine_lines: tuple[str, ...] = ()
