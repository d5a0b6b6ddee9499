"""ProgramsCard: the programs that can use the server, how each is started, and their settings to copy."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from qwendesk.core.processes import own_command
from qwendesk.core.translation import tr
from qwendesk.server.access import masked_key
from qwendesk.server.setups.programs import Program, Target
from qwendesk.server.setups.service import SetupPhase, SetupState
from qwendesk.widgets.buttons import TextButton, copy_text, describe, restyle
from qwendesk.widgets.kit import LIST_PADDING, STRETCH, button, column, label, paragraph, row
from qwendesk.widgets.layouts import EqualColumnsLayout, FlowLayout, widget_with
from qwendesk.widgets.question_dialog import Dialog

_SIZE = (620, 520)
# Least width of a program's card, and gap between two, in pixels.
_NARROWEST, _GAP = 280, 8


class ProgramsCard(QWidget):
    """A small card for each program. Its signals carry the id of a program."""

    setup_asked = Signal(str)
    trial_asked = Signal(str)
    stop_asked = Signal(str)

    def __init__(self, states: Sequence[SetupState]) -> None:
        super().__init__()
        self.setObjectName("serve.programs")
        self._hint = label(tr("Turn the server on to use them."), "dim", name="serve.programs.hint", wraps=True)
        head = row(label(tr("Set up a program"), "heading"), self._hint)
        head.setStretchFactor(self._hint, 1)
        self._lines = {state.program.id: self._line(state) for state in states}
        cards = EqualColumnsLayout(least=_NARROWEST, spacing=_GAP)
        for line in self._lines.values():
            cards.addWidget(line)
        self.setLayout(column(head, cards))

    def show_states(self, states: Sequence[SetupState], *, is_on: bool) -> None:
        self._hint.setVisible(not is_on)
        for state in states:
            self._lines[state.program.id].show_state(state, is_on=is_on)

    def _line(self, state: SetupState) -> "ProgramLine":
        line, program_id = ProgramLine(state), state.program.id
        line.setup_asked.connect(lambda: self.setup_asked.emit(program_id))
        line.trial_asked.connect(lambda: self.trial_asked.emit(program_id))
        line.stop_asked.connect(lambda: self.stop_asked.emit(program_id))
        return line


class SetupDialog(Dialog):
    """Deletes itself when it is closed."""

    def __init__(self, parent: QWidget, program: Program, file: Path, target: Target) -> None:
        super().__init__(parent)
        text, key = program.settings_for(target), target.key
        self.setObjectName("serve.setup")
        title = tr("Settings for {0}", program.name)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        shown = QPlainTextEdit(text.replace(key, masked_key(key)))
        shown.setReadOnly(True)
        shown.setProperty("kind", "details")
        shown.setTabChangesFocus(True)
        describe(shown, "serve.setup.text", tr("The settings"), tr("The key is hidden here only"))
        warning = tr("The file then holds the key in plain text: whoever reads it can use your server.")
        shown_warning = paragraph(warning, "notice", name="serve.setup.warning", selectable=True)
        tip = tr("Copy the settings, with the whole key")
        copy = button(tr("Copy"), "serve.setup.copy", kind="primary", tip=tip)
        copy.clicked.connect(lambda: copy_text(copy, text))
        close = TextButton(tr("Close"))
        describe(close, "serve.setup.close", close.text(), shortcut="Esc")
        close.clicked.connect(self.reject)
        made = column(
            paragraph(title, "heading", name="serve.setup.title", selectable=True),
            paragraph(_next_step(program, file), "dim", name="serve.setup.file", selectable=True),
            shown,
            shown_warning,
            row(STRETCH, copy, close),
            spacing=10,
            margins=(20, 18, 20, 16),
        )
        made.setStretchFactor(shown, 1)
        self.setLayout(made)
        shown_warning.setVisible(key in text)
        copy.setFocus()
        self.resize(min(_SIZE[0], parent.width() - 40), min(_SIZE[1], parent.height() - 40))


def _next_step(program: Program, file: Path) -> str:
    """Return what the user does with the settings."""
    if program.id == "zed":
        return tr(
            "Open the settings of Zed (zed: open settings) and merge this into them. Then paste the key at QwenDesk in "
            "Zed's list of LLM providers. We haven't tried Zed; tell us if it works."
        )
    return tr("To use QwenDesk whenever {0} runs, also in an editor, merge this into {1}.", program.name, file)


class ProgramLine(QFrame):
    """The card of one program."""

    setup_asked = Signal()
    trial_asked = Signal()
    stop_asked = Signal()

    def __init__(self, state: SetupState) -> None:
        super().__init__()
        program, name = state.program, f"serve.program.{state.program.id}"
        self._name, self._program, self._is_trying = name, program, False
        self.setObjectName(name)
        self.setProperty("kind", "modelcard")
        self._chip = label(name=f"{name}.state", chip="plain")
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._detail = paragraph(kind="small", name=f"{name}.detail", selectable=True)
        self._try = TextButton()
        self._try.clicked.connect(self._on_try)
        tip = tr("Copy the command that starts it, with QwenDesk's folder")
        self._copy = button(tr("Copy command"), f"{name}.copy", kind="quiet", tip=tip)
        self._copy.setAccessibleName(tr("{0}: {1}", program.name, self._copy.text()))
        self._copy.clicked.connect(lambda: copy_text(self._copy, whole_command(program)))
        said, tip = tr("Settings for {0}…", program.name), tr("Settings to copy, with which it always knows QwenDesk")
        self._settings = button(tr("Settings…"), f"{name}.setup", kind="quiet", said=said, tip=tip)
        self._settings.clicked.connect(self.setup_asked)
        actions = FlowLayout(spacing=4)
        for widget in (self._try, self._copy, self._settings):
            actions.addWidget(widget)
        title = label(program.name, "strong")
        around = (LIST_PADDING, 12, LIST_PADDING, 12)
        self.setLayout(
            column(row(title, STRETCH, self._chip), self._detail, STRETCH, widget_with(actions), margins=around)
        )
        self._settings.setVisible(bool(program.settings))

    def show_state(self, state: SetupState, *, is_on: bool) -> None:
        """Show a program; nothing can be done with it while the server is off."""
        self._is_trying = state.phase == "trying"
        self._chip.setText(phase_text(state.phase))
        self._chip.setAccessibleName(tr("State: {0}", phase_text(state.phase)))
        restyle(self._chip, "chip", phase_tone(state.phase) if is_on else "plain")
        detail = detail_text(state) if is_on else ""
        self._detail.setText(detail)
        self._detail.setVisible(bool(detail))
        self._settings.setEnabled(is_on)
        text = tr("Stop") if self._is_trying else tr("Try")
        self._try.setText(text)
        tip = tr("Have it ask the model one short question, which can take minutes")
        describe(self._try, f"{self._name}.try", tr("{0}: {1}", self._program.name, text), tip)
        can_start = is_on and self._program.can_start and state.phase != "not_found"
        self._try.setVisible(can_start)
        self._copy.setVisible(can_start)

    def _on_try(self) -> None:
        (self.stop_asked if self._is_trying else self.trial_asked).emit()


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
