"""An answer: its thinking, its text and its statistics, or an error."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Signal, SignalInstance
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.formulas import FormulaCache
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.chat.view.answer.source_links import SourceIntents, SourceLinks
from qwendesk.chat.view.thread.branch_links import BranchLinks
from qwendesk.chat.view.thread.message_actions import MessageActions
from qwendesk.chat.view.thread.stats_chip import StatsChip
from qwendesk.chat.view.thread.think_block import ThinkBlock
from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.chat.view.thread.turn_editor import edit_in_place, reopen_edit
from qwendesk.chat.view.thread.turn_intents import CallIntents, TurnIntents
from qwendesk.core.conversation import Answer, Turn
from qwendesk.core.messages import CallRecord, ToolCall, ToolStep
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.step_budget import StepBudget
from qwendesk.widgets.text_layout import WrappingLabel
from qwendesk.widgets.text_pane import TextPane
from qwendesk.widgets.theme_keeper import current_theme


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


# Pixels between an answer and the next question, in addition to the gap between messages.
_BOTTOM_MARGIN = 14


class AssistantMessage(QWidget):
    """An answer, while it streams and when it is complete. `try_again` requests a failed one again.

    Its parts stand in the order in which they happened: for each step the thinking, the text and the calls,
    then the thinking and the text that follow the last call.
    """

    try_again = Signal()
    code_saved = Signal(str, str)
    page_asked = Signal(str, str)
    dragged = Signal(AnswerView, QPoint)
    parsed = Signal()
    jumped = Signal(int)
    """As in AnswerView, of the last text."""

    def __init__(
        self,
        turn_id: int,
        formulas: FormulaCache,
        highlighter: Highlighter,
        budget: StepBudget,
        calls: CallIntents,
        sources: SourceIntents | None,
    ) -> None:
        super().__init__()
        self._turn_id, self._calls = turn_id, calls
        self._formulas, self._highlighter, self._budget = formulas, highlighter, budget
        self._sources = SourceLinks(turn_id, sources) if sources is not None else None
        self._think_block: ThinkBlock | None = None
        self._rows: list[list[CallRow]] = []
        """The calls of each step."""
        self._n_above = 0
        """How many widgets of steps are above the current thinking and text."""
        self._footer: QHBoxLayout | None = None
        self._chip: StatsChip | None = None
        self._status = QLabel()
        self._status.setTextFormat(Qt.TextFormat.PlainText)
        self._status.setProperty("kind", "dim")
        self._status.setObjectName(f"thread.status.{turn_id}")
        self._answer = self._new_view()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, _BOTTOM_MARGIN)
        self._column.setSpacing(10)
        self._column.addWidget(self._status)
        self._column.addWidget(self._answer)

    @property
    def answer_view(self) -> AnswerView:
        return self._answer

    @property
    def think_block(self) -> ThinkBlock | None:
        return self._think_block

    @property
    def is_thinking(self) -> bool:
        return self._think_block is not None and self._think_block.is_thinking

    @property
    def has_text(self) -> bool:
        """Whether any thinking or answer text has arrived."""
        return self._think_block is not None or bool(self._answer.markdown) or bool(self._rows)

    def show_status(self, text: str) -> None:
        """Show a status text until the first text arrives."""
        self._status.setText(text)
        self._status.setVisible(bool(text))

    def show_prompt_progress(self, done: int, total: int) -> None:
        if not self.has_text and total:
            self.show_status(tr("Processing prompt: {0}%", round(100 * done / total)))

    def write(self, kind: str, text: str) -> None:
        """Add text of the "reasoning" or the "answer"."""
        self.show_status("")
        if kind == "reasoning":
            self._require_think_block().append(text)
            return
        if self._think_block is not None and self._think_block.is_thinking:
            self._think_block.end_thinking()
        self._answer.show()
        self._answer.add(text)

    def show_steps(self, steps: Sequence[ToolStep]) -> None:
        """Show the steps in which tools were called. A new step takes over the thinking and the text shown so far."""
        for number, step in enumerate(steps):
            if number == len(self._rows):
                self._begin_step(step)
            rows = self._rows[number]
            for row in rows[len(step.calls) :]:  # a call that the model did not finish
                row.deleteLater()
                self._n_above -= 1
            del rows[len(step.calls) :]
            for index, record in enumerate(step.calls):
                if index == len(rows):
                    rows.append(self._add_call(record))
                rows[index].show_record(record)

    def _begin_step(self, step: ToolStep) -> None:
        self.show_status("")
        if self._think_block is None and step.reasoning:
            self._require_think_block().append(step.reasoning)
        if self._think_block is not None:
            self._think_block.end_thinking(step.thought_s)
            self._n_above += 1
            self._think_block = None
        if step.text:
            view = self._answer
            if view.markdown:
                view.finish()
            else:
                view.show_whole(step.text)
            self._column.removeWidget(view)
            self._add(view, at=self._n_above)
            self._n_above += 1
            self._answer = self._new_view()
            self._column.insertWidget(self._column.indexOf(self._status) + 1, self._answer)
        self._rows.append([])

    def _add_call(self, record: CallRecord) -> CallRow:
        number = sum(map(len, self._rows))
        row = CallRow(self._turn_id, number, self._calls)
        self._add(row, at=self._n_above)
        self._n_above += 1
        return row

    def row_of(self, call: ToolCall) -> CallRow | None:
        """Return the row of a call that is not done."""
        rows = (row for step in self._rows for row in step)
        return next((row for row in rows if row.record and row.record.call == call and not row.record.is_done), None)

    def _new_view(self) -> AnswerView:
        view = AnswerView(None, self._formulas, self._highlighter, self._budget, self._sources)
        view.hide()
        view.code_saved.connect(self.code_saved)
        view.page_asked.connect(self.page_asked)
        view.dragged.connect(lambda place: self.dragged.emit(view, place))
        view.parsed.connect(self.parsed)
        view.jumped.connect(self.jumped)
        return view

    def resume(self, answer: Answer) -> None:
        """Show the partial answer that is being continued."""
        self.show_steps(answer.steps)
        if answer.reasoning:
            self.write("reasoning", answer.reasoning)
        if answer.text:
            self.write("answer", answer.text)

    def end(self, answer: Answer) -> None:
        """Show the final answer, including text that was not streamed to this widget."""
        self.show_status("")
        self.show_steps(answer.steps)
        for row in (row for step in self._rows for row in step):
            row.end()
        if answer.reasoning and self._think_block is None:
            self._require_think_block().append(answer.reasoning)
        if self._think_block is not None:
            before_s = sum(step.thought_s for step in answer.steps)
            n_tokens = 0 if answer.steps else answer.stats.reasoning_tokens  # of all thinking together
            self._think_block.end_thinking(max(0.0, answer.thought_s - before_s), n_tokens)
        if answer.text and not self._answer.markdown:
            self._answer.show()
            self._answer.show_whole(answer.text)
        else:
            self._answer.finish()
        if answer.error:
            self._add(self._failure_box(answer.error))
        elif answer.ended_without_text:
            self._add(self._failure_box(tr("The model ended without an answer. Try again, or limit its thinking.")))
        elif not answer.text and not answer.was_cut_off and not answer.steps:
            self.show_status(tr("Stopped before the answer started."))
        if answer.text or answer.stats.prompt_tokens:
            self._show_statistics(answer)

    def mark_thinking(self, query: str) -> int:
        """Open the thinking block and highlight `query`. Return how far below the top the first match is."""
        if self._think_block is None:
            return 0
        self._think_block.set_open(opened=True)
        return self._think_block.mapTo(self, QPoint(0, self._think_block.mark_found(query))).y()

    def _add(self, widget: QWidget, at: int = -1) -> None:
        """Add a widget to the column and show it at once. Qt alone would show it later."""
        self._column.insertWidget(at, widget)
        widget.show()

    def _require_think_block(self) -> ThinkBlock:
        if self._think_block is None:
            self._think_block = ThinkBlock(self._turn_id)
            self._add(self._think_block, at=self._n_above)
        return self._think_block

    def add_actions(self, turn: Turn, intents: TurnIntents) -> None:
        """Add the actions for a final answer, at the left. Its statistics are at the right, as their width varies."""
        footer = self._footer or self._new_footer()
        for note in answer_notes(turn, intents):
            self._add(note, at=self._column.count() - 1)  # above the footer
        if self._chip is not None:
            self._chip.speed_reason = lambda: intents.speed_reason(turn.answer.stats)
            self._chip.why_asked.connect(lambda: intents.why_asked.emit(turn.answer))
        actions = MessageActions(turn, "answer", intents, self)
        footer.insertWidget(0, actions)
        actions.show()
        links = BranchLinks(turn.answer_id or turn.question_id, intents)
        self._column.addWidget(links)
        links.update_links()
        if not turn.answer_id:
            actions.edit.hide()

        def edit() -> None:
            edit_in_place(turn, intents, self._column, self._parts(), question=False)

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

    def _show_statistics(self, answer: Answer) -> None:
        if answer.stop_reason is not None and not answer.by_hand:
            chip = self._chip = StatsChip(self._turn_id)
            chip.show_answer(answer)
            self._new_footer().addWidget(chip)
            chip.show()

    def _failure_box(self, sentence: str) -> QWidget:
        box = QFrame()
        box.setProperty("kind", "failure")
        box.setObjectName(f"thread.failure.{self._turn_id}")
        row = QHBoxLayout(box)
        row.setContentsMargins(14, 10, 10, 10)
        row.setSpacing(12)
        text = TextPane()
        text.document().setDefaultFont(current_theme().font(13))
        text.setPlainText(sentence)
        text.setObjectName(f"thread.failure.text.{self._turn_id}")
        text.setAccessibleName(tr("What went wrong"))
        again = TextButton(tr("Try again"), icon_name="again", role="text")
        describe(again, f"thread.again.{self._turn_id}", tr("Try again"), tr("Ask the same question again"))
        again.clicked.connect(self.try_again)
        row.addWidget(text, 1)
        row.addWidget(again, 0, Qt.AlignmentFlag.AlignTop)
        return box
