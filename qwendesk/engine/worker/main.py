"""The worker process's entry: guard the protocol's descriptor, then serve requests until told to stop.

Nothing here may import llama_cpp before the descriptor is guarded: the package and native code print to
descriptor 1 now and then, and one stray byte there would break the protocol.
"""

import ctypes
import os
import signal
import sys

from qwendesk.engine.worker.channel import Channel

_NO_WINDOWS_OF_THE_SYSTEM = 0x0001 | 0x0002 | 0x8000
"""SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX and SEM_NOOPENFILEERRORBOX of Windows' SetErrorMode."""


def main() -> int:
    """Runs until Shutdown (returns 0) or until the app is gone (the process ends by itself).

    With --estimate it answers one Estimate and returns.
    """
    if sys.platform == "win32":
        # A library that is missing, or a crash, must end the worker and not wait for somebody's click.
        ctypes.windll.kernel32.SetErrorMode(_NO_WINDOWS_OF_THE_SYSTEM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel.take_over_stdout()
    for stale in ("CUDA_PATH", "HIP_PATH"):
        os.environ.pop(stale, None)
    _set_title()
    if sys.argv[-1:] == ["--estimate"]:
        from qwendesk.engine.worker.estimate import answer

        answer(channel, sys.stdin.buffer)
        channel.close()
        return 0
    from qwendesk.engine.worker.service import Service

    Service(channel, sys.stdin.buffer).run()
    channel.close()
    return 0


def _set_title() -> None:
    import setproctitle

    setproctitle.setproctitle("qwendesk-engine")
