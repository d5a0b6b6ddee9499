"""The protocol of all probes, and functions to read small text files."""

import os
import re
from pathlib import Path
from typing import Protocol

import msgspec

from qwendesk.hardware.snapshot import GpuReading, SystemReading


class ProbeRequest(msgspec.Struct, frozen=True):
    """The request to a probe: the engine's process ID (None without an engine) and seconds of a monotonic clock."""

    pid: int | None
    now_s: float


class ProbeResult(msgspec.Struct, frozen=True):
    """What a probe found. Readings of the same GPU by different probes are merged later."""

    gpus: tuple[GpuReading, ...] = ()
    system: SystemReading | None = None
    notes: tuple[str, ...] = ()


class HardwareProbe(Protocol):
    """Reads one source. Used by one thread at a time. Values that can't be read are None; nothing is raised."""

    def read(self, request: ProbeRequest) -> ProbeResult: ...

    def close(self) -> None: ...


EMPTY_RESULT = ProbeResult()
_PCI = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$")


def pci_address(text: str) -> str | None:
    """Return an address like "00000000:01:00.0" (NVML) in the form "0000:01:00.0" (sysfs); None if it is no address."""
    found = _PCI.match(text.strip().lower())
    return f"{(found[1] or '0000')[-4:]}:{found[2]}:{found[3]}.{found[4]}" if found else None


def read_text(path: Path) -> str | None:
    """Return the stripped text of a small system file, at most 64 KiB; None if it is missing or can't be read."""
    try:
        # os.open takes half the time of Path.read_text, and each poll reads dozens of files.
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
    """Return the integer at the start of `text`, which may be hexadecimal (0x...); None if there is none."""
    found = re.match(r"\s*(0x[0-9a-fA-F]+|-?\d+)", text or "")
    if found is None:
        return None
    return int(found[1], 16 if found[1].startswith("0x") else 10)  # base 0 would reject "0123"


def list_folder(path: Path) -> list[str]:
    """Return the sorted names in a folder; empty if it is missing or can't be read."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208 - names, not paths: many times cheaper in /proc
    except OSError:
        return []
