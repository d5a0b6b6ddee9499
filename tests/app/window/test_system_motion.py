"""Each desktop's way of asking for less motion, as its own tools answer."""

import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.app.desktop import motion_is_reduced


def answering(monkeypatch: pytest.MonkeyPatch, text: str, code: int = 0) -> None:
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_rest: subprocess.CompletedProcess(command, code, stdout=text)
    )


@pytest.mark.parametrize(
    ("platform", "text", "code", "reduced"),
    [
        ("linux", "false\n", 0, True),
        ("linux", "true\n", 0, False),
        ("linux", "No such schema\n", 1, None),
        ("darwin", "1\n", 0, True),
        ("darwin", "", 1, None),
    ],
)
def test_setting_of_the_desktop_is_read(
    monkeypatch: pytest.MonkeyPatch, platform: str, text: str, code: int, reduced: bool | None
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "ubuntu:GNOME")
    answering(monkeypatch, text, code)
    assert motion_is_reduced() is reduced


def test_setting_is_unknown_without_the_desktops_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "")
    monkeypatch.setenv("PATH", "")
    assert motion_is_reduced() is None


@pytest.mark.parametrize(
    ("kept", "reduced"),
    [("[KDE]\nAnimationDurationFactor=0\n", True), ("[KDE]\nx=%1\n", False), ("", False), ("broken", None)],
)
def test_plasma_setting_is_read_from_its_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: str, reduced: bool | None
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "KDE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kdeglobals").write_text(kept)
    assert motion_is_reduced() is reduced
