"""Under an answer that never ended, since the app was closed, killed or lost its power while it was being made."""

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from qwendesk.core.conversation import Turn
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.turn_intents import TurnIntents


class CutOffNote(QFrame):
    """Says so, and goes on with it; a question without any answer is answered."""

    def __init__(self, keeper: ThemeKeeper, turn: Turn, intents: TurnIntents) -> None:
        super().__init__()
        self._turn, self._intents = turn, intents
        self.setProperty("kind", "cutoff")
        self.setObjectName(f"thread.cutoff.{turn.id}")
        begun = bool(turn.answer_id) and not turn.answer.is_empty
        words = QLabel(tr("Cut off: QwenDesk ended before the answer did.") if begun else tr("Not answered yet."))
        words.setProperty("kind", "dim")
        words.setObjectName(f"thread.cutoff.words.{turn.id}")
        text, tip = (
            (tr("Continue"), tr("Go on with this answer where it was cut off"))
            if begun
            else (tr("Answer"), tr("Answer this question"))
        )
        self._go_on = TextButton(keeper, " " + text, icon_name="resume" if begun else "again", role="text")
        describe(self._go_on, f"thread.goon.{turn.id}", text, tip)
        wanted = intents.resume if begun else intents.regenerate
        self._go_on.clicked.connect(lambda: wanted.emit(turn.id))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(words)
        row.addWidget(self._go_on)
        row.addStretch(1)
        # Only the last answer can go on; answering again is possible anywhere.
        self._go_on.setHidden(begun and not intents.is_last(turn.id))
        intents.busy_changed.connect(self._show_possible)
        self._show_possible()

    def _show_possible(self) -> None:
        self._go_on.setEnabled(not self._intents.is_busy())
