"""What became of a change that a tool made of a file, and what the user can do about it."""

from typing import Literal

import msgspec

# How the file is now: as the edit left it; as it was before; changed since; gone; a link or something else that is no
# ordinary file. Or what was before isn't kept any more.
EditState = Literal["applied", "undone", "changed", "missing", "replaced", "forgotten"]


class EditStatus(msgspec.Struct, frozen=True):
    state: EditState
    name: str = ""
    """The file as the user reads it; "" if forgotten."""
    path: str = ""
    is_new: bool = False
    """True if the edit made the file."""
