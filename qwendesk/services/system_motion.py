"""Whether the system asks for less motion: each desktop keeps that in a place of its own."""

import configparser
import os
import subprocess
import sys
from pathlib import Path

_LONGEST_S = 5.0
_SPI_GETCLIENTAREAANIMATION = 0x1042
"""winuser.h: "Animation effects" in the accessibility settings of Windows."""
_GNOME = ("gsettings", "get", "org.gnome.desktop.interface", "enable-animations")
_MACOS = ("defaults", "read", "com.apple.universalaccess", "reduceMotion")


def motion_is_reduced() -> bool | None:
    """None where it cannot be told. May start a small program of the system: not for the thread of the window."""
    if sys.platform == "win32":
        return _on_windows()
    elif sys.platform == "darwin":  # noqa: RET505 - mypy reads only the branch of its own system
        return {"1": True, "0": False}.get(_said(_MACOS))
    elif "KDE" in os.environ.get("XDG_CURRENT_DESKTOP", "").upper().split(":"):
        return _on_kde()
    else:
        return {"true": False, "false": True}.get(_said(_GNOME))


def _on_windows() -> bool | None:
    import ctypes  # noqa: PLC0415 - `windll` is only there on Windows

    is_animated = ctypes.c_int()
    system = getattr(ctypes, "windll").user32  # noqa: B009 - the other systems' type stubs lack it
    told = system.SystemParametersInfoW(_SPI_GETCLIENTAREAANIMATION, 0, ctypes.byref(is_animated), 0)
    return not is_animated.value if told else None


def _on_kde() -> bool | None:
    """Plasma's slider of animation speed at "Instant" writes a factor of 0; without an entry it is 1."""
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    # Keys there may hold signs that are interpolation or doubled elsewhere.
    kept = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        kept.read(Path(folder) / "kdeglobals", encoding="utf-8")
        return kept.getfloat("KDE", "AnimationDurationFactor", fallback=1.0) == 0
    except (OSError, ValueError, configparser.Error):
        return None


def _said(command: tuple[str, ...]) -> str:
    """What the program printed; "" when there is none, it failed or took too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
