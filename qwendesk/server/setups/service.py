"""SetupService: which programs are on this PC, and whether they work with the server."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.server.requests import ServedRequest
from qwendesk.server.setups.programs import BY_ID, PROGRAMS, Program, Target
from qwendesk.server.setups.trial import ProgramTrial

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
