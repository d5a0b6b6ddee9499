"""An answer: its thought, its text, what it cost, or why there is none."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.conversation import Answer, Turn
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import TextPane
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.answer_view import AnswerView
from qwendesk.ui.thread.cut_off_note import CutOffNote
from qwendesk.ui.thread.formulas import FormulaShelf
from qwendesk.ui.thread.message_actions import MessageActions
from qwendesk.ui.thread.stats_chip import StatsChip
from qwendesk.ui.thread.think_block import ThinkBlock
from qwendesk.ui.thread.turn_editor import edit_in_place, reopen_edit
from qwendesk.ui.thread.turn_intents import TurnIntents

_BELOW = 14
"""Pixels between an answer and the next question, beyond what is between all messages."""


class AssistantMessage(QWidget):
    """One answer while it streams and afterwards. `try_again` when a failed one should be asked again."""

    try_again = Signal()

    def __init__(self, keeper: ThemeKeeper, turn_id: int, formulas: FormulaShelf | None = None) -> None:
        super().__init__()
        self._keeper = keeper
        self._turn_id = turn_id
        self._thought: ThinkBlock | None = None
        self._footer: QHBoxLayout | None = None
        self._status = QLabel()
        self._status.setProperty("kind", "dim")
        self._status.setObjectName(f"thread.status.{turn_id}")
        self._answer = AnswerView(keeper, formulas=formulas)
        self._answer.hide()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, _BELOW)
        self._column.setSpacing(10)
        self._column.addWidget(self._status)
        self._column.addWidget(self._answer)

    @property
    def answer_view(self) -> AnswerView:
        return self._answer

    @property
    def think_block(self) -> ThinkBlock | None:
        return self._thought

    @property
    def is_thinking(self) -> bool:
        return self._thought is not None and self._thought.is_thinking

    @property
    def has_words(self) -> bool:
        """Whether anything of the thought or the answer is there."""
        return self._thought is not None or bool(self._answer.markdown)

    def show_status(self, text: str) -> None:
        """What happens before the first word, dimmed."""
        self._status.setText(text)
        self._status.setVisible(bool(text))

    def show_read(self, done: int, total: int) -> None:
        if not self.has_words and total:
            self.show_status(tr("Reading prompt {0}%", round(100 * done / total)))

    def write(self, kind: str, text: str) -> None:
        """More of the "reasoning" or of the "answer"."""
        self.show_status("")
        if kind == "reasoning":
            self._thought_block().append(text)
            return
        if self._thought is not None and self._thought.is_thinking:
            self._thought.end_thinking()
        self._answer.show()
        self._answer.add(text)

    def go_on(self, answer: Answer) -> None:
        """Show what was said before the answer goes on."""
        if answer.reasoning:
            self.write("reasoning", answer.reasoning)
        if answer.text:
            self.write("answer", answer.text)

    def end(self, answer: Answer) -> None:
        """The answer is final. Whatever was not streamed to here is shown too."""
        self.show_status("")
        if answer.reasoning and self._thought is None:
            self._thought_block().append(answer.reasoning)
        if self._thought is not None:
            self._thought.end_thinking(answer.thought_s, answer.stats.reasoning_tokens)
        if answer.text and not self._answer.markdown:
            self._answer.show()
            self._answer.show_whole(answer.text)
        else:
            self._answer.finish()
        if answer.error:
            self._add(self._failure(answer.error))
        elif not answer.text and not answer.was_cut_off:
            self.show_status(tr("Stopped before the answer began."))
        if answer.text or answer.stats.prompt_tokens:
            self._show_numbers(answer)

    def mark_thought(self, words: str) -> int:
        """Open the thought and mark places with `words`; returns how far below the top the first one is."""
        if self._thought is None:
            return 0
        self._thought.set_open(opened=True)
        return self._thought.mapTo(self, QPoint(0, self._thought.mark_found(words))).y()

    def _add(self, widget: QWidget, at: int = -1) -> None:
        """Put a widget into the column, on screen at once: Qt alone would show it a moment later."""
        self._column.insertWidget(at, widget)
        widget.show()

    def _thought_block(self) -> ThinkBlock:
        if self._thought is None:
            self._thought = ThinkBlock(self._keeper, self._turn_id)
            self._add(self._thought, at=0)
        return self._thought

    def offer(self, turn: Turn, intents: TurnIntents) -> None:
        """What can be done with this answer, at the right of its numbers. Called once it is final."""
        if turn.answer.was_cut_off:
            self._add(CutOffNote(self._keeper, turn, intents))
        footer = self._footer or self._new_footer()
        actions = MessageActions(self._keeper, turn, "answer", intents, self)
        footer.insertWidget(footer.count() - 1, actions)  # after the numbers, before the stretch
        actions.show()
        if not turn.answer_id:
            actions.edit.hide()

        def edit() -> None:
            edit_in_place(self._keeper, turn, intents, self._column, self._parts(), question=False)

        actions.edit.clicked.connect(edit)
        reopen_edit(self, turn.answer_id, intents, edit)

    def _parts(self) -> list[QWidget]:
        items = [self._column.itemAt(index) for index in range(self._column.count())]
        return [widget for item in items if item is not None and (widget := item.widget()) is not None]

    def _new_footer(self) -> QHBoxLayout:
        holder = QWidget()
        self._footer = QHBoxLayout(holder)
        self._footer.setContentsMargins(0, 0, 0, 0)
        self._footer.setSpacing(4)
        self._footer.addStretch(1)
        self._add(holder)
        return self._footer

    def _show_numbers(self, answer: Answer) -> None:
        if answer.stop_reason is not None and not answer.by_hand:
            chip = StatsChip(self._turn_id)
            chip.show_answer(answer)
            self._new_footer().insertWidget(0, chip)
            chip.show()

    def _failure(self, sentence: str) -> QWidget:
        box = QFrame()
        box.setProperty("kind", "failure")
        box.setObjectName(f"thread.failure.{self._turn_id}")
        row = QHBoxLayout(box)
        row.setContentsMargins(14, 10, 10, 10)
        row.setSpacing(12)
        words = TextPane()
        words.document().setDefaultFont(self._keeper.theme.font(13))
        words.setPlainText(sentence)
        words.setObjectName(f"thread.failure.text.{self._turn_id}")
        words.setAccessibleName(tr("What went wrong"))
        again = TextButton(self._keeper, " " + tr("Try again"), icon_name="again", role="text")
        describe(again, f"thread.again.{self._turn_id}", tr("Try again"), tr("Answer the same question again"))
        again.clicked.connect(self.try_again)
        row.addWidget(words, 1)
        row.addWidget(again, 0, Qt.AlignmentFlag.AlignTop)
        return box
