"""ProgramsCard: the programs that can be set up for the server."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout

from qwendesk.core.translation import tr
from qwendesk.server.setups.service import SetupState
from qwendesk.server.view.program_line import ProgramLine


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

    def _line(self, state: SetupState) -> ProgramLine:
        line, program_id = ProgramLine(state), state.program.id
        line.setup_asked.connect(lambda: self.setup_asked.emit(program_id))
        line.trial_asked.connect(lambda: self.trial_asked.emit(program_id))
        line.stop_asked.connect(lambda: self.stop_asked.emit(program_id))
        return line
