"""The programs that run on this PC: their names, and the one that is in full screen."""

import os
from pathlib import Path

import msgspec
import psutil

# Linux cuts the name of a process after this many bytes, if its command line doesn't tell the rest.
_CUT_NAME = 15


class RunningProgram(msgspec.Struct, frozen=True):
    """A running program."""

    pid: int
    name: str
    """File name; "" if it isn't known."""


def running_programs() -> tuple[RunningProgram, ...]:
    """Return all running programs. Blocks for about 50 µs a process; takes no look at command lines or windows."""
    return tuple(
        RunningProgram(process.pid, process.info["name"])
        for process in psutil.process_iter(["name"])
        if process.info.get("name")
    )


def started_programs(most: int = 25) -> tuple[RunningProgram, ...]:
    """Return programs that this user has started, the latest first, each name once. Blocks for some milliseconds.

    Without QwenDesk's own processes, and without what belongs to the system.
    """
    own = psutil.Process()
    user, ours = own.username(), {own.pid, *(child.pid for child in own.children(recursive=True))}
    found = [
        process
        for process in psutil.process_iter(["name", "exe", "username", "create_time"])
        if process.info["username"] == user and process.info["name"] and process.pid not in ours
    ]
    found.sort(key=lambda process: process.info["create_time"] or 0.0, reverse=True)
    programs: dict[str, RunningProgram] = {}
    for process in found:
        if _is_of_user(process.info["exe"]):
            programs.setdefault(process.info["name"], RunningProgram(process.pid, process.info["name"]))
    return tuple(programs.values())[:most]


def _is_of_user(executable: str | None) -> bool:
    """Return False for kernel threads, which have no file, and for parts of Windows."""
    system = os.environ.get("SYSTEMROOT")
    return bool(executable) and not (system and Path(executable or "").is_relative_to(system))


def is_same_program(name: str, other: str) -> bool:
    """Return whether two file names are those of one program: case and the ending ".exe" make no difference."""
    one, two = sorted((_stem(name), _stem(other)), key=len)
    if not one:
        return False
    return one == two or (len(one.encode()) == _CUT_NAME and two.startswith(one))


def _stem(name: str) -> str:
    return name.strip().casefold().removesuffix(".exe")
