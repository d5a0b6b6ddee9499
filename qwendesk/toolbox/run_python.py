"""The tool that runs a Python script, confined: nothing of the user's is there for it to read or to change."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_bytes
from qwendesk.toolbox.tool import Arguments, Tool, ToolError

if TYPE_CHECKING:
    from qwendesk.toolbox.confinement.confined_run import LeftFile, Outcome
    from qwendesk.toolbox.confinement.sandbox import Sandbox

_NAMES = {"win32": "Windows", "darwin": "macOS"}
_STOPPED = {
    "time": "The script took too long and was stopped.",
    "memory": "The script took too much memory and was stopped.",
    "files": "The script made too many files and was stopped.",
    "output": "The script printed too much and was stopped.",
    "unwatched": "The system does not tell what the script takes, so it was stopped.",
}
# How much of a long output's beginning is kept; the rest is its end, where errors stand.
_BEGINNING = 0.4
# Characters of the result for what is said about the output.
_LEFT_FOR_NOTES = 600
# Files that are listed.
_MOST_NAMED = 20


def run_python(find: Callable[[], Awaitable[Sandbox | str]] | None = None) -> Tool:
    """Return the tool. `find` returns the sandbox of this PC, or why there is none."""
    runner = _Runner(find or _find_sandbox)
    return Tool(
        name="run_python",
        title=mark("Run Python"),
        promise=mark("Runs scripts that you have seen, without your files or a network."),
        description=(
            "Run a Python 3 script of your own, for calculations and checks, and get what it prints, errors included. "
            "It has no network and no files of the user. Its current folder is empty at first, and gone at the end. "
            "There is the standard library, and perhaps packages of the system. The user sees the script and may "
            "refuse it."
        ),
        parameters={
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The whole script; print what you want to know"}},
            "required": ["code"],
        },
        effect="runs",
        run=runner.run,
        preview=_preview,
        icon="terminal",
        shows_code=True,
        asks_each_time=True,
        find_obstacle=runner.find_obstacle,
    )


class _Runner:
    """Runs scripts in the sandbox that was found."""

    def __init__(self, find: Callable[[], Awaitable[Sandbox | str]]) -> None:
        self._find = find
        self._sandbox: Sandbox | None = None

    async def find_obstacle(self) -> str:
        found = await self._find()
        if isinstance(found, str):
            return found
        self._sandbox = found
        return ""

    async def run(self, arguments: Arguments, context: CallContext) -> str:
        if self._sandbox is None:
            raise ToolError("Python can't be confined on this PC, so it doesn't run.")
        # Imported here because it needs modules that only Linux has.
        from qwendesk.toolbox.confinement.confined_run import run_confined  # noqa: PLC0415

        try:
            outcome = await run_confined(str(arguments["code"]), self._sandbox)
        except OSError as error:
            raise ToolError(f"The script could not be confined, so it did not run: {error.strerror}.") from None
        if not outcome.has_started:
            raise ToolError(f"The script could not be confined, so it did not run: {outcome.output.strip()}")
        result = told(outcome, context.most_characters)
        if outcome.status != 0:
            raise ToolError(result)
        return result


async def _find_sandbox() -> Sandbox | str:
    if sys.platform != "linux":
        name = _NAMES.get(sys.platform, sys.platform)
        return tr("Python runs only confined, and QwenDesk can't confine it on {0} yet.", name)
    from qwendesk.toolbox.confinement.confined_run import find_sandbox  # noqa: PLC0415

    return await find_sandbox()


async def _preview(arguments: Arguments, _context: CallContext) -> str:
    return str(arguments["code"])


def told(outcome: Outcome, most_characters: int) -> str:
    """Return what the model reads: the output, how the script ended if not well, and which files it left."""
    output = _shortened(outcome.output.rstrip(), max(most_characters - _LEFT_FOR_NOTES, _LEFT_FOR_NOTES))
    notes = [output or "The script printed nothing."]
    if outcome.stopped_for:
        notes.append(_STOPPED[outcome.stopped_for])
    elif outcome.status is None:
        notes.append("The script ended all processes, its own as well.")
    elif outcome.status < 0:
        notes.append(f"The script was ended by {_signal_name(-outcome.status)}.")
    elif outcome.status:
        notes.append(f"The script ended with exit code {outcome.status}.")
    if outcome.files:
        notes.append(f"It wrote these files, which are gone now: {_listed(outcome.files)}.")
    return "\n\n".join(notes)


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    first = round(most * _BEGINNING)
    left_out = len(text) - most
    return f"{text[:first]}\n({left_out:,} characters left out)\n{text[first + left_out :]}"


def _signal_name(number: int) -> str:
    limits = {"SIGXCPU": "the limit on processor time", "SIGXFSZ": "the limit on the size of files"}
    try:
        name = signal.Signals(number).name
    except ValueError:  # the script wrote the report itself
        return f"signal {number}"
    return limits.get(name, name)


def _listed(files: Sequence[LeftFile]) -> str:
    named = ", ".join(f"{file.path} ({show_bytes(file.n_bytes)})" for file in files[:_MOST_NAMED])
    return named if len(files) <= _MOST_NAMED else f"{named} and {len(files) - _MOST_NAMED} more"
