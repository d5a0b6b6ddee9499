"""Helpers for starting further QwenDesk processes, and for telling whether one still runs or reads its pipe."""

import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

import qwendesk


def own_command(*arguments: str) -> tuple[str, ...]:
    """Return the command that runs this installation, a bundle or a Python package, with `arguments`."""
    if getattr(sys, "frozen", False):
        return (sys.executable, *arguments)
    # -P keeps modules in the current folder from replacing QwenDesk's.
    return (sys.executable, "-P", "-m", "qwendesk", *arguments)


def with_source_tree(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment`, with the source tree added to PYTHONPATH if this process runs from one."""
    folder = Path(qwendesk.__file__).resolve().parent.parent
    if folder.name in ("site-packages", "dist-packages"):
        return dict(environment)
    paths = [str(folder), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def is_running(pid: int, started_s: float) -> bool:
    """Return True if the process with this id and start time (Unix time in seconds) still runs.

    The start time distinguishes it from a later process with the same id.
    """
    try:
        return abs(psutil.Process(pid).create_time() - started_s) < 1
    except psutil.Error:
        return False


def serves_port(port: int) -> bool:
    """Return whether a process of this user listens at a TCP port of this PC. Blocks for up to a second."""
    own = psutil.Process().username()
    for process in psutil.process_iter():
        try:
            if process.username() == own and any(
                each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in process.net_connections("tcp")
            ):
                return True
        except (psutil.Error, OSError):
            continue  # it has ended, or is another user's
    return False


def is_closed_pipe(error: OSError) -> bool:
    """Return True if a write failed because nobody reads the pipe any more. Windows has no error of its own for that.

    Python's subprocess module treats EINVAL in the same way (bpo-19612).
    """
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)
