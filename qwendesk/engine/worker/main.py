"""The entry point of the worker process: reserve standard output for the protocol, then serve requests until Shutdown.

Nothing here may import llama_cpp before standard output is reserved: the package and native code sometimes print to
descriptor 1, and one stray byte would break the protocol.
"""

import ctypes
import os
import signal
import sys

import msgspec

from qwendesk.engine.worker.channel import Channel
from qwendesk.engine.worker.engine_calls import own_table

# SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX and SEM_NOOPENFILEERRORBOX of Windows' SetErrorMode.
_NO_WINDOWS_OF_THE_SYSTEM = 0x0001 | 0x0002 | 0x8000


def main() -> int:
    """Run until Shutdown, then return 0. The process exits earlier if the app is gone.

    With --estimate, answer one Estimate request and return 0.
    """
    if sys.platform == "win32":
        # After a crash, or if a library is missing, the worker must exit instead of waiting in a message box.
        ctypes.windll.kernel32.SetErrorMode(_NO_WINDOWS_OF_THE_SYSTEM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel.take_over_stdout()
    for stale in ("CUDA_PATH", "HIP_PATH"):
        os.environ.pop(stale, None)
    _set_title()
    _use_layouts_of_engine()
    if sys.argv[-1:] == ["--estimate"]:
        from qwendesk.engine.worker.estimate import answer

        answer(channel, sys.stdin.buffer)
        channel.close()
        return 0
    from qwendesk.engine.worker.service import Service

    Service(channel, sys.stdin.buffer).run()
    channel.close()
    return 0


def _use_layouts_of_engine() -> None:
    """Have the binding use the engine's own struct layouts if it has some. Exit with a sentence if that can't be."""
    table = own_table()
    if table is None:
        return
    from qwendesk.engine.worker.struct_layouts import UnusableEngine, use_table

    try:
        use_table(table)
    except (UnusableEngine, OSError, msgspec.DecodeError) as error:
        sys.exit(f"The engine in {table.parent} can't be used: {error}")


def _set_title() -> None:
    import setproctitle

    setproctitle.setproctitle("qwendesk-engine")
