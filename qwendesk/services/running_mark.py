"""How the installer on Windows sees that the app runs, so that it changes and removes nothing under it."""

import sys

NAME = "QwenDeskRunning"
"""packaging/windows/qwendesk.iss asks for a mutex of this name."""


def mark_as_running() -> None:
    """Makes the mutex, on Windows only. The system takes it back when this process ends, however that comes."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415 - needed on Windows only

        ctypes.windll.kernel32.CreateMutexW(None, False, NAME)
