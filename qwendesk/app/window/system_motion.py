"""Reads whether animations are reduced in the system's settings, which every desktop stores in a different place."""

import configparser
import os
import subprocess
import sys
from pathlib import Path

_LONGEST_S = 5.0
# From winuser.h: "Animation effects" in the accessibility settings of Windows.
_SPI_GETCLIENTAREAANIMATION = 0x1042
_GNOME = ("gsettings", "get", "org.gnome.desktop.interface", "enable-animations")
_MACOS = ("defaults", "read", "com.apple.universalaccess", "reduceMotion")


def motion_is_reduced() -> bool | None:
    """Return whether animations are reduced; None if unknown.

    May run a small system program, so don't call it on the window's thread.
    """
    if sys.platform == "win32":
        return _on_windows()
    elif sys.platform == "darwin":  # noqa: RET505 - mypy reads only the branch of its own system
        return {"1": True, "0": False}.get(_output(_MACOS))
    elif "KDE" in os.environ.get("XDG_CURRENT_DESKTOP", "").upper().split(":"):
        return _on_kde()
    else:
        return {"true": False, "false": True}.get(_output(_GNOME))


def _on_windows() -> bool | None:
    import ctypes  # noqa: PLC0415 - `windll` is only there on Windows

    is_animated = ctypes.c_int()
    system = getattr(ctypes, "windll").user32  # noqa: B009 - the other systems' type stubs lack it
    is_known = system.SystemParametersInfoW(_SPI_GETCLIENTAREAANIMATION, 0, ctypes.byref(is_animated), 0)
    return not is_animated.value if is_known else None


def _on_kde() -> bool | None:
    """Return whether Plasma's animation speed is "Instant", which it stores as a duration factor of 0."""
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    # The file may contain duplicate keys and "%", so parse it without strict mode and interpolation.
    settings = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        settings.read(Path(folder) / "kdeglobals", encoding="utf-8")
        return settings.getfloat("KDE", "AnimationDurationFactor", fallback=1.0) == 0
    except (OSError, ValueError, configparser.Error):
        return None


def _output(command: tuple[str, ...]) -> str:
    """Return what a program prints; "" if it does not exist, fails or takes too long."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
