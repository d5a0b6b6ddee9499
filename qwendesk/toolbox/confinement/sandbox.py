"""The sandbox in which a script of the model runs: what it sees, and its limits. Linux with bubblewrap.

The script sees the system's folders read-only, and one folder of its own, /tmp, which lies in memory and is gone when
it ends: nothing of a script is ever on the disk. It has no home folder, no network, no other processes, no terminal
and no rights to gain.
"""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.units import GIB, MIB

# The sandbox's own, which is empty at first.
SCRATCH = "/tmp"
SCRIPT = f"{SCRATCH}/script.py"
SCRATCH_BYTES = 256 * MIB
# Of one process; also of all of them together, which `confined_run` watches.
MEMORY_BYTES = 2 * GIB
# In the scratch folder: each takes memory of the kernel, which no other limit counts.
MOST_FILES = 20_000
CPU_S = 50
# Threads count as well.
PROCESSES = 64

# By name in Python's module resource. They are set inside of the sandbox, so that processes are counted there.
LIMITS: Mapping[str, int] = {
    "RLIMIT_AS": MEMORY_BYTES,
    "RLIMIT_CPU": CPU_S,
    "RLIMIT_FSIZE": SCRATCH_BYTES,
    "RLIMIT_NOFILE": 256,
    "RLIMIT_NPROC": PROCESSES,
    "RLIMIT_CORE": 0,
}

_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/bin:/bin",
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",  # matplotlib draws into files
    "MPLCONFIGDIR": f"{SCRATCH}/.matplotlib",
    "OMP_NUM_THREADS": "4",  # numpy starts a thread for each core otherwise, and each takes address space
    "OPENBLAS_NUM_THREADS": "4",
    "MALLOC_ARENA_MAX": "2",
}
# Links into /usr on today's systems, folders on some.
_TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64")
# Where libraries are, which of several programs is meant, and the time zone.
_SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")


class Sandbox(msgspec.Struct, frozen=True):
    """The programs of this PC that make a sandbox."""

    bwrap: str
    python: str


def find_python() -> str:
    """Return the path of the system's Python; "" if there is none.

    One in the user's home (pyenv, conda) can't be used, because a script must not see the home.
    """
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")
    return found if found is not None and Path(found).resolve().is_relative_to("/usr") else ""


def find_bwrap() -> str:
    """Return the path of bubblewrap; "" if it isn't installed."""
    return shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin") or ""


def command(sandbox: Sandbox, *, script_fd: int, filter_fd: int, report_fd: int, info_fd: int) -> tuple[str, ...]:
    """Return the command that runs a script.

    The numbers are of open files and pipes that the command inherits: the script, the filter of system calls, where
    the supervisor (resources/sandbox) writes, and where bubblewrap tells the number of the first process inside.
    """
    supervisor = (paths.resources_folder() / "sandbox" / "supervise.py").read_text(encoding="utf-8")
    return (
        sandbox.bwrap,
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--hostname", "localhost", "--new-session", "--die-with-parent", "--clearenv"),
        *(part for name, value in _ENVIRONMENT.items() for part in ("--setenv", name, value)),
        *_system_folders(),
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"),
        *("--size", str(SCRATCH_BYTES), "--perms", "0700", "--tmpfs", SCRATCH),
        *("--ro-bind-data", str(script_fd), SCRIPT),
        *("--remount-ro", "/", "--chdir", SCRATCH),
        *("--seccomp", str(filter_fd), "--info-fd", str(info_fd)),
        *(sandbox.python, "-I", "-B", "-c", supervisor, str(report_fd), json.dumps(_limits())),
    )


def _system_folders() -> Iterator[str]:
    """Yield the options for what a script may read of the system: its programs and libraries."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _TOP_LEVEL:
        path = Path("/") / name
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for place in _SETTINGS:
        yield from ("--ro-bind-try", place, place)


def _limits() -> dict[str, int]:
    """Return LIMITS, where this process has lower ones those: nobody may raise them."""
    lowered = {}
    for name, value in LIMITS.items():
        hard = resource.getrlimit(getattr(resource, name))[1]
        lowered[name] = value if hard == resource.RLIM_INFINITY else min(value, hard)
    return lowered
