"""The one line of numbers under an answer; hover or focus tells all of them."""

from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QToolButton, QToolTip

from qwendesk.core.conversation import Answer
from qwendesk.ui.kit.labels import stats_text, stats_tooltip
from qwendesk.ui.kit.text import tr, tr_n

_AROUND = 14
"""Pixels beside the words: frame, the stylesheet's padding, and what a style takes for itself."""


class StatsChip(QToolButton):
    """ "112 tok/s · 0.2 s"; a click or the focus shows the tooltip at once."""

    def __init__(self, turn_id: int) -> None:
        super().__init__()
        self.setObjectName(f"thread.stats.{turn_id}")
        self.setProperty("kind", "stats")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Numbers of this answer"))
        self.clicked.connect(self._show_all)

    def show_answer(self, answer: Answer) -> None:
        tokens = answer.stats.reasoning_tokens + answer.stats.answer_tokens
        text = stats_text(answer) or tr_n("{0} token", "{0} tokens", tokens)
        self.setText(text)
        tip = stats_tooltip(answer)
        self.setToolTip(tip)
        self.setAccessibleDescription(tip)
        if answer.stats.cache_note:
            self.setText(f"{text} · {tr('read again')}")

    def sizeHint(self) -> QSize:
        """Hardly wider than its words, so that they begin where the answer does."""
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + _AROUND, super().sizeHint().height())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._show_all()

    def leaveEvent(self, event: QEvent) -> None:
        QToolTip.hideText()
        super().leaveEvent(event)

    def _show_all(self) -> None:
        QToolTip.showText(self.mapToGlobal(QPoint(0, self.height())), self.toolTip(), self)
