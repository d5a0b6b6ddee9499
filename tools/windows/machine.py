"""Whether this machine can run the Windows environment, and which Debian mirror it uses."""

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.setup.debian_mirror import MIRROR_VARIABLE, find_mirror

NEEDED_BYTES = 8 * 1024**3
"""Free space for the first set-up: 5 GB stay, the rest is for unpacking and compiling."""


@dataclass(frozen=True)
class Machine:
    """What the decision depends on."""

    system: str
    """As sys.platform names it."""
    processor: str
    is_root: bool
    has_debootstrap: bool
    """Whether debootstrap is installed, or apt-get can install it."""
    has_unshare: bool
    has_ensurepip: bool
    mirror: str
    """Address of a Debian mirror; empty if none is known."""
    free_bytes: int


def look_at_machine(folder: Path) -> Machine:
    """Return what this machine has. `folder` is where the environment will lie."""
    linux = sys.platform.startswith("linux")
    return Machine(
        system=sys.platform,
        processor=os.uname().machine if linux else "",
        is_root=linux and os.geteuid() == 0,
        has_debootstrap=any(shutil.which(name) for name in ("debootstrap", "apt-get")),
        has_unshare=shutil.which("unshare") is not None,
        has_ensurepip=importlib.util.find_spec("ensurepip") is not None,
        mirror=find_mirror(),
        free_bytes=shutil.disk_usage(folder).free,
    )


def refusal(machine: Machine, *, is_set_up: bool) -> str | None:
    """Return why the environment cannot be made or used here and what to do, or None if it can.

    `is_set_up` leaves out what only the first set-up needs.
    """
    if not machine.system.startswith("linux"):
        return "The Windows environment needs Linux. On Windows, test.cmd runs the tests."
    if machine.processor != "x86_64":
        return f"The Windows environment needs an x86-64 processor, and this one is {machine.processor}."
    if not machine.is_root:
        return "The Windows environment runs in a Debian folder of its own, which needs root. Run it with sudo."
    if not machine.has_unshare:
        return "The program unshare is missing. Install util-linux, then try again."
    if is_set_up:
        return None
    if not machine.has_debootstrap:
        return "The program debootstrap is missing. Install it with your package manager, then try again."
    if not machine.has_ensurepip:
        return "This Python has no ensurepip. Install the package python3-venv, then try again."
    if not machine.mirror:
        return (
            "No Debian mirror is known here: the system's package sources name none. "
            f"Set {MIRROR_VARIABLE} to the address of one, then try again."
        )
    if machine.free_bytes < NEEDED_BYTES:
        needed, free = (round(count / 1024**3, 1) for count in (NEEDED_BYTES, machine.free_bytes))
        return f"The Windows environment needs {needed:g} GB of free space, and {free:g} GB are free."
    return None
