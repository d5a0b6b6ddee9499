"""Runs a decoding process for one file. Blocks, so call it on another thread."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from qwendesk.core.processes import with_source_tree
from qwendesk.decoding.main import OPTION
from qwendesk.decoding.protocol import DecodeRefusal, DecodeReply, DecodeRequest, time_limit_s

_logger = logging.getLogger(__name__)
# Files that are decoded at once. Bounds the memory of all processes together.
_SLOTS = threading.BoundedSemaphore(2)


_CANCELLED = DecodeRefusal(reason="failed", detail="it was cancelled")
# How often a running process is stopped if its work was cancelled.
_LOOK_EVERY_S = 0.2


def run_decoder(
    source: BinaryIO | bytes, request: DecodeRequest, is_cancelled: Callable[[], bool] = lambda: False
) -> tuple[DecodeReply, bytes]:
    """Return the decoding process's reply for an open file or its bytes, and the bytes that follow the reply.

    A process that fails to reply is a DecodeRefusal too: "time_limit", "crashed" with its exit status, which is how
    PDFium ends when memory runs out, or "failed" because it was cancelled.
    """
    command = [*_command(), msgspec.json.encode(request).decode()]
    environment = with_source_tree(os.environ)
    stdin: Any = subprocess.PIPE if isinstance(source, bytes) else source
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    while not _SLOTS.acquire(timeout=_LOOK_EVERY_S):
        if is_cancelled():
            return _CANCELLED, b""
    try:
        # A group of its own, because the process starts ffmpeg for clips. Windows has a job for that: see main.py.
        with subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, creationflags=flags,
            process_group=None if sys.platform == "win32" else 0,
        ) as process:  # fmt: skip
            try:
                sent = source if isinstance(source, bytes) else None
                finished = _finished(process, sent, time_limit_s(request), is_cancelled)
            except BaseException:
                _kill(process)
                raise
            if isinstance(finished, DecodeRefusal):
                return finished, b""
    except OSError as error:
        return DecodeRefusal(reason="failed", detail=str(error)), b""
    finally:
        _SLOTS.release()
    stdout, stderr = finished
    header, _, payload = stdout.partition(b"\n")
    try:
        return msgspec.json.decode(header, type=DecodeReply), payload
    except msgspec.DecodeError:
        _logger.warning("a decoding process ended with %s: %s", process.returncode, stderr[-2000:])
        return DecodeRefusal(reason="crashed", detail=f"exit status {process.returncode}"), b""


def _finished(
    process: "subprocess.Popen[bytes]", sent: bytes | None, limit_s: float, is_cancelled: Callable[[], bool]
) -> tuple[bytes, bytes] | DecodeRefusal:
    """Return what the process wrote to its standard output and error, or why it was killed."""
    # Not `communicate` with a timeout, again and again: the second time it sends nothing of what is left of the input.
    has_ended, refusals = threading.Event(), list[DecodeRefusal]()

    def watch() -> None:
        deadline = time.monotonic() + limit_s
        while not has_ended.wait(_LOOK_EVERY_S):
            if is_cancelled() or time.monotonic() > deadline:
                refusals.append(_CANCELLED if is_cancelled() else DecodeRefusal(reason="time_limit"))
                _kill(process)
                return

    watcher = threading.Thread(target=watch, name="decoding watcher")
    watcher.start()
    try:
        finished = process.communicate(sent)
    finally:
        has_ended.set()
        watcher.join()
    return refusals[0] if refusals else finished


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Stop the process and those that it started."""
    if sys.platform == "win32":
        process.kill()
    elif process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def _command() -> list[str]:
    if getattr(sys, "frozen", False):
        program = Path(sys.executable)
        return [str(program.with_name(f"QwenDeskEngine{program.suffix}")), OPTION]
    # -P: modules in the current folder must not replace ours.
    return [sys.executable, "-P", "-m", "qwendesk.decoding.main"]
