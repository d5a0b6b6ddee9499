"""The card that names the next step when several programs wait for the engine."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout

from qwendesk.commands.outgrown import NextStep
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe


class NextStepCard(QFrame):
    """Is hidden while the engine suffices."""

    command_asked = Signal()
    """Asks to show the command of the step."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("nextstep")
        heading = QLabel(tr("More than one at a time?"))
        heading.setProperty("kind", "strong")
        self._sentence = QLabel()
        self._sentence.setObjectName("nextstep.sentence")
        self._sentence.setProperty("kind", "dim")
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._show = TextButton(tr("Show the command"))
        describe(self._show, "nextstep.command", tr("Show the command"), tr("vLLM's command for the cards of this PC"))
        self._show.clicked.connect(self.command_asked)
        texts = QVBoxLayout()
        texts.setSpacing(4)
        texts.addWidget(heading)
        texts.addWidget(self._sentence)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 12, 16, 12)
        row.setSpacing(16)
        row.addLayout(texts, 1)
        row.addWidget(self._show, 0, Qt.AlignmentFlag.AlignVCenter)
        self.hide()

    def show_step(self, step: NextStep | None) -> None:
        """Show the step if programs wait. The next step about memory is on the Engine page."""
        is_wanted = step is not None and step.cause == "waiting"
        if step is not None:
            self._sentence.setText(step.sentence)
            self._show.setVisible(bool(step.command))
        self.setVisible(is_wanted)
