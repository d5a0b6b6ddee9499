"""Finds the program whose window is in full screen, on the systems that tell.

macOS isn't asked: there the GPU's memory is the RAM, and full screen only counts when video memory is short.
"""

import os
import sys

from qwendesk.hardware.probes import full_screen_windows, full_screen_x11
from qwendesk.hardware.programs import RunningProgram
from qwendesk.hardware.snapshot_reader import program_name


def full_screen_program() -> RunningProgram | None:
    """Return the program in front if it is in full screen; None if none is, it is QwenDesk, or the system is silent.

    Blocks for about a millisecond.
    """
    if sys.platform == "win32":
        pid = full_screen_windows.full_screen_pid()
    elif sys.platform == "darwin":
        pid = None
    else:
        pid = full_screen_x11.full_screen_pid()
    return RunningProgram(pid, program_name(pid)) if pid and pid != os.getpid() else None
