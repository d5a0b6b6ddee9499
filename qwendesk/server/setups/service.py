"""SetupService: which programs are on this PC, and whether one that is started gets its answer from the server."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.server.requests import ServedRequest
from qwendesk.server.setups.programs import BY_ID, PROGRAMS, Launch, Program, Target, launch_of

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


SetupPhase = Literal["not_found", "ready", "trying", "works", "failed"]


class SetupState(msgspec.Struct, frozen=True):
    program: Program
    phase: SetupPhase = "not_found"
    said: str = ""
    """The program's answer or error in the last trial."""


class SetupService:
    """Call its methods on the event loop's thread."""

    def __init__(
        self,
        requests: Observed[tuple[ServedRequest, ...]],
        home: Path | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`requests` are those of the server, by which a trial sees that the program reached it."""
        self._requests, self._home, self._environment = requests, home, environment
        self.observed = Observed(tuple(SetupState(program) for program in PROGRAMS))
        self._trials: dict[str, ProgramTrial] = {}

    def settings_file(self, program: Program) -> Path:
        """Return the program's own settings file, which QwenDesk never writes."""
        return (self._home or Path.home()) / program.place

    async def refresh(self) -> None:
        """Update which programs are here; the result of a trial stays."""
        here = await asyncio.to_thread(lambda: {each.id: self._is_here(each) for each in PROGRAMS})
        for state in self.observed.value:
            if state.phase in ("not_found", "ready") or not here[state.program.id]:
                self._set(state.program, "ready" if here[state.program.id] else "not_found")

    async def try_program(self, program_id: str, target: Target) -> None:
        """Have the program ask one question, and show its answer."""
        program = BY_ID[program_id]
        if program.id in self._trials:
            return
        trial = self._trials[program.id] = ProgramTrial(program, target, self._environment)
        before = {each.id for each in self._requests.value}
        self._set(program, "trying")
        try:
            result = await asyncio.to_thread(trial.run)
        finally:
            trial.stop()
            del self._trials[program.id]
        answered = [each for each in self._requests.value if each.id not in before and each.phase == "done"]
        self._set(program, "works" if result.works and answered else "failed", result.text)

    def stop_trial(self, program_id: str) -> None:
        if program_id in self._trials:
            self._trials[program_id].stop()

    def close(self) -> None:
        """End all trials."""
        for trial in self._trials.values():
            trial.stop()

    def _is_here(self, program: Program) -> bool:
        command = shutil.which(program.command, path=self._environment.get("PATH"))
        return command is not None or self.settings_file(program).parent.is_dir()

    def _set(self, program: Program, phase: SetupPhase, said: str = "") -> None:
        new = SetupState(program, phase, said)
        self.observed.set(tuple(new if each.program == program else each for each in self.observed.value))
