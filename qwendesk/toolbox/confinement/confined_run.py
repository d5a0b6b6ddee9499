"""Runs one script in the sandbox, watches what it takes, and ends everything that it has started. Linux only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from qwendesk.core.units import MIB
from qwendesk.toolbox.confinement.sandbox import MEMORY_BYTES, MOST_FILES, SCRATCH, Sandbox, command
from qwendesk.toolbox.confinement.syscall_filter import syscall_filter

WALL_S = 50.0
"""How long a script may run: less than any tool may, so that what it wrote by then is kept."""
MOST_OUTPUT = 1_000_000
"""Bytes. A script that writes more is stopped."""
_PAUSE_S = 0.1
"""Between two looks at what the script takes."""
_LEFT_FOR_OTHERS = 512 * MIB
"""When the PC has less memory than this, a script is stopped, whatever took it."""
_READ_BYTES = 65_536
_MOST_UNSEEN = 20
"""How many looks in a row may fail; the first ones do, while the sandbox is made."""
_GONE_S = 5.0
"""How long to wait for the end of killed processes."""

Reason = Literal["", "time", "memory", "files", "output", "unwatched"]
"""Why a script was stopped: which limit it reached, or that the system does not tell what it takes."""


class LeftFile(msgspec.Struct, frozen=True, array_like=True):
    """A file in the scratch folder at the end."""

    path: str
    n_bytes: int


class _Report(msgspec.Struct, frozen=True):
    """What the supervisor writes when the script has ended. The script may have written it, too."""

    status: int
    files: tuple[LeftFile, ...]


class Outcome(msgspec.Struct, frozen=True):
    """How a script ended."""

    output: str
    """What it printed, errors included. Without a start, what bubblewrap said."""
    status: int | None = None
    """Its exit code, negative for a signal; None if it was stopped, or ended its supervisor."""
    files: tuple[LeftFile, ...] = ()
    stopped_for: Reason = ""
    has_started: bool = False


async def run_confined(script: str, sandbox: Sandbox, *, wall_s: float = WALL_S) -> Outcome:
    """Run a script to its end or to a limit. When this returns or is cancelled, nothing of it runs any more.

    Call it on the thread of the event loop: bubblewrap ends with the thread that started it. Raise OSError if it can't
    be started.
    """
    with contextlib.ExitStack() as opened:
        with contextlib.ExitStack() as inherited:  # closed here once bubblewrap has them
            report, report_fd = await _open_pipe(opened, inherited)
            info, info_fd = await _open_pipe(opened, inherited)
            script_fd, filter_fd = (_memory_file(content, inherited) for content in (script.encode(), syscall_filter()))
            process = await asyncio.create_subprocess_exec(
                *command(sandbox, script_fd=script_fd, filter_fd=filter_fd, report_fd=report_fd, info_fd=info_fd),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={},
                pass_fds=(script_fd, filter_fd, report_fd, info_fd),
            )
        return await _ConfinedRun(process, report, info).finish(wall_s)


class _ConfinedRun:
    """A script that runs, or is about to."""

    def __init__(
        self, process: asyncio.subprocess.Process, report: asyncio.StreamReader, info: asyncio.StreamReader
    ) -> None:
        self._process, self._report, self._info = process, report, info
        self._stopped_for: Reason = ""
        self._first: int | None = None
        """A file descriptor (pidfd) of the first process inside, with which all others end."""

    async def finish(self, wall_s: float) -> Outcome:
        assert self._process.stdout is not None
        timer = asyncio.get_running_loop().call_later(wall_s, self._stop, "time")
        finding = asyncio.create_task(self._find_first())
        watching = asyncio.create_task(self._watch(finding))
        try:
            output, report, _ = await asyncio.gather(
                self._read(self._process.stdout), self._read(self._report), self._process.wait()
            )
        finally:
            timer.cancel()
            watching.cancel()
            self._kill()
            await self._wait_until_gone(finding)
        started, _, rest = report.partition(b"\n")
        told = _decoded(rest)
        return Outcome(
            output.decode("utf-8", "replace"),
            None if told is None or self._stopped_for else told.status,
            () if told is None else told.files,
            self._stopped_for,
            has_started=started == b"started",
        )

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        """Return what comes out up to the limit; stop the script if there is more."""
        content = bytearray()
        while piece := await reader.read(_READ_BYTES):
            content += piece[: MOST_OUTPUT - len(content)]
            if len(content) >= MOST_OUTPUT:
                self._stop("output")
        return bytes(content)

    async def _find_first(self) -> int:
        """Return the number of the first process inside; 0 if bubblewrap has ended before, and says why."""
        pid = int(json.loads(await self._info.read(-1) or "{}").get("child-pid", 0))
        if pid:
            with contextlib.suppress(ProcessLookupError):
                self._first = os.pidfd_open(pid)
        return pid

    async def _watch(self, finding: asyncio.Task[int]) -> None:
        """Stop the script when all that it has started takes too much, or when that can't be seen."""
        pid, n_unseen = await asyncio.shield(finding), 0
        while pid and n_unseen < _MOST_UNSEEN:
            try:
                self._stop(_exceeded(Path(f"/proc/{pid}/root")))
                n_unseen = 0
            except PermissionError:
                n_unseen += 1
            except OSError:
                pass  # it is not there yet, or not any more
            await asyncio.sleep(_PAUSE_S)
        self._stop("unwatched" if pid else "")

    def _stop(self, reason: Reason) -> None:
        if reason and not self._stopped_for and self._process.returncode is None:
            self._stopped_for = reason
            self._kill()

    def _kill(self) -> None:
        """End bubblewrap, and the first process inside, with which all others end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
            if self._first is not None:
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    async def _wait_until_gone(self, finding: asyncio.Task[int]) -> None:
        await self._process.wait()
        await finding
        if self._first is None:
            return
        self._kill()
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._first, gone.set)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GONE_S):
                    await gone.wait()
        finally:
            loop.remove_reader(self._first)
            os.close(self._first)


def _exceeded(root: Path) -> Reason:
    """Return which limit all processes inside together have reached. Raise OSError if that can't be seen.

    `root` is the sandbox's root folder as the system shows it outside: before it is made, that is the system's own.
    """
    if root.stat().st_dev == Path("/").stat().st_dev:
        return ""
    processes = [path for path in (root / "proc").iterdir() if path.name.isdigit()]
    if sum(map(_resident_bytes, processes)) > MEMORY_BYTES:
        return "memory"
    if psutil.virtual_memory().available < _LEFT_FOR_OTHERS:
        return "memory"
    scratch = os.statvfs(f"{root}{SCRATCH}")
    return "files" if scratch.f_files - scratch.f_ffree > MOST_FILES else ""


def _resident_bytes(process: Path) -> int:
    """Return how much memory a process takes; 0 if it has ended meanwhile."""
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _decoded(report: bytes) -> _Report | None:
    try:
        return msgspec.json.decode(report, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


async def _open_pipe(opened: contextlib.ExitStack, inherited: contextlib.ExitStack) -> tuple[asyncio.StreamReader, int]:
    """Return a reader of a new pipe, and the end in which to write."""
    read_end, write_end = os.pipe()
    inherited.callback(os.close, write_end)
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", 0)
    )
    opened.callback(transport.close)
    return reader, write_end


def _memory_file(content: bytes, inherited: contextlib.ExitStack) -> int:
    """Return a file in memory, to be read from its beginning."""
    fd = os.memfd_create("qwendesk")
    inherited.callback(os.close, fd)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
