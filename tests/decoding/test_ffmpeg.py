"""ffmpeg is found where people have it, or the line that installs it is known."""

import os
import sys
from pathlib import Path

import pytest

from qwendesk.decoding import ffmpeg
from qwendesk.decoding.ffmpeg import Ffmpeg, find_ffmpeg, install_line


@pytest.mark.parametrize(
    ("system", "installer", "line"),
    [
        ("win32", "", "winget install Gyan.FFmpeg"),
        ("darwin", "", "brew install ffmpeg"),
        ("linux", "apt-get", "sudo apt install ffmpeg"),
        ("linux", "dnf", "sudo dnf install ffmpeg-free"),
        ("linux", "pacman", "sudo pacman -S ffmpeg"),
        ("linux", "zypper", "sudo zypper install ffmpeg"),
        ("linux", "", ""),
    ],
)
def test_each_system_has_its_line(system: str, installer: str, line: str) -> None:
    assert install_line(system, lambda name: name == installer) == line


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system without ffmpeg, and an empty folder."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(ffmpeg, "_usual_folders", lambda: [tmp_path / "usual"])
    return tmp_path


def programs(folder: Path, *names: str) -> Ffmpeg:
    folder.mkdir(parents=True, exist_ok=True)
    suffix = ".exe" if sys.platform == "win32" else ""
    for name in names or ("ffmpeg", "ffprobe"):
        (folder / f"{name}{suffix}").write_bytes(b"#!/bin/sh\n")
        (folder / f"{name}{suffix}").chmod(0o755)
    return Ffmpeg(folder / f"ffmpeg{suffix}", folder / f"ffprobe{suffix}")


def test_both_programs_are_looked_for_in_order(nowhere: Path) -> None:
    assert find_ffmpeg() is None
    assert find_ffmpeg(str(nowhere / "named")) is None
    usual = programs(nowhere / "usual")
    assert find_ffmpeg() == usual
    programs(nowhere / "path", "ffmpeg")  # without ffprobe
    assert find_ffmpeg() == usual
    on_path = programs(nowhere / "path")
    assert find_ffmpeg() == on_path
    assert find_ffmpeg(str(nowhere / "named")) == on_path
    below = programs(nowhere / "named" / "bin")
    assert find_ffmpeg(str(nowhere / "named")) == below
    named = programs(nowhere / "named")
    assert find_ffmpeg(str(nowhere / "named")) == named


def test_the_current_folder_is_not_on_the_path(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A download next to a program of that name would run it."""
    programs(nowhere / "downloads")
    monkeypatch.chdir(nowhere / "downloads")
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", str(nowhere / "path")]))

    assert find_ffmpeg() is None


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_file_that_is_no_program_is_passed_over(nowhere: Path) -> None:
    found = programs(nowhere / "named")
    found.ffprobe.chmod(0o644)
    assert find_ffmpeg(str(nowhere / "named")) is None
