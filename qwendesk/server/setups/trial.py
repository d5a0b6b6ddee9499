"""Trial: starts a program with one short question, to see whether it gets its answer from the server."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.server.setups.programs import Launch, Program, Target, launch_of

QUESTION = "Reply with the single word ready."
# Long, because a large model may first have to be loaded, and the prompts of agents are long.
_LONGEST_S = 900.0
_END_S = 5.0
_MOST_SHOWN = 600


class TrialResult(msgspec.Struct, frozen=True):
    works: bool
    text: str
    """The program's answer, or its error."""


class ProgramTrial:
    """Runs one program. `run` blocks; `stop` may be called from another thread."""

    def __init__(self, program: Program, target: Target, environment: Mapping[str, str]) -> None:
        self._program, self._target, self._environment = program, target, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self, question: str = QUESTION, folder: Path | None = None, *extra: str) -> TrialResult:
        """Ask one question in a folder, by default an empty one. `extra` are further arguments."""
        try:
            with (
                launch_of(self._program, self._target, self._environment, extra, question) as launch,
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty,
            ):
                return self._run(launch, folder or Path(empty))
        except QwenDeskError as error:
            return TrialResult(works=False, text=error.sentence)
        except OSError as error:
            text = tr("{0} couldn't be started: {1}.", self._program.name, error.strerror or error)
            return TrialResult(works=False, text=text)

    def stop(self) -> None:
        self._is_stopped = True
        if self._process is not None:
            _end(self._process)

    def _run(self, launch: Launch, folder: Path) -> TrialResult:
        self._process = subprocess.Popen(
            launch.command, cwd=folder, env=launch.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        if self._is_stopped:
            _end(self._process)
        try:
            out, err = self._process.communicate(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            _end(self._process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.communicate(timeout=_END_S)
            return TrialResult(works=False, text=tr("No answer within {0} minutes.", round(_LONGEST_S / 60)))
        answer, said = (stream.decode(errors="replace").strip() for stream in (out, err))
        works = self._process.returncode == 0 and bool(answer)
        return TrialResult(works=works, text=(answer if works else said or answer)[-_MOST_SHOWN:])


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program with its children, which would keep its output open."""
    if process.poll() is None:  # otherwise its number may be that of another process by now
        with contextlib.suppress(psutil.Error):
            started = psutil.Process(process.pid)
            for each in (*started.children(recursive=True), started):
                with contextlib.suppress(psutil.Error):
                    each.kill()
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # those whose parent has ended already
