"""A sheet above the meter bar that shows what fills the context, with buttons to send less."""

from PySide6.QtCore import QPoint, Qt, Signal, SignalInstance
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.chat.context_fill import ContextFill, ContextGauge
from qwendesk.chat.service import ChatService
from qwendesk.core.failures import EngineExit
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import RequestFailed
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.popups import Popover
from qwendesk.widgets.tasks import window_tasks


class ContextSheet(Popover):
    """The sheet. It shows the count of the gauge in the meter bar, and each later one."""

    prompt_asked = Signal()
    """The user wants to edit the system prompt."""
    length_asked = Signal()
    """The user wants to change the context length of the model."""

    def __init__(self, gauge: ContextGauge, chat: ChatService, parent: QWidget) -> None:
        super().__init__(parent)
        self._gauge, self._chat, self._tasks = gauge, chat, window_tasks()
        self.setObjectName("context.sheet")
        self.setAccessibleName(tr("What fills the context"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(10)
        heading = QLabel(tr("What fills the context"))
        heading.setProperty("kind", "heading")
        self._total = QLabel(tr("Counting…"))
        self._total.setObjectName("context.total")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(24)
        self._numbers: dict[str, QLabel] = {}
        for row, (key, text) in enumerate(
            (
                ("system", tr("System prompt")),
                ("tools", tr("Tools")),
                ("history", tr("Questions and answers")),
                ("pictures", tr("Pictures and clips")),
                ("documents", tr("Documents")),
                ("reasoning", tr("Earlier thinking")),
                ("free", tr("Free")),
            )
        ):
            number = self._numbers[key] = QLabel("–")
            number.setObjectName(f"context.{key}")
            number.setProperty("kind", "number")
            self._grid.addWidget(QLabel(text), row, 0)
            self._grid.addWidget(number, row, 1, Qt.AlignmentFlag.AlignRight)
        for widget in (heading, self._total):
            column.addWidget(widget)
        column.addLayout(self._grid)
        self._turns = self._trim_button("turns", self._toggle_turns)
        self._pictures = self._trim_button("oldpictures", self._toggle_pictures)
        self._documents = self._trim_button("olddocuments", self._toggle_documents)
        self._thinking = self._trim_button("oldthoughts", self._toggle_thinking)
        prompt = TextButton(tr("System prompt and JSON schema…"), kind="link")
        describe(
            prompt,
            "context.prompt",
            tr("System prompt and JSON schema…"),
            tr("Instructions for the model in this chat"),
        )
        prompt.clicked.connect(lambda: self._leave_for(self.prompt_asked))
        length = TextButton(tr("Change the context length…"), kind="link")
        describe(
            length,
            "context.length",
            tr("Change the context length"),
            tr("Reload the model with another context length"),
        )
        length.clicked.connect(lambda: self._leave_for(self.length_asked))
        note = QLabel(tr("This only changes what is sent. Nothing is deleted."))
        note.setProperty("kind", "small")
        for each in (self._turns, self._pictures, self._documents, self._thinking, note, prompt, length):
            column.addWidget(each)
        bind(self, gauge.counted, self._show_count)
        bind_field(self, chat.state, lambda state: state.settings, lambda _settings: self._show_trims())
        if gauge.counted.value is None:
            self._tasks.start(gauge.measure(), self)

    def show_above(self, anchor: QWidget) -> None:
        self.adjustSize()
        corner = anchor.mapToGlobal(QPoint(anchor.width(), 0))
        self.move(corner.x() - self.width(), corner.y() - self.height() - 8)
        self.show()
        self.focusNextPrevChild(True)

    def _trim_button(self, name: str, clicked: object) -> TextButton:
        button = TextButton()
        button.setObjectName(f"context.{name}")
        button.clicked.connect(clicked)
        return button

    def _show_count(self, count: ContextFill | RequestFailed | EngineExit | None) -> None:
        if isinstance(count, RequestFailed | EngineExit):
            self._total.setText(count.sentence)
        elif count is not None:
            percent = round(100 * count.total / count.n_ctx) if count.n_ctx else 0
            total, n_ctx = show_count(count.total), show_count(count.n_ctx)
            self._total.setText(tr("{0} of {1} tokens, {2}%", total, n_ctx, percent))
            for key, label in self._numbers.items():
                label.setText(show_count(getattr(count, key)))
        self._show_trims()

    def _show_trims(self) -> None:
        settings = self._chat.settings
        n_turns = len(self._chat.conversation.turns)
        texts = (
            (
                self._turns,
                tr("Send all turns again") if settings.left_out_turns else tr("Skip the older half of the chat"),
                tr("Applies to what is sent with your next message"),
            ),
            (
                self._pictures,
                tr("Send older pictures again") if settings.leave_out_old_pictures else tr("Skip older pictures"),
                tr("The model is only told that there was a picture"),
            ),
            (
                self._documents,
                tr("Send older documents again") if settings.leave_out_old_documents else tr("Skip older documents"),
                tr("The model is only told their names"),
            ),
            (
                self._thinking,
                tr("Send earlier thinking again")
                if settings.leave_out_reasoning
                else tr("Don't send earlier thinking"),
                tr("Only some models reuse their earlier thinking"),
            ),
        )
        for button, text, tip in texts:
            button.setText(text)
            describe(button, button.objectName(), text, tip)
        questions = [turn.question for turn in self._chat.conversation.turns]
        self._turns.setEnabled(n_turns > 0 or settings.left_out_turns > 0)
        self._pictures.setEnabled(settings.leave_out_old_pictures or any(each.images for each in questions))
        self._documents.setEnabled(settings.leave_out_old_documents or any(each.documents for each in questions))
        count = self._gauge.counted.value
        sends_thinking = not isinstance(count, ContextFill) or count.reasoning > 0
        self._thinking.setEnabled(settings.leave_out_reasoning or sends_thinking)

    def _toggle_turns(self) -> None:
        if self._chat.settings.left_out_turns:
            self._gauge.leave_out_turns(0)
        else:
            self._gauge.leave_out_older_half()

    def _toggle_pictures(self) -> None:
        self._gauge.leave_out_old_pictures(leave_out=not self._chat.settings.leave_out_old_pictures)

    def _toggle_documents(self) -> None:
        self._gauge.leave_out_old_documents(leave_out=not self._chat.settings.leave_out_old_documents)

    def _toggle_thinking(self) -> None:
        self._gauge.leave_out_reasoning(leave_out=not self._chat.settings.leave_out_reasoning)

    def _leave_for(self, asked: SignalInstance) -> None:
        self.close()
        asked.emit()
