"""How far the index of a picked folder is, as the window shows it."""

from typing import Literal

import msgspec

Phase = Literal["waiting", "listing", "reading", "ready", "failed"]


class FileProblem(msgspec.Struct, frozen=True):
    """A file that could not be read."""

    path: str
    reason: str
    """A sentence."""


class FolderState(msgspec.Struct, frozen=True):
    """A folder that the user picked for a chat."""

    folder: str
    phase: Phase = "waiting"
    fraction: float = 0.0
    """While files are read: 0 to 1."""
    n_seen: int = 0
    """While files are read: how many of `n_found` are read, or were before and have not changed."""
    n_found: int = 0
    """Files of any kind in the folder; 0 while they are listed."""
    n_files: int = 0
    """Files with text."""
    problems: tuple[FileProblem, ...] = ()
    """The first of those that could not be read."""
    n_problems: int = 0
    note: str = ""
    """Reason why it failed, or that it has too many files; a sentence."""
