"""What the Server page says of programs and their set-up."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from qwendesk.core.translation import tr
from qwendesk.server.setups.programs import Program
from qwendesk.server.setups.service import SetupPhase, SetupState

_TONES: dict[SetupPhase, str] = {"works": "good", "set_up": "info", "outdated": "warn", "failed": "bad"}


def phase_text(phase: SetupPhase) -> str:
    match phase:
        case "not_found":
            return tr("not found")
        case "ready":
            return tr("ready")
        case "set_up":
            return tr("set up")
        case "outdated":
            return tr("outdated")
        case "trying":
            return tr("trying…")
        case "works":
            return tr("works")
        case "failed":
            return tr("didn't answer")


def phase_tone(phase: SetupPhase) -> str:
    return _TONES.get(phase, "plain")


def start_text(program: Program, file: Path) -> str:
    """Return the command that starts the program with QwenDesk; "" if there is none."""
    if not program.start:
        return ""
    return command_text((program.command, *program.start_arguments(file)))


def command_text(words: Sequence[str]) -> str:
    return " ".join(f'"{word}"' if " " in word and '"' not in word else shlex.quote(word) for word in words)


def detail_text(state: SetupState, file: Path) -> str:
    """Return the line below a program's name; "" if there is nothing to say."""
    program, phase = state.program, state.phase
    if phase == "failed":
        return tr("It said: {0}", _one_line(state.said)) if state.said else tr("It said nothing.")
    if phase == "works":
        return tr("It answered: {0}", _one_line(state.said))
    if phase in ("set_up", "trying") and program.start:
        return tr("Start it with: {0}", start_text(program, file))
    if phase == "outdated":
        return tr("It has an old key or address. Set it up again.")
    if phase == "set_up":
        return tr("Choose the model QwenDesk in it.")
    return ""


def next_step(program: Program, file: Path) -> str:
    """Return what the user does once the entries are in the file."""
    match program.id:
        case "continue":
            return tr("Then choose the model QwenDesk in Continue.")
        case "zed":
            return tr(
                "Open the settings of Zed (zed: open settings) and merge this into them. The key goes into Zed itself: "
                "paste it at QwenDesk in Zed's list of LLM providers. We haven't tried Zed; tell us if it works."
            )
        case _:
            return tr("Then start it with: {0}. Without these words it works as before.", start_text(program, file))


def _one_line(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(shown.split())
    return line if len(line) <= 160 else f"…{line[-160:]}"
