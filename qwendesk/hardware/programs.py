"""The programs that run on this PC: their names, and the one that is in full screen."""

import msgspec
import psutil

_CUT_NAME = 15
"""Linux cuts the name of a process after this many bytes, if its command line doesn't tell the rest."""


class Program(msgspec.Struct, frozen=True):
    """A running program."""

    pid: int
    name: str
    """File name; "" if it isn't known."""


def running_programs() -> tuple[Program, ...]:
    """Return all running programs. Blocks for about 50 µs a process; takes no look at command lines or windows."""
    return tuple(
        Program(process.pid, process.info["name"])
        for process in psutil.process_iter(["name"])
        if process.info.get("name")
    )


def is_same_program(name: str, other: str) -> bool:
    """Return whether two file names are those of one program: case and the ending ".exe" make no difference."""
    one, two = sorted((_stem(name), _stem(other)), key=len)
    if not one:
        return False
    return one == two or (len(one.encode()) == _CUT_NAME and two.startswith(one))


def _stem(name: str) -> str:
    return name.strip().casefold().removesuffix(".exe")
