"""ProgramLine: one program that can be set up for the server."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.server.setups.service import SetupState
from qwendesk.server.view.setup_texts import detail_text, phase_text, phase_tone, whole_command
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.layouts import FlowLayout, ResponsivePairLayout, widget_with


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
        self._settings.setVisible(bool(program.settings))
        self._try = TextButton(kind="quiet")
        self._try.clicked.connect(self._on_try)
        self._name, self._program, self._is_trying = name, program, False
        actions = FlowLayout()
        for widget in (self._chip, self._try, self._settings):
            actions.addWidget(widget)
        rule = QFrame()
        rule.setProperty("kind", "rule")
        rule.setFixedHeight(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 0)
        column.setSpacing(4)
        column.addLayout(ResponsivePairLayout(title, widget_with(actions), least=0))
        below = QHBoxLayout()
        below.addWidget(self._detail, 1)
        below.addWidget(self._copy, alignment=Qt.AlignmentFlag.AlignTop)
        column.addLayout(below)
        column.addWidget(rule)

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
