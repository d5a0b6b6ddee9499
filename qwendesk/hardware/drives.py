"""Tells whether a folder is on an SSD or a hard disk, as Linux, macOS and Windows say it.

The kernel says of each disk whether it rotates. Partitions, mappings (LUKS, LVM, RAID) and file systems over several
disks are followed down to the disks.
"""

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from xml.parsers.expat import ExpatError

from qwendesk.core.plan import DriveKind


def drive_of(path: Path) -> DriveKind:
    """Return the kind of drive that a file or folder is on, or will be; "" if the system doesn't say.

    Blocks for a moment, or longer for a network drive that doesn't answer.
    """
    try:
        folder = next((each for each in (path, *path.parents) if each.is_dir()), None)
        if folder is None:
            return ""
        if sys.platform == "win32":
            return windows_drive(folder)
        if sys.platform == "darwin":
            return macos_drive(folder)
        return linux_drive(folder)
    except OSError:
        return ""


# Layers of mappings that are followed.
_MAX_DEPTH = 8
# Names of disks of virtual machines, in lower case. Their kernel doesn't know what the real disk is.
_VIRTUAL = ("qemu", "virtual", "vbox", "vmware", "msft")


def linux_drive(folder: Path, sys: Path = Path("/sys")) -> DriveKind:
    """Return the kind of drive of an existing folder; "" if unknown, as for network drives. Raises OSError."""
    device = folder.stat().st_dev
    if os.major(device) == 0:  # btrfs and others number their volumes themselves
        source = mount_source(
            Path("/proc/self/mountinfo").read_text("utf-8", "replace"), PurePosixPath(folder.resolve())
        )
        if not source.startswith("/dev/"):
            return ""
        device = Path(source).stat().st_rdev
    block = (sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}").resolve()
    return _combined([disk_kind(each) for each in _of_file_system(block, sys)])


def mount_source(mountinfo: str, folder: PurePosixPath) -> str:
    """Return what is mounted at a folder, such as "/dev/sda2", from the text of /proc/self/mountinfo; "" if unknown."""
    found, longest = "", -1
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if not separator or len(fields) < 5 or len(rest) < 2:
            continue
        point = PurePosixPath(_unescaped(fields[4]))
        if folder.is_relative_to(point) and len(point.parts) >= longest:  # a later mount hides an earlier one
            found, longest = _unescaped(rest[1]), len(point.parts)
    return found


def disk_kind(block: Path, depth: int = 0) -> DriveKind:
    """Return the kind of a block device from its folder below /sys/devices."""
    if depth > _MAX_DEPTH:
        return ""
    if (block / "partition").exists():
        return disk_kind(block.parent, depth + 1)
    slaves = sorted((block / "slaves").iterdir()) if (block / "slaves").is_dir() else []
    if slaves:
        return _combined([disk_kind(each.resolve(), depth + 1) for each in slaves])
    rotational = _read(block / "queue/rotational")
    if rotational == "0":
        return "" if block.name.startswith(("loop", "zram", "ram", "nbd")) else "ssd"
    # Of disks behind USB adapters and of virtual ones, the kernel assumes that they rotate.
    is_guessed = "/usb" in block.as_posix() or block.name.startswith(("vd", "xvd", "loop", "nbd"))
    model = f"{_read(block / 'device/vendor')} {_read(block / 'device/model')}".lower()
    is_known = rotational == "1" and not is_guessed and not any(name in model for name in _VIRTUAL)
    return "hdd" if is_known else ""


def _of_file_system(block: Path, sys: Path) -> Iterator[Path]:
    """Yield the block device, or all devices of its btrfs file system."""
    for devices in (sys / "fs/btrfs").glob("*/devices"):
        members = sorted(devices.iterdir())
        if block.name in {each.name for each in members}:
            yield from (each.resolve() for each in members)
            return
    yield block


def _combined(kinds: list[DriveKind]) -> DriveKind:
    """Return the slowest of several drives that are used as one; "" if one is unknown and none is a hard disk."""
    if "hdd" in kinds:
        return "hdd"
    return "ssd" if kinds and all(kind == "ssd" for kind in kinds) else ""


def _unescaped(text: str) -> str:
    """Return a field of mountinfo, in which the kernel writes spaces and backslashes as octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


_MAC_TIMEOUT_S = 10


def macos_drive(folder: Path) -> DriveKind:
    """Return the kind of drive of an existing folder; "" if unknown. Blocks for a moment."""
    device = volume_device(_output("/bin/df", "-P", str(folder)).decode("utf-8", "replace"))
    return drive_of_plist(_output("/usr/sbin/diskutil", "info", "-plist", device)) if device else ""


def volume_device(df: str) -> str:
    """Return the device that df names for a folder, such as "/dev/disk3s5"; "" if it is no local drive."""
    lines = df.splitlines()
    device = lines[1].split(" ", 1)[0] if len(lines) > 1 else ""
    return device if device.startswith("/dev/") else ""


def drive_of_plist(plist: bytes) -> DriveKind:
    """Return what `diskutil info -plist` says in SolidState; "" if that is missing, as of disk images."""
    import plistlib  # noqa: PLC0415 - only macOS needs it

    try:
        found = plistlib.loads(plist)
    except (plistlib.InvalidFileException, ExpatError, ValueError):
        return ""
    is_solid = found.get("SolidState") if isinstance(found, dict) else None
    if not isinstance(is_solid, bool):
        return ""
    return "ssd" if is_solid else "hdd"


def _output(*command: str) -> bytes:
    try:
        return subprocess.run(command, capture_output=True, timeout=_MAC_TIMEOUT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""


# IOCTL_STORAGE_QUERY_PROPERTY. It needs no rights.
QUERY_PROPERTY = 0x002D1400
# StorageDeviceSeekPenaltyProperty of STORAGE_PROPERTY_ID.
SEEK_PENALTY = 7
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


def windows_drive(folder: Path) -> DriveKind:
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
