"""Tells the bandwidth of this PC's RAM by its modules, which the firmware lists (SMBIOS, type 17).

Windows gives the table to every program. On Linux only root may read it, but udev keeps its values. A Mac's memory is
known by the name of its chip (gpu_cards.py).
"""

import ctypes
import functools
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

_CHANNEL_BITS = 64
_UDEV = Path("/run/udev/data/+dmi:id")
_SLOT = re.compile(r"bank[\s_-]*\d+|[\s_-]*(?:dimm|slot)?[\s_#-]*\d+$")
# Types of memory whose modules are soldered: each has a part of a channel's width.
_SOLDERED = "LPDDR"
_TYPES: Mapping[int, str] = MappingProxyType(
    {24: "DDR3", 26: "DDR4", 27: "LPDDR", 28: "LPDDR2", 29: "LPDDR3", 30: "LPDDR4", 34: "DDR5", 35: "LPDDR5"}
)


class RamModule(msgspec.Struct, frozen=True):
    """A module that is plugged in or soldered."""

    kind: str
    """Such as "DDR5"."""
    transfers: int
    """Million transfers per second, as configured."""
    bits: int
    """Width of its data."""
    place: str
    """Where it is, as the maker of the board says it: "P0 CHANNEL A DIMM 1"."""


def ram_bandwidth_here() -> tuple[float, float] | None:
    """Return the bytes/s of this PC's RAM twice, as a range; None where the system doesn't tell. Never raises."""
    bytes_s = bandwidth_of(modules_here())
    return (bytes_s, bytes_s) if bytes_s else None


@functools.cache
def modules_here() -> tuple[RamModule, ...]:
    """Return the modules of this PC's RAM; () where the system doesn't tell. Never raises."""
    try:
        if sys.platform == "win32":
            return tuple(smbios_modules(windows_table(ctypes.windll.kernel32.GetSystemFirmwareTable)))
        return tuple(udev_modules(_UDEV.read_text("utf-8", "replace")))
    except (OSError, ValueError, struct.error):
        return ()


def bandwidth_of(modules: Sequence[RamModule]) -> float:
    """Return the bytes/s that these modules carry together; 0.0 if a value is missing."""
    if not modules or not all(module.transfers and module.bits for module in modules):
        return 0.0
    slowest = min(module.transfers for module in modules)
    if all(module.kind.startswith(_SOLDERED) for module in modules):
        bits = sum(module.bits for module in modules)
    else:
        bits = _CHANNEL_BITS * _channels(modules)
    return slowest * 1e6 * bits / 8


def has_one_channel(modules: Sequence[RamModule]) -> bool:
    """Return whether all modules are in one channel, so that another one would double the speed of the RAM."""
    is_soldered = any(module.kind.startswith(_SOLDERED) for module in modules)
    return bool(modules) and not is_soldered and _channels(modules) == 1


def _channels(modules: Sequence[RamModule]) -> int:
    """Return in how many channels the modules are: those whose places differ in more than the number of a slot.

    Boards that only number their slots have two channels, unless there is one module alone.
    """
    channels = {_SLOT.sub("", module.place.lower()).strip(" _-/") for module in modules}
    if len(channels) == 1 and not any("channel" in each for each in channels):
        return min(len(modules), 2)
    return len(channels)


def udev_modules(text: str) -> Iterator[RamModule]:
    """Yield the modules in udev's entry of the firmware's tables. Raises ValueError."""
    values = dict(line[2:].split("=", 1) for line in text.splitlines() if line.startswith("E:") and "=" in line)
    for number in range(int(values.get("MEMORY_ARRAY_NUM_DEVICES", "0"))):
        device = {
            name: values.get(f"MEMORY_DEVICE_{number}_{name}", "")
            for name in ("TYPE", "CONFIGURED_SPEED_MTS", "DATA_WIDTH", "BANK_LOCATOR", "LOCATOR", "PRESENT")
        }
        if device["PRESENT"] != "0" and device["TYPE"] not in ("", "Unknown"):
            place = f"{device['BANK_LOCATOR']} {device['LOCATOR']}".strip()
            yield RamModule(
                device["TYPE"], int(device["CONFIGURED_SPEED_MTS"] or 0), int(device["DATA_WIDTH"] or 0), place
            )


def smbios_modules(table: bytes) -> Iterator[RamModule]:
    """Yield the modules of an SMBIOS table: structures with a header of 4 bytes, each followed by its texts."""
    start = 0
    while start + 4 <= len(table):
        kind, length = table[start], table[start + 1]
        end = table.find(b"\0\0", start + length)
        if length < 4 or end < 0:
            return
        if kind == 17 and length >= 0x22:
            texts = table[start + length : end].split(b"\0")
            (data_bits, size) = struct.unpack_from("<HH", table, start + 0x0A)
            (configured,) = struct.unpack_from("<H", table, start + 0x20)
            places = (_text(texts, table[start + offset]) for offset in (0x11, 0x10))
            if size and data_bits != 0xFFFF:
                name = _TYPES.get(table[start + 0x12], "")
                yield RamModule(name, configured, data_bits, " ".join(filter(None, places)))
        start = end + 2


def _text(texts: Sequence[bytes], number: int) -> str:
    return texts[number - 1].decode("utf-8", "replace").strip() if 0 < number <= len(texts) else ""


def windows_table(read: Callable[[int, int, Any, int], int]) -> bytes:
    """Return the SMBIOS table by Windows' GetSystemFirmwareTable. Raises OSError."""
    provider = int.from_bytes(b"RSMB", "big")
    n_bytes = read(provider, 0, None, 0)
    buffer = ctypes.create_string_buffer(n_bytes)
    if not n_bytes or read(provider, 0, buffer, n_bytes) != n_bytes:
        raise OSError("Windows has no SMBIOS table")
    return buffer.raw[8:]  # after a header of 8 bytes
