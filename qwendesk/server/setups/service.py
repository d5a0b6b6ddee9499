"""SetupService: which programs are on this PC, whether they are set up for the server, and whether that works."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.server.requests import ServedRequest
from qwendesk.server.setups.config_file import Written, content, new_content, write_entries
from qwendesk.server.setups.merging import NotMerged, as_text
from qwendesk.server.setups.programs import BY_ID, PROGRAMS, Program, Target
from qwendesk.server.setups.trial import ProgramTrial

SetupPhase = Literal["not_found", "ready", "set_up", "outdated", "trying", "works", "failed"]
"""outdated: it is set up for another address or key."""


class SetupState(msgspec.Struct, frozen=True):
    program: Program
    phase: SetupPhase = "not_found"
    said: str = ""
    """What the program said in the last trial."""


class Preview(msgspec.Struct, frozen=True):
    """What setting up a program would do."""

    program: Program
    file: Path
    text: str
    """The entries, as the file has them."""
    obstacle: str = ""
    """Why the file can't be written, so that the user has to enter the text; "" if it can."""
    exists: bool = False


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

    def file_of(self, program: Program) -> Path:
        return program.path(self._home or Path.home(), self._environment)

    async def refresh(self, target: Target | None) -> None:
        """Look again which programs are here and, unless the server is off, what their files have."""
        phases = {program.id: await asyncio.to_thread(self._look, program, target) for program in PROGRAMS}
        for state in self.observed.value:
            is_as_good = state.phase in ("works", "failed", "trying") and phases[state.program.id] == "set_up"
            if not is_as_good:
                self._set(state.program, phases[state.program.id])

    async def preview(self, program_id: str, target: Target) -> Preview:
        return await asyncio.to_thread(self._preview, BY_ID[program_id], target)

    async def write(self, program_id: str, target: Target) -> Written:
        """Write the entries into the program's file. Raise NotMerged."""
        program = BY_ID[program_id]
        written = await asyncio.to_thread(write_entries, program, self.file_of(program), target)
        self._set(program, "set_up")
        await self.refresh(target)
        return written

    async def try_program(self, program_id: str) -> None:
        """Have the program ask one question, and show what came of it."""
        program = BY_ID[program_id]
        if program.id in self._trials:
            return
        trial = self._trials[program.id] = ProgramTrial(program, self.file_of(program), self._environment)
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

    def _look(self, program: Program, target: Target | None) -> SetupPhase:
        file = self.file_of(program)
        try:
            text = content(file) if target is not None else ""
        except NotMerged:
            text = ""
        if target is not None and target.address in text and target.key in text:
            return "set_up"
        if "qwendesk" in text.lower() and not program.only_shown:
            return "outdated"
        is_here = shutil.which(program.command, path=self._environment.get("PATH")) or file.parent.is_dir()
        return "ready" if is_here else "not_found"

    def _preview(self, program: Program, target: Target) -> Preview:
        file, obstacle = self.file_of(program), ""
        try:
            new_content(program, file, target)
        except NotMerged as error:
            obstacle = error.sentence
        return Preview(program, file, as_text(program.entries(target), program.kind), obstacle, file.exists())

    def _set(self, program: Program, phase: SetupPhase, said: str = "") -> None:
        new = SetupState(program, phase, said)
        self.observed.set(tuple(new if each.program == program else each for each in self.observed.value))
