"""Runs a decoding process for one file. Blocks, so call it on another thread."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from qwendesk.core.processes import with_source_tree
from qwendesk.decoding.limits import TIME_LIMIT_S
from qwendesk.decoding.main import OPTION
from qwendesk.decoding.protocol import DecodeRefusal, DecodeReply, DecodeRequest

_logger = logging.getLogger(__name__)
_SLOTS = threading.BoundedSemaphore(2)
"""Files that are decoded at once. Bounds the memory of all processes together."""


def run_decoder(source: BinaryIO | bytes, request: DecodeRequest) -> tuple[DecodeReply, bytes]:
    """Return the decoding process's reply for an open file or its bytes, and the bytes that follow the reply.

    A process that fails to reply is a DecodeRefusal too: "time_limit", or "failed" with its exit status.
    """
    command = [*_command(), msgspec.json.encode(request).decode()]
    environment = with_source_tree(os.environ)
    stdin_options: dict[str, Any] = {"input": source} if isinstance(source, bytes) else {"stdin": source}
    if sys.platform == "win32":
        stdin_options["creationflags"] = subprocess.CREATE_NO_WINDOW
    with _SLOTS:
        try:
            finished = subprocess.run(
                command, capture_output=True, env=environment, timeout=TIME_LIMIT_S, check=False, **stdin_options,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return DecodeRefusal(reason="time_limit"), b""
        except OSError as error:
            return DecodeRefusal(reason="failed", detail=str(error)), b""
    header, _, payload = finished.stdout.partition(b"\n")
    try:
        return msgspec.json.decode(header, type=DecodeReply), payload
    except msgspec.DecodeError:
        _logger.warning("a decoding process ended with %s: %s", finished.returncode, finished.stderr[-2000:])
        return DecodeRefusal(reason="failed", detail=f"exit status {finished.returncode}"), b""


def _command() -> list[str]:
    if getattr(sys, "frozen", False):
        program = Path(sys.executable)
        return [str(program.with_name(f"QwenDeskEngine{program.suffix}")), OPTION]
    # -P: modules in the current folder must not replace ours.
    return [sys.executable, "-P", "-m", "qwendesk.decoding.main"]
