"""Tells whether a folder is on an SSD or a hard disk."""

import sys
from pathlib import Path

from qwendesk.core.plan import DriveKind
from qwendesk.hardware.probes import linux_drive, macos_drive, windows_drive


def drive_of(path: Path) -> DriveKind:
    """Return the kind of drive that a file or folder is on, or will be; "" if the system doesn't say.

    Blocks for a moment, or longer for a network drive that doesn't answer.
    """
    try:
        folder = next((each for each in (path, *path.parents) if each.is_dir()), None)
        if folder is None:
            return ""
        if sys.platform == "win32":
            return windows_drive.folder_drive(folder)
        if sys.platform == "darwin":
            return macos_drive.folder_drive(folder)
        return linux_drive.folder_drive(folder)
    except OSError:
        return ""
