"""Widgets below an answer: its statistics, or a note that it was cut off."""

from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QToolTip

from qwendesk.chat.view.thread.turn_intents import TurnIntents
from qwendesk.core.conversation import Answer, Turn
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.display_texts import stats_text, stats_tooltip


class CutOffNote(QFrame):
    """A note that the answer was cut off or is missing, with a button that continues or requests it."""

    def __init__(self, turn: Turn, intents: TurnIntents) -> None:
        super().__init__()
        self._turn, self._intents = turn, intents
        self.setProperty("kind", "cutoff")
        self.setObjectName(f"thread.cutoff.{turn.id}")
        begun = bool(turn.answer_id) and not turn.answer.is_empty
        label = QLabel(tr("This answer was cut off because QwenDesk closed.") if begun else tr("Not answered yet."))
        label.setProperty("kind", "dim")
        label.setObjectName(f"thread.cutoff.words.{turn.id}")
        text, tip = (
            (tr("Continue"), tr("Continue from where this answer was cut off"))
            if begun
            else (tr("Answer"), tr("Answer this question"))
        )
        self._button = TextButton(" " + text, icon_name="resume" if begun else "again", role="text")
        describe(self._button, f"thread.footer.resume.{turn.id}", text, tip)
        wanted = intents.resume if begun else intents.regenerate
        self._button.clicked.connect(lambda: wanted.emit(turn.id))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(label)
        row.addWidget(self._button)
        row.addStretch(1)
        # Only the last answer can be continued. A missing answer can be requested anywhere.
        self._button.setHidden(begun and not intents.is_last(turn.id))
        intents.busy_changed.connect(self._update_enabled)
        self._update_enabled()

    def _update_enabled(self) -> None:
        self._button.setEnabled(not self._intents.is_busy())


_EXTRA_WIDTH = 14
"""Width in pixels without the text: the frame, the stylesheet's padding and the style's own margin."""


class StatsChip(QToolButton):
    """A button such as "112 tok/s · 0.2 s". A click or the keyboard focus shows the tooltip at once."""

    def __init__(self, turn_id: int) -> None:
        super().__init__()
        self.setObjectName(f"thread.stats.{turn_id}")
        self.setProperty("kind", "stats")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Statistics for this answer"))
        self.clicked.connect(self._show_tooltip)

    def show_answer(self, answer: Answer) -> None:
        tokens = answer.stats.reasoning_tokens + answer.stats.answer_tokens
        text = stats_text(answer) or tr_n("{0} token", "{0} tokens", tokens)
        self.setText(text)
        tip = stats_tooltip(answer)
        self.setToolTip(tip)
        self.setAccessibleDescription(tip)
        if answer.stats.cache_note:
            self.setText(f"{text} · {tr('prompt re-read')}")

    def sizeHint(self) -> QSize:
        """Return a size hardly wider than the text, so that the text is aligned with the answer."""
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + _EXTRA_WIDTH, super().sizeHint().height())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._show_tooltip()

    def leaveEvent(self, event: QEvent) -> None:
        QToolTip.hideText()
        super().leaveEvent(event)

    def _show_tooltip(self) -> None:
        QToolTip.showText(self.mapToGlobal(QPoint(0, self.height())), self.toolTip(), self)
