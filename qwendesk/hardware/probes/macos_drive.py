"""Asks macOS's own program diskutil whether a folder is on an SSD."""

import plistlib
import subprocess
from pathlib import Path
from xml.parsers.expat import ExpatError

from qwendesk.core.plan import DriveKind

_TIMEOUT_S = 10


def folder_drive(folder: Path) -> DriveKind:
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
        return subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return b""
