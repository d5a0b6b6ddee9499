"""Finds the programs of FFmpeg on this PC, or says how to install them. QwenDesk comes without them."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec


class Ffmpeg(msgspec.Struct, frozen=True):
    """The whole paths of the two programs."""

    ffmpeg: Path
    ffprobe: Path


# Where package managers put programs that an app started from the desktop may not have on its PATH: Homebrew, MacPorts
# and Snap; winget and Scoop, below a folder of the user.
_UNIX_FOLDERS = ("/opt/homebrew/bin", "/usr/local/bin", "/opt/local/bin", "/usr/bin", "/snap/bin")
_WINDOWS_FOLDERS = (
    ("LOCALAPPDATA", "Microsoft/WinGet/Links"),
    ("USERPROFILE", "scoop/shims"),
    ("PROGRAMDATA", "chocolatey/bin"),
)
# The line that installs FFmpeg, by the program that installs others.
INSTALLERS = (
    ("apt-get", "sudo apt install ffmpeg"),
    ("dnf", "sudo dnf install ffmpeg-free"),
    ("pacman", "sudo pacman -S ffmpeg"),
    ("zypper", "sudo zypper install ffmpeg"),
    ("apk", "sudo apk add ffmpeg"),
)


def find_ffmpeg(folder: str = "") -> Ffmpeg | None:
    """Return the programs in `folder`, or else on PATH or where package managers put them; None without both."""
    for place in (*_named(folder), *_search_path(), *_usual_folders()):
        ffmpeg, ffprobe = (_program_in(place, name) for name in ("ffmpeg", "ffprobe"))
        if ffmpeg is not None and ffprobe is not None:
            return Ffmpeg(ffmpeg, ffprobe)
    return None


def install_line(system: str = sys.platform, has_program: Callable[[str], bool] | None = None) -> str:
    """Return the command that installs FFmpeg on a system (a value of `sys.platform`); "" if none is known.

    `has_program` says whether a program is on PATH.
    """
    has = has_program or (lambda name: shutil.which(name) is not None)
    match system:
        case "win32":
            return "winget install Gyan.FFmpeg"
        case "darwin":
            return "brew install ffmpeg"
    return next((line for program, line in INSTALLERS if has(program)), "")


def _named(folder: str) -> Sequence[Path]:
    """Return the folder that the user named, and its folder bin, which archives of FFmpeg have."""
    return (Path(folder).expanduser(), Path(folder).expanduser() / "bin") if folder.strip() else ()


def _search_path() -> list[Path]:
    # Not `shutil.which`: on Windows it begins with the current folder, where a download may lie.
    return [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if Path(each).is_absolute()]


def _usual_folders() -> list[Path]:
    if sys.platform == "win32":
        return [Path(base) / rest for name, rest in _WINDOWS_FOLDERS if (base := os.environ.get(name, ""))]
    return [Path(each) for each in _UNIX_FOLDERS]


def _program_in(folder: Path, name: str) -> Path | None:
    path = folder / (f"{name}.exe" if sys.platform == "win32" else name)
    try:
        return path.absolute() if path.is_file() and os.access(path, os.X_OK) else None
    except OSError:
        return None
