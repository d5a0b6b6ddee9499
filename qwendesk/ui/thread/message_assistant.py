"""An answer: its thought, its text, what it cost, or why there is none."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.conversation import Answer
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import TextPane
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.answer_view import AnswerView
from qwendesk.ui.thread.stats_chip import StatsChip
from qwendesk.ui.thread.think_block import ThinkBlock

_SAY_COPIED_MS = 1500


class AssistantMessage(QWidget):
    """One answer while it streams and afterwards. `try_again` when a failed one should be asked again."""

    try_again = Signal()

    def __init__(self, keeper: ThemeKeeper, turn_id: int) -> None:
        super().__init__()
        self._keeper = keeper
        self._turn_id = turn_id
        self._thought: ThinkBlock | None = None
        self._status = QLabel()
        self._status.setProperty("kind", "dim")
        self._status.setObjectName(f"thread.status.{turn_id}")
        self._answer = AnswerView(keeper)
        self._answer.hide()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
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

    def end(self, answer: Answer) -> None:
        """The answer is final. Whatever was not streamed to here is shown too."""
        self.show_status("")
        if answer.reasoning and self._thought is None:
            self._thought_block().append(answer.reasoning)
        if self._thought is not None:
            self._thought.end_thinking(answer.thought_s, answer.stats.reasoning_tokens)
        if answer.text and not self._answer.markdown:
            self._answer.show()
            self._answer.add(answer.text)
        self._answer.finish()
        if answer.error:
            self._add(self._failure(answer.error))
        elif not answer.text:
            self.show_status(tr("Stopped before the answer began."))
        if answer.text or answer.stats.prompt_tokens:
            self._add(self._footer(answer))

    def _add(self, widget: QWidget, at: int = -1) -> None:
        """Put a widget into the column, on screen at once: Qt alone would show it a moment later."""
        self._column.insertWidget(at, widget)
        widget.show()

    def _thought_block(self) -> ThinkBlock:
        if self._thought is None:
            self._thought = ThinkBlock(self._keeper, self._turn_id)
            self._add(self._thought, at=0)
        return self._thought

    def _footer(self, answer: Answer) -> QWidget:
        footer = QWidget()
        row = QHBoxLayout(footer)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        if answer.text:
            copy = IconButton(self._keeper, "copy", size=16, side=24)
            describe(
                copy, f"thread.copy.{self._turn_id}", tr("Copy the answer"), tr("Copy the answer, without the thought")
            )
            copy.clicked.connect(lambda: self._copy(copy, answer.text))
            row.addWidget(copy)
        if answer.stop_reason is not None:
            chip = StatsChip(self._turn_id)
            chip.show_answer(answer)
            row.addWidget(chip)
        row.addStretch(1)
        return footer

    def _copy(self, button: IconButton, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        button.themed.show("done", "text_good")
        QTimer.singleShot(_SAY_COPIED_MS, button, lambda: button.themed.show("copy", "text_dim"))

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
        words.setAccessibleName(tr("What went wrong"))
        again = TextButton(self._keeper, " " + tr("Try again"), icon_name="again", role="text")
        describe(again, f"thread.again.{self._turn_id}", tr("Try again"), tr("Ask the same question again"))

        def ask_again() -> None:
            again.hide()
            self.try_again.emit()

        again.clicked.connect(ask_again)
        row.addWidget(words, 1)
        row.addWidget(again, 0, Qt.AlignmentFlag.AlignTop)
        return box
