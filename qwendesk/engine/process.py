"""One worker process: requests in, events out, its last words kept, its end noticed at once."""

import asyncio
import collections
import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

import qwendesk
from qwendesk.core.failures import EngineDeath
from qwendesk.engine.exits import describe_exit
from qwendesk.engine.protocol import LINE_LIMIT_BYTES, AnyEvent, Request, decode_event, encode_line

_logger = logging.getLogger(__name__)

_KEPT_LINES = 400
_LONGEST_LINE_BYTES = 2000
_DRAIN_S = 2.0
"""How long the pipes of an ended worker may still deliver, and an open one may take to end after its last event."""
_STALE_VARIABLES = ("CUDA_PATH", "HIP_PATH")
"""Where these point to a folder that is gone, importing llama_cpp fails on Windows."""


def worker_command() -> tuple[str, ...]:
    """What starts a worker of this installation: the bundle itself, or this Python."""
    if getattr(sys, "frozen", False):
        # A program of its own, so that Task Manager, meters and the driver's settings tell it from the window.
        program = Path(sys.executable)
        return (str(program.with_name(f"QwenDeskEngine{program.suffix}")), "--worker")
    # -P: modules in the current folder must not stand in for ours.
    return (sys.executable, "-P", "-m", "qwendesk", "--worker")


SHORT_SPIN = ("GOMP_SPINCOUNT", "1000")
"""How long the engine's threads spin before they sleep while they wait for each other (GNU OpenMP).

Its default spins so long that one other busy program on the PC takes decode from 87 to 4 tok/s; like this it is 44,
and 3% slower on an idle PC (docs/adr/006-short-spin.md has the measurement).
"""


def worker_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment and `extra`, so that a worker runs the same code and finds its libraries."""
    environment = {key: value for key, value in os.environ.items() if key.upper() not in _STALE_VARIABLES}
    environment.update(extra)
    environment.setdefault(*SHORT_SPIN)
    folder = Path(qwendesk.__file__).resolve().parent.parent
    if folder.name not in ("site-packages", "dist-packages"):  # a source tree, installed or not
        paths = [str(folder), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return environment


class WorkerProcess:
    """Made by `spawn`. `on_end` is called once, after the last event, with why it ended."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        on_event: Callable[[AnyEvent], None],
        on_end: Callable[["WorkerProcess", EngineDeath], None],
    ) -> None:
        self._process = process
        self._on_event = on_event
        self._on_end = on_end
        self._lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._sentence = ""
        self.asked_to_end = False
        """Its end is no surprise: somebody called for it."""
        self._life = asyncio.create_task(self._live())

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        on_event: Callable[[AnyEvent], None],
        on_end: Callable[["WorkerProcess", EngineDeath], None],
        environment: Mapping[str, str] | None = None,
    ) -> "WorkerProcess":
        """`environment` is added to this process's own. Raises OSError when the command cannot be started."""
        if sys.platform == "win32":
            flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            flags = 0
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            limit=LINE_LIMIT_BYTES,
            env=worker_environment(environment or {}),
            creationflags=flags,
            start_new_session=True,  # Ctrl-C in a terminal is for the app, which cancels and shuts down in order
        )
        return cls(process, on_event, on_end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines of its standard error."""
        return tuple(self._lines)

    def send(self, request: Request) -> None:
        """Hands a request over; one that cannot be delivered is answered by the worker's end."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(encode_line(request))

    def kill(self, sentence: str, *, asked: bool = False) -> None:
        """End it on the spot; `sentence` tells people why. `asked`: somebody wanted that, so it is no crash."""
        self.asked_to_end = self.asked_to_end or asked
        if not self._sentence:
            self._sentence = sentence
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def gone(self) -> None:
        """Waits for its end, as long as that takes."""
        await asyncio.wait({self._life})

    async def stop(self, request: Request, *, patience_s: float) -> None:
        """End it: by `request`, then by asking the system to end it, then by force. Returns when it is gone."""
        self.asked_to_end = True
        self.send(request)
        await asyncio.wait({self._life}, timeout=patience_s)
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            await asyncio.wait({self._life}, timeout=patience_s)
        self.kill("The engine was stopped.")
        await self.gone()

    async def _live(self) -> None:
        events = asyncio.create_task(self._read_events())
        errors = asyncio.create_task(self._read_lines())
        exited = asyncio.create_task(self._process.wait())
        await asyncio.wait({events, exited}, return_when=asyncio.FIRST_COMPLETED)
        if self._process.stdin is not None:
            self._process.stdin.close()
        await asyncio.wait({events, errors, exited}, timeout=_DRAIN_S)
        if self._process.returncode is None:
            self.kill("The engine closed its connection to the app but did not end.")
        await asyncio.wait({exited}, timeout=_DRAIN_S)
        for reader in (events, errors):
            reader.cancel()
        for result in await asyncio.gather(events, errors, return_exceptions=True):
            if isinstance(result, Exception):
                _logger.error("Reading from the engine failed", exc_info=result)
        exited.cancel()
        self._on_end(self, self._death())

    def _death(self) -> EngineDeath:
        if self._sentence:  # we ended it, so its exit code says nothing
            return EngineDeath(None, self._sentence, self.lines)
        exit_code = self._process.returncode
        return EngineDeath(exit_code, describe_exit(exit_code), self.lines)

    async def _read_events(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # longer than the limit
                self.kill("The engine sent a message that is too long, so it was ended.")
                return
            if not line.endswith(b"\n"):
                return  # the end, perhaps in the middle of a line
            try:
                event = decode_event(line)
            except msgspec.DecodeError as error:
                if line.lstrip().startswith(b"{"):
                    self._keep(f"not understood: {error}")
                    self.kill("The engine sent a message that this version of the app does not understand.")
                    return
                # A library that printed into the pipe: strange, but no reason to lose the model.
                self._keep(line.decode("utf-8", "replace"))
                continue
            self._on_event(event)

    async def _read_lines(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._keep(line[:_LONGEST_LINE_BYTES].decode("utf-8", "replace"))
            rest = rest[:_LONGEST_LINE_BYTES]
        self._keep(rest.decode("utf-8", "replace"))

    def _keep(self, line: str) -> None:
        if line.strip():
            self._lines.append(line.strip()[:_LONGEST_LINE_BYTES])
