"""Widgets below an answer: its statistics, and notes that it was cut off or repeated itself."""

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, SignalInstance
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QToolTip

from qwendesk.chat.view.thread.turn_intents import TurnIntents
from qwendesk.core.conversation import Answer, Turn
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.display_texts import stats_text, stats_tooltip
from qwendesk.widgets.text_labels import WrappingLabel


class AnswerNote(QFrame):
    """A sentence below an answer, with a button that changes the answer."""

    def __init__(
        self,
        turn_id: int,
        name: str,
        sentence: str,
        button: TextButton,
        wanted: SignalInstance,
        intents: TurnIntents,
        *,
        continues: bool = False,
        below_last: bool = False,
    ) -> None:
        """`wanted` is the intent that a click on `button` emits, `continues` whether that continues the answer.

        A note `below_last` is hidden when another answer follows.
        """
        super().__init__()
        self._button, self._intents, self._tip = button, intents, button.toolTip()
        self._turn_id, self._continues, self._below_last = turn_id, continues, below_last
        self.setProperty("kind", "cutoff")
        self.setObjectName(f"thread.{name}.{turn_id}")
        label = WrappingLabel(sentence)
        label.setProperty("kind", "dim")
        label.setObjectName(f"thread.{name}.words.{turn_id}")
        button.clicked.connect(lambda: wanted.emit(turn_id))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(label)
        row.addWidget(button)
        row.addStretch(1)
        intents.busy_changed.connect(self._update_enabled)
        self._update_enabled()

    def _update_enabled(self) -> None:
        if self._below_last and not self._intents.is_last(self._turn_id):
            self.hide()
        reason = self._intents.continue_reason() if self._continues else ""
        self._button.setEnabled(not self._intents.is_busy() and not reason)
        self._button.setToolTip(reason or self._tip)


def answer_notes(turn: Turn, intents: TurnIntents) -> list[AnswerNote]:
    """Return the notes for a final answer, from top to bottom."""
    answer = turn.answer
    notes: list[AnswerNote] = []
    if answer.was_cut_off:
        notes.append(_cut_off_note(turn, intents))
    if answer.stats.reasoning_looped and answer.reasoning and answer.text:
        notes.append(_thinking_loop_note(turn, intents))
    if answer.stop_reason == "repetition" and not answer.by_hand:
        notes.append(_repetition_note(turn, intents))
    if intents.template_notice() and intents.is_last(turn.id) and answer.stop_reason is not None:
        notes.append(_template_note(turn, intents))
    return notes


def _cut_off_note(turn: Turn, intents: TurnIntents) -> AnswerNote:
    """Return a note that the answer was cut off or is missing, with a button that continues or requests it."""
    begun = bool(turn.answer_id) and not turn.answer.is_empty
    sentence = tr("This answer was cut off because QwenDesk closed.") if begun else tr("Not answered yet.")
    text, tip = (
        (tr("Continue"), tr("Continue from where this answer was cut off"))
        if begun
        else (tr("Answer"), tr("Answer this question"))
    )
    button = TextButton(text, icon_name="resume" if begun else "again", role="text")
    describe(button, f"thread.footer.resume.{turn.id}", text, tip)
    # Only the last answer can be continued. A missing answer can be requested anywhere.
    button.setHidden(begun and not intents.is_last(turn.id))
    wanted = intents.resume if begun else intents.regenerate
    return AnswerNote(turn.id, "cutoff", sentence, button, wanted, intents, continues=begun)


def _thinking_loop_note(turn: Turn, intents: TurnIntents) -> AnswerNote:
    text = tr("Continue thinking")
    button = TextButton(text, icon_name="resume", role="text")
    tip = tr("Continue the thinking and answer again. This answer is kept as another version.")
    describe(button, f"thread.footer.think.{turn.id}", text, tip)
    sentence = tr("Thinking went round in circles, so QwenDesk began the answer.")
    return AnswerNote(turn.id, "looped", sentence, button, intents.continue_thinking, intents, continues=True)


def _repetition_note(turn: Turn, intents: TurnIntents) -> AnswerNote:
    text = tr("Try again")
    button = TextButton(text, icon_name="again", role="text")
    describe(button, f"thread.footer.again.{turn.id}", text, tr("Answer again with more random sampling"))
    sentence = tr("The answer repeated itself, so QwenDesk stopped it.")
    return AnswerNote(turn.id, "repetition", sentence, button, intents.regenerate_varied, intents)


def _template_note(turn: Turn, intents: TurnIntents) -> AnswerNote:
    text = tr("Try another template")
    button = TextButton(text, icon_name="again", role="text")
    tip = tr("Answer again with another built-in chat template, which this chat keeps")
    describe(button, f"thread.footer.template.{turn.id}", text, tip)
    notice, wanted = intents.template_notice(), intents.other_template
    return AnswerNote(turn.id, "template", notice, button, wanted, intents, below_last=True)


# Width in pixels without the text: the frame, the stylesheet's padding and the style's own margin.
_EXTRA_WIDTH = 14


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
