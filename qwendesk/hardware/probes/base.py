"""What every probe is, and what several of them need to read small texts."""

import os
import re
from pathlib import Path
from typing import Protocol

import msgspec

from qwendesk.hardware.snapshot import GpuReading, SystemReading


class Ask(msgspec.Struct, frozen=True):
    """What a probe is asked: the engine's process (None without one) and the time by a steady clock."""

    pid: int | None
    now_s: float


class Found(msgspec.Struct, frozen=True):
    """What a probe found. Readings of the same GPU by different probes are joined later."""

    gpus: tuple[GpuReading, ...] = ()
    system: SystemReading | None = None
    notes: tuple[str, ...] = ()


class Probe(Protocol):
    """Reads one source. Used by one thread at a time; what it cannot read is None, and nothing is raised."""

    def read(self, ask: Ask) -> Found: ...

    def close(self) -> None: ...


NOTHING = Found()
_PCI = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$")


def pci_address(text: str) -> str | None:
    """ "00000000:01:00.0" (NVML) and "0000:01:00.0" (sysfs) as the latter; None for anything else."""
    found = _PCI.match(text.strip().lower())
    return f"{(found[1] or '0000')[-4:]}:{found[2]}:{found[3]}.{found[4]}" if found else None


def read_text(path: Path) -> str | None:
    """A small file of the system, stripped; None when it is not there or not for us."""
    try:
        # os.open is half the cost of Path.read_text, and a poll reads dozens of these.
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 65_536).decode("utf-8", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(descriptor)


def number_in(text: str | None) -> int | None:
    """The whole number (0x... too) that `text` starts with; None when there is none."""
    found = re.match(r"\s*(0x[0-9a-fA-F]+|-?\d+)", text or "")
    if found is None:
        return None
    return int(found[1], 16 if found[1].startswith("0x") else 10)  # not 0: that refuses "0123"


def list_folder(path: Path) -> list[str]:
    """Sorted names; empty when the folder is not there or not for us."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208 - names, not paths: many times cheaper in /proc
    except OSError:
        return []
