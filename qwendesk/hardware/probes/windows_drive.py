"""Asks Windows whether the drive of a folder loses time when it seeks, as hard disks do."""

import ctypes
import struct
from pathlib import Path
from typing import Any

from qwendesk.core.plan import DriveKind

QUERY_PROPERTY = 0x002D1400
"""IOCTL_STORAGE_QUERY_PROPERTY. It needs no rights."""
SEEK_PENALTY = 7
"""StorageDeviceSeekPenaltyProperty of STORAGE_PROPERTY_ID."""
_STANDARD_QUERY = 0
_SHARE_ALL, _OPEN_EXISTING = 0x7, 3
_ANSWER_BYTES = 12
_LONGEST_NAME = 1024


def seek_penalty_query() -> bytes:
    """Return the STORAGE_PROPERTY_QUERY: property, query type, and one unused byte, padded to 12 bytes."""
    return struct.pack("<IIB3x", SEEK_PENALTY, _STANDARD_QUERY, 0)


def seek_penalty_kind(answer: bytes) -> DriveKind:
    """Return the kind of drive from a DEVICE_SEEK_PENALTY_DESCRIPTOR: version, size, and whether seeking costs time."""
    if len(answer) < 9:
        return ""
    version, size, has_penalty = struct.unpack_from("<IIB", answer)
    if version < 9 or size < 9:
        return ""
    return "hdd" if has_penalty else "ssd"


def folder_drive(folder: Path) -> DriveKind:
    """Return the kind of drive of an existing folder; "" if Windows doesn't say, as of network drives.

    Only Windows can be asked.
    """
    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    kernel.CreateFileW.restype = ctypes.c_void_p
    root, volume = (ctypes.create_unicode_buffer(_LONGEST_NAME) for _ in range(2))
    if not kernel.GetVolumePathNameW(ctypes.c_wchar_p(str(folder)), root, _LONGEST_NAME):
        return ""
    if not kernel.GetVolumeNameForVolumeMountPointW(root, volume, _LONGEST_NAME):
        return ""
    name = ctypes.c_wchar_p(volume.value.rstrip("\\"))
    handle = kernel.CreateFileW(name, 0, _SHARE_ALL, None, _OPEN_EXISTING, 0, None)
    if handle is None or handle == ctypes.c_void_p(-1).value:
        return ""
    try:
        return seek_penalty_kind(_ask(kernel, handle))
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


def _ask(kernel: Any, handle: int) -> bytes:
    """Return the answer of the drive; b"" if it has none."""
    query = seek_penalty_query()
    answer, n_bytes = ctypes.create_string_buffer(_ANSWER_BYTES), ctypes.c_uint32(0)
    done = kernel.DeviceIoControl(
        ctypes.c_void_p(handle), QUERY_PROPERTY, query, len(query), answer, _ANSWER_BYTES, ctypes.byref(n_bytes), None
    )
    return answer.raw[: n_bytes.value] if done else b""
