"""The Server page's texts about programs and how they are started."""

import shlex
import sys
from pathlib import Path

from qwendesk.core.processes import own_command
from qwendesk.core.translation import tr
from qwendesk.server.setups.programs import Program
from qwendesk.server.setups.service import SetupPhase, SetupState

_TONES: dict[SetupPhase, str] = {"works": "good", "ready": "info", "failed": "bad"}


def phase_text(phase: SetupPhase) -> str:
    match phase:
        case "not_found":
            return tr("not found")
        case "ready":
            return tr("ready")
        case "trying":
            return tr("trying…")
        case "works":
            return tr("works")
        case "failed":
            return tr("didn't answer")


def phase_tone(phase: SetupPhase) -> str:
    return _TONES.get(phase, "plain")


def whole_command(program: Program) -> str:
    """Return the command that starts the program with the server, in any folder."""
    first, *others = own_command("start", program.id)
    if sys.platform == "win32" and hasattr(sys, "frozen"):
        first = str(Path(first).with_name("QwenDeskCommand.exe"))  # the one with a console
    return " ".join(f'"{word}"' if " " in word and '"' not in word else shlex.quote(word) for word in (first, *others))


def detail_text(state: SetupState) -> str:
    """Return the lines below a program's name; "" if there is nothing to say."""
    if state.phase == "not_found" or not state.program.can_start:
        return ""
    start = tr("Start it in a terminal with: {0}", f"qwendesk start {state.program.id}")
    match state.phase:
        case "failed":
            said = tr("It said: {0}", _one_line(state.said)) if state.said else tr("It said nothing.")
        case "works":
            said = tr("It answered: {0}", _one_line(state.said))
        case _:
            return start
    return f"{start}\n{said}"


def _one_line(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(shown.split())
    return line if len(line) <= 160 else f"…{line[-160:]}"
