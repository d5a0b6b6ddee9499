"""The conversation: a centred column of questions and answers that follows its end only while the reader is there."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.conversation import Conversation, Turn
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.kit.buttons import IconButton, describe
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.message_assistant import AssistantMessage
from qwendesk.ui.thread.message_user import UserMessage
from qwendesk.ui.thread.thumbnails import PictureShelf

COLUMN_WIDTH = 772
_NEAR_END = 24


class ThreadView(QScrollArea):
    """Shows one conversation. Knows no service: it is told what happens."""

    picture_opened = Signal(str)
    try_again = Signal(int)
    """The id of a failed turn whose question should be asked again."""

    def __init__(self, keeper: ThemeKeeper, shelf: PictureShelf, tasks: Tasks) -> None:
        super().__init__()
        self._keeper = keeper
        self._shelf = shelf
        self._tasks = tasks
        self._answers: dict[int, AssistantMessage] = {}
        self._following = True
        self.setObjectName("thread.view")
        self.setAccessibleName(tr("Conversation"))
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._host = QWidget()
        self._host.setProperty("kind", "column")
        self._column = self._new_column()
        self.setWidget(self._host)
        self._latest = IconButton(keeper, "latest", role="text", side=36)
        self._latest.setProperty("kind", "round")
        describe(self._latest, "thread.latest", tr("Jump to latest"), shortcut=COMMANDS["latest"].shortcut)
        self._latest.setParent(self)
        self._latest.clicked.connect(self.follow)
        self._latest.hide()
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range)
        bar.valueChanged.connect(self._on_scrolled)

    @property
    def is_following(self) -> bool:
        return self._following

    def answer(self, turn_id: int) -> AssistantMessage | None:
        return self._answers.get(turn_id)

    def show_conversation(self, conversation: Conversation) -> None:
        """Replace everything."""
        while (item := self._column.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._column.addStretch(1)
        self._answers.clear()
        for turn in conversation.turns:
            self.add_turn(turn)
            if turn.answer.stop_reason is not None or turn.answer.error:
                self.end_turn(turn)
        self.follow()

    def add_turn(self, turn: Turn) -> None:
        """A new question; its answer is still empty."""
        question = UserMessage(self._keeper, turn.question, self._shelf, self._tasks)
        question.setObjectName(f"thread.question.{turn.id}")
        question.picture_opened.connect(self.picture_opened)
        answer = AssistantMessage(self._keeper, turn.id)
        answer.setObjectName(f"thread.message.{turn.id}")
        answer.try_again.connect(lambda: self.try_again.emit(turn.id))
        self._answers[turn.id] = answer
        for widget in (question, answer):
            self._column.insertWidget(self._column.count() - 1, widget)
            widget.show()
        self.follow()

    def end_turn(self, turn: Turn) -> None:
        answer = self._answers.get(turn.id)
        if answer is not None:
            answer.end(turn.answer)

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._following = True
        self._latest.hide()
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _new_column(self) -> QVBoxLayout:
        row = self._row = QHBoxLayout(self._host)
        row.setSpacing(0)
        self._centre(bar_shown=False)
        holder = QWidget()
        holder.setMaximumWidth(COLUMN_WIDTH)
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(20)
        column.addStretch(1)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        return column

    def _centre(self, *, bar_shown: bool) -> None:
        """Keep the column above the composer, whether the scroll bar takes its width or not."""
        bar = self.verticalScrollBar().sizeHint().width()
        self._row.setContentsMargins(24 + bar, 20, 24 if bar_shown else 24 + bar, 24)

    def _on_range(self, _low: int, high: int) -> None:
        self._centre(bar_shown=high > 0)
        if self._following:
            self.verticalScrollBar().setValue(high)
        self._show_button()

    def _on_scrolled(self, value: int) -> None:
        self._following = value >= self.verticalScrollBar().maximum() - _NEAR_END
        self._show_button()

    def _show_button(self) -> None:
        self._latest.setVisible(not self._following)
        if not self._following:
            self._latest.raise_()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self._latest.size()
        self._latest.move((self.width() - size.width()) // 2, self.height() - size.height() - 12)

    def sizeHint(self) -> QSize:
        return QSize(COLUMN_WIDTH, 400)
