"""Reads from /sys and /proc whether a folder on Linux is on an SSD or a hard disk.

The kernel says of each disk whether it rotates. Partitions, mappings (LUKS, LVM, RAID) and file systems over several
disks are followed down to the disks.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from qwendesk.core.plan import DriveKind

_MAX_DEPTH = 8
"""Layers of mappings that are followed."""
_VIRTUAL = ("qemu", "virtual", "vbox", "vmware", "msft")
"""Names of disks of virtual machines, in lower case. Their kernel doesn't know what the real disk is."""


def folder_drive(folder: Path, sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> DriveKind:
    """Return the kind of drive of an existing folder; "" if unknown, as for network drives. Raises OSError."""
    device = folder.stat().st_dev
    if os.major(device) == 0:  # btrfs and others number their volumes themselves
        source = mount_source((proc / "self/mountinfo").read_text("utf-8", "replace"), PurePosixPath(folder.resolve()))
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
