"""ProgramsCard: the programs that can use the server, how each is started, and their settings to copy."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.processes import own_command
from qwendesk.core.translation import tr
from qwendesk.server.setups.programs import Program, Target
from qwendesk.server.setups.service import SetupPhase, SetupState
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.kit import rule
from qwendesk.widgets.layouts import FlowLayout, ResponsivePairLayout, widget_with
from qwendesk.widgets.question_dialog import Dialog

_SIZE = (620, 520)


class ProgramsCard(QFrame):
    """Its signals carry the id of a program."""

    setup_asked = Signal(str)
    trial_asked = Signal(str)
    stop_asked = Signal(str)

    def __init__(self, states: Sequence[SetupState]) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("serve.programs")
        title = QLabel(tr("Programs"))
        title.setProperty("kind", "heading")
        self._hint = QLabel(tr("Switch the server on to use them."))
        self._hint.setProperty("kind", "small")
        self._hint.setObjectName("serve.programs.hint")
        self._hint.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 12, 18, 14)
        column.setSpacing(6)
        column.addWidget(title)
        column.addWidget(self._hint)
        self._lines: dict[str, ProgramLine] = {}
        for state in states:
            line = self._lines[state.program.id] = self._line(state)
            column.addWidget(line)
        column.addStretch(1)

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
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        column.addWidget(self._label("title", title, "heading"))
        column.addWidget(self._label("file", _next_step(program, file), "dim"))
        shown = QPlainTextEdit(text.replace(key, f"{key[:3]}••••••••{key[-4:]}"))
        shown.setReadOnly(True)
        shown.setProperty("kind", "details")
        shown.setTabChangesFocus(True)
        describe(shown, "serve.setup.text", tr("The settings"), tr("The key is hidden here only"))
        column.addWidget(shown, 1)
        if key in text:
            warning = tr("The file then holds the key in plain text: whoever reads it can use your server.")
            column.addWidget(self._label("warning", warning, "notice"))
        copy = TextButton(tr("Copy"), kind="primary")
        describe(copy, "serve.setup.copy", tr("Copy"), tr("Copy the settings, with the whole key"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        close = TextButton(tr("Close"))
        describe(close, "serve.setup.close", close.text(), shortcut="Esc")
        close.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        row.addWidget(copy)
        row.addWidget(close)
        column.addLayout(row)
        copy.setFocus()
        self.resize(min(_SIZE[0], parent.width() - 40), min(_SIZE[1], parent.height() - 40))

    def _label(self, name: str, text: str, kind: str) -> QLabel:
        label = QLabel(text)
        label.setObjectName(f"serve.setup.{name}")
        label.setProperty("kind", kind)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setWordWrap(True)
        return label


def _next_step(program: Program, file: Path) -> str:
    """Return what the user does with the settings."""
    if program.id == "zed":
        return tr(
            "Open the settings of Zed (zed: open settings) and merge this into them. Then paste the key at QwenDesk in "
            "Zed's list of LLM providers. We haven't tried Zed; tell us if it works."
        )
    return tr("To use QwenDesk whenever {0} runs, also in an editor, merge this into {1}.", program.name, file)


class ProgramLine(QWidget):
    setup_asked = Signal()
    trial_asked = Signal()
    stop_asked = Signal()

    def __init__(self, state: SetupState) -> None:
        super().__init__()
        program, name = state.program, f"serve.program.{state.program.id}"
        self.setObjectName(name)
        title = QLabel(program.name)
        self._chip = QLabel()
        self._chip.setObjectName(f"{name}.state")
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._detail = QLabel()
        self._detail.setObjectName(f"{name}.detail")
        self._detail.setProperty("kind", "small")
        self._detail.setTextFormat(Qt.TextFormat.PlainText)
        self._detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._detail.setWordWrap(True)
        self._copy = TextButton(tr("Copy"), kind="link")
        tip = tr("Copy the command that starts it, with QwenDesk's folder")
        describe(self._copy, f"{name}.copy", tr("{0}: {1}", program.name, self._copy.text()), tip)
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(whole_command(program)))
        self._settings = TextButton(tr("Settings…"))
        tip = tr("Settings to copy, with which it always knows QwenDesk")
        describe(self._settings, f"{name}.setup", tr("Settings for {0}…", program.name), tip)
        self._settings.clicked.connect(self.setup_asked)
        self._try = TextButton(kind="quiet")
        self._try.clicked.connect(self._on_try)
        self._name, self._program, self._is_trying = name, program, False
        actions = FlowLayout()
        for widget in (self._chip, self._try, self._settings):
            actions.addWidget(widget)
        buttons = widget_with(actions)
        # Only now: a widget without a parent would be shown as a window.
        self._settings.setVisible(bool(program.settings))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 0)
        column.setSpacing(4)
        column.addLayout(ResponsivePairLayout(title, buttons, least=0))
        below = QHBoxLayout()
        below.addWidget(self._detail, 1)
        below.addWidget(self._copy, alignment=Qt.AlignmentFlag.AlignTop)
        column.addLayout(below)
        column.addWidget(rule())

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
