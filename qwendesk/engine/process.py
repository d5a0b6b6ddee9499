"""A worker process: send requests, receive events, keep the last lines of its log, and notice at once when it exits."""

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

from qwendesk.core.failures import EngineExit
from qwendesk.core.options import DecidedOptions
from qwendesk.core.processes import own_command, with_source_tree
from qwendesk.core.translation import mark, tr
from qwendesk.engine.load_failures import KILLED_CODE, count_memory_kills, describe_exit
from qwendesk.engine.protocol import AnyEvent, Request
from qwendesk.engine.protocol_lines import LINE_LIMIT_BYTES, decode_event, encode_line
from qwendesk.engine.watchdog import SilenceLimits, SilenceWatch

_logger = logging.getLogger(__name__)

UNRESPONSIVE = mark("The engine wasn't responding, so QwenDesk stopped it.")
_KEPT_LINES = 400
_LONGEST_LINE_BYTES = 2000
# How long to read from the pipes after the worker has exited, and to wait for its exit after its pipe has closed.
_DRAIN_S = 2.0
# If one of these variables names a missing folder, importing llama_cpp fails on Windows.
_STALE_VARIABLES = ("CUDA_PATH", "HIP_PATH")


def worker_command() -> tuple[str, ...]:
    """Return the command that starts a worker of this installation: a program of the bundle, or this Python."""
    if getattr(sys, "frozen", False):
        # The worker is a separate program, so that Task Manager, meters and driver settings can tell it from the app.
        program = Path(sys.executable)
        return (str(program.with_name(f"QwenDeskEngine{program.suffix}")), "--worker")
    return own_command("--worker")


# ERROR_VIRUS_INFECTED and ERROR_VIRUS_DELETED of Windows.
_VIRUS_CODES = (225, 226)


def start_problem(error: OSError, command: Sequence[str]) -> str:
    """Return why the program of `command` could not be started, and what to do, as a sentence."""
    program = Path(command[0]).name
    is_gone = getattr(error, "winerror", None) in _VIRUS_CODES or isinstance(error, FileNotFoundError | PermissionError)
    if not is_gone:
        return tr("The engine couldn't be started: {0}.", error)
    return tr(
        "The engine couldn't be started, because {0} is missing or blocked. An antivirus program may have done that: "
        "restore it there and allow it, or install QwenDesk again.",
        program,
    )


# How long the engine's threads spin before they sleep when they wait for each other (GNU OpenMP).
#
# With the long default, one other busy program on the PC slows decoding down from 87 to 4 tok/s. With this value it is
# 44 tok/s, but 3% slower on an idle PC. docs/adr/006-short-spin.md has the measurement.
SPIN_VARIABLE = "GOMP_SPINCOUNT"
SHORT_SPIN = "1000"
# With experts in RAM, the threads wait 50 to 150 us for the card in each layer (measured on an H200). 10,000 rounds
# take 150 us on cores whose pause is as short as Zen's, and 300 us on Intel's. No card has shown the gain yet.
CARD_SPIN = "10000"


def spin_count(options: DecidedOptions, backends: Sequence[str]) -> str:
    """Return for how many rounds the engine's threads should spin for a load. GNU OpenMP reads it once, at its start.

    Long enough to wait for a graphics card where it works in turn with experts in RAM, short otherwise.
    """
    has_card = options.n_gpu_layers != 0 and any(name != "CPU" for name in backends)
    in_ram = (pattern for pattern in options.override_tensor if pattern.rpartition("=")[2].upper().startswith("CPU"))
    has_experts_in_ram = options.n_cpu_moe > 0 or any("exps" in pattern for pattern in in_ram)
    return CARD_SPIN if has_card and has_experts_in_ram else SHORT_SPIN


def worker_environment(extra: Mapping[str, str], *, spin: str = SHORT_SPIN) -> dict[str, str]:
    """Return this process's environment with `extra`, so that a worker runs the same code and finds its libraries.

    `spin` is a result of `spin_count`; what the user's own environment says of it comes first.
    """
    environment = {key: value for key, value in os.environ.items() if key.upper() not in _STALE_VARIABLES}
    environment.update(extra)
    environment.setdefault(SPIN_VARIABLE, spin)
    return with_source_tree(environment)


class WorkerProcess:
    """A running worker; `spawn` creates it. `on_exit` is called once, after the last event, with the reason."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        on_event: Callable[[AnyEvent], None],
        on_exit: Callable[["WorkerProcess", EngineExit], None],
    ) -> None:
        self._process = process
        self._on_event = on_event
        self._on_exit = on_exit
        self._lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._kill_reason = ""
        self._memory_kills = count_memory_kills()
        self._silence: SilenceWatch | None = None
        self.exit_requested = False
        """Whether the worker was asked to exit, so that its exit is not a crash."""
        self._run_task = asyncio.create_task(self._run())

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        on_event: Callable[[AnyEvent], None],
        on_exit: Callable[["WorkerProcess", EngineExit], None],
        environment: Mapping[str, str],
    ) -> "WorkerProcess":
        """Start a worker with `environment`, of `worker_environment`. Raise OSError if that fails."""
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
            env=environment,
            creationflags=flags,
            start_new_session=True,  # Ctrl-C in a terminal must only reach the app, which then stops the worker
        )
        return cls(process, on_event, on_exit)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines of the worker's standard error."""
        return tuple(self._lines)

    def send(self, line: bytes) -> None:
        """Send an encoded request. It is dropped if the worker has closed its input: `on_exit` follows then."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(line)

    def kill(self, sentence: str, *, is_expected: bool = False) -> None:
        """Kill the worker at once. `sentence` tells the user why. With `is_expected`, it counts as a normal exit."""
        self.exit_requested = self.exit_requested or is_expected
        if not self._kill_reason:
            self._kill_reason = sentence
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def watch_silence(self, limits: SilenceLimits, show: Callable[[bool], None]) -> None:
        """From now on call `show` when the worker becomes silent, or speaks again, and kill it if it is frozen."""
        self._silence = SilenceWatch(limits, show, lambda: self.kill(tr(UNRESPONSIVE)))

    async def wait_until_exited(self) -> None:
        """Wait until the worker has exited."""
        await asyncio.wait({self._run_task})

    async def stop(self, request: Request, *, timeout_s: float) -> None:
        """Stop the worker, and return when it has exited.

        Send it `request`. If it is still running after `timeout_s` seconds, terminate it, and after the same time
        again, or if the caller is cancelled, kill it.
        """
        self.exit_requested = True
        self.send(encode_line(request))
        try:
            await asyncio.wait({self._run_task}, timeout=timeout_s)
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                await asyncio.wait({self._run_task}, timeout=timeout_s)
        finally:
            self.kill(tr("The engine was stopped."))
        await self.wait_until_exited()

    async def _run(self) -> None:
        events = asyncio.create_task(self._read_events())
        errors = asyncio.create_task(self._read_lines())
        exited = asyncio.create_task(self._process.wait())
        await asyncio.wait({events, exited}, return_when=asyncio.FIRST_COMPLETED)
        if self._silence is not None:
            self._silence.stop()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await asyncio.wait({events, errors, exited}, timeout=_DRAIN_S)
        if self._process.returncode is None:
            self.kill(tr("The engine closed its connection to QwenDesk but kept running, so QwenDesk stopped it."))
        await asyncio.wait({exited}, timeout=_DRAIN_S)
        for reader in (events, errors):
            reader.cancel()
        for result in await asyncio.gather(events, errors, return_exceptions=True):
            if isinstance(result, Exception):
                _logger.error("Reading from the engine failed", exc_info=result)
        exited.cancel()
        self._on_exit(self, self._exit_reason())

    def _exit_reason(self) -> EngineExit:
        if self._kill_reason:  # QwenDesk killed it, so the exit code says nothing
            return EngineExit(None, self._kill_reason, self.lines)
        exit_code = self._process.returncode
        is_memory_kill = exit_code == KILLED_CODE and count_memory_kills() != self._memory_kills
        sentence = describe_exit(exit_code, self.lines, is_memory_kill=is_memory_kill)
        return EngineExit(exit_code, sentence, self.lines, is_memory_kill=is_memory_kill)

    async def _read_events(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # longer than the limit
                self.kill(tr("The engine sent a message that is too long, so QwenDesk stopped it."))
                return
            if not line.endswith(b"\n"):
                return  # the end, perhaps in the middle of a line
            if self._silence is not None:
                self._silence.heard()
            try:
                event = decode_event(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if line.lstrip().startswith(b"{"):
                    self._keep_line(f"not understood: {error}")
                    self.kill(tr("QwenDesk doesn't understand what the engine sent. Update QwenDesk."))
                    return
                # A library printed into the pipe. That is odd, but no reason to lose the loaded model.
                self._keep_line(line.decode("utf-8", "replace"))
                continue
            self._on_event(event)

    async def _read_lines(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._keep_line(line[:_LONGEST_LINE_BYTES].decode("utf-8", "replace"))
            rest = rest[:_LONGEST_LINE_BYTES]
        self._keep_line(rest.decode("utf-8", "replace"))

    def _keep_line(self, line: str) -> None:
        if line.strip():
            self._lines.append(line.strip()[:_LONGEST_LINE_BYTES])
