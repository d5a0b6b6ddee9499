"""Entry point of the process that talks to one MCP server: reads requests, sends events, and ends with the app."""

import asyncio
import contextlib
import ctypes
import logging
import os
import sys
import threading
import time

import psutil

from qwendesk.mcp.host_protocol import Ended, HostEvent, HostRequest, encode_line, launch_decoder, request_decoder

# Memory of this process; without a large answer it takes about 70 MB.
_MOST_BYTES = 600 * 1024**2
_LOOK_EVERY_S = 0.25


def main() -> int:
    """Serve the launch and the requests on standard input. Return when it closes, or when the server has ended."""
    logging.disable(logging.CRITICAL)  # the SDK logs what servers send
    _adopt_orphans()
    output = _Output()
    threading.Thread(target=_watch_memory, args=(output,), name="memory", daemon=True).start()
    asyncio.run(_serve(output))
    return 0


async def _serve(output: "_Output") -> None:
    # Imported here: the SDK takes most of a second, in which the launch can arrive.
    from qwendesk.mcp.host.session import HostSession  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    source = sys.stdin.buffer
    launch = launch_decoder.decode(await asyncio.to_thread(source.readline))
    requests: asyncio.Queue[HostRequest | None] = asyncio.Queue()

    def read() -> None:
        for line in source:
            loop.call_soon_threadsafe(requests.put_nowait, request_decoder.decode(line))
        loop.call_soon_threadsafe(requests.put_nowait, None)

    threading.Thread(target=read, name="requests", daemon=True).start()
    await HostSession(launch, requests, output.send).run()
    _end_descendants()
    # Not a return: the thread that reads may still wait, and Python would wait for its lock on the input.
    os._exit(0)


class _Output:
    """Standard output for events alone: whatever else prints there goes to standard error. Thread-safe."""

    def __init__(self) -> None:
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415

            msvcrt.setmode(self._descriptor, os.O_BINARY)
        self._lock = threading.Lock()

    def send(self, event: HostEvent) -> None:
        """Write an event. If nobody reads any more, the app is gone: the requests end too, and then this process."""
        line = memoryview(encode_line(event))
        with self._lock:
            while line:
                try:
                    line = line[os.write(self._descriptor, line) :]
                except OSError:
                    return


# PR_SET_CHILD_SUBREAPER of linux/prctl.h.
_BECOME_SUBREAPER = 36
# Rounds, because a process may start another one while it is being killed.
_MOST_ROUNDS = 20
_GONE_S = 1.0


def _adopt_orphans() -> None:
    """Become the parent of each process that the server's own leave behind, as a daemon does that forks twice.

    Only Linux can. On Windows the SDK's job object ends all of them; on macOS a daemon of a server outlives it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)


def _end_descendants() -> None:
    """Kill all processes below this one."""
    own = psutil.Process()
    for _ in range(_MOST_ROUNDS):
        left = own.children(recursive=True)
        if not left:
            return
        for process in left:
            with contextlib.suppress(psutil.Error):  # it has just ended
                process.kill()
        psutil.wait_procs(left, timeout=_GONE_S)


def _watch_memory(output: _Output) -> None:
    """End this process with the server's when it takes too much memory: a server sends something endless."""
    own = psutil.Process()
    while own.memory_info().rss < _MOST_BYTES:
        time.sleep(_LOOK_EVERY_S)
    _end_descendants()
    output.send(Ended("too_large"))
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
