"""What fills the context, in a small sheet above the meter bar, with what can be left out by one click."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.failures import EngineDeath
from qwendesk.engine.protocol import RequestFailed
from qwendesk.services.chat.context_fill import ContextFill, ContextGauge
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr, tr_n
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class ContextSheet(QFrame):
    """Counts when it opens and after each change. `prompt_asked` opens the system prompt."""

    prompt_asked = Signal()

    def __init__(
        self, keeper: ThemeKeeper, gauge: ContextGauge, chat: ChatBridge, tasks: Tasks, parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._gauge, self._chat, self._tasks = gauge, chat, tasks
        self._fill: ContextFill | None = None
        self.setProperty("kind", "popover")
        self.setObjectName("context.sheet")
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
                ("history", tr("Questions and answers")),
                ("pictures", tr("Pictures")),
                ("documents", tr("Documents")),
                ("thoughts", tr("Earlier thoughts")),
                ("free", tr("Free for question and answer")),
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
        self._turns = self._trim(keeper, "turns", self._toggle_turns)
        self._pictures = self._trim(keeper, "oldpictures", self._toggle_pictures)
        self._documents = self._trim(keeper, "olddocuments", self._toggle_documents)
        self._thoughts = self._trim(keeper, "oldthoughts", self._toggle_thoughts)
        prompt = TextButton(keeper, tr("System prompt and JSON schema…"), kind="link")
        describe(prompt, "context.prompt", tr("System prompt and JSON schema…"), tr("What this chat is told first"))
        prompt.clicked.connect(self._ask_prompt)
        for button in (self._turns, self._pictures, self._documents, self._thoughts, prompt):
            column.addWidget(button)
        note = QLabel(tr("Left out is only what is sent: the chat keeps everything."))
        note.setProperty("kind", "small")
        column.addWidget(note)
        self._show_trims()
        self._count()

    def show_above(self, anchor: QWidget) -> None:
        self.adjustSize()
        corner = anchor.mapToGlobal(QPoint(anchor.width(), 0))
        self.move(corner.x() - self.width(), corner.y() - self.height() - 8)
        self.show()
        self._turns.setFocus()

    def _trim(self, keeper: ThemeKeeper, name: str, clicked: object) -> TextButton:
        button = TextButton(keeper)
        button.setObjectName(f"context.{name}")
        button.clicked.connect(clicked)
        return button

    def _count(self) -> None:
        self._tasks.start(self._measure(), self)

    async def _measure(self) -> None:
        fill = await self._gauge.measure()
        if isinstance(fill, RequestFailed | EngineDeath):
            self._total.setText(fill.sentence)
            return
        self._fill = fill
        percent = round(100 * fill.total / fill.n_ctx) if fill.n_ctx else 0
        self._total.setText(tr("{0} of {1} tokens, {2}%", f"{fill.total:,}", f"{fill.n_ctx:,}", percent))
        for key, label in self._numbers.items():
            label.setText(f"{getattr(fill, key):,}")
        self._show_trims()

    def _show_trims(self) -> None:
        settings = self._chat.settings
        n_turns = len(self._chat.conversation.turns)
        half = (n_turns + 1) // 2
        texts = (
            (
                self._turns,
                tr("Send all turns again")
                if settings.left_out_turns
                else tr_n("Leave out the older half: turn {0}", "Leave out the older half: turns 1 to {0}", half),
                tr("Whether the older half of this chat is sent with the next question"),
            ),
            (
                self._pictures,
                tr("Send older pictures again")
                if settings.leave_out_old_pictures
                else tr("Leave out pictures of older turns"),
                tr("In their place the model reads that a picture was there"),
            ),
            (
                self._documents,
                tr("Send older documents again")
                if settings.leave_out_old_documents
                else tr("Leave out documents of older turns"),
                tr("In their place the model reads their names"),
            ),
            (
                self._thoughts,
                tr("Keep earlier thoughts again")
                if settings.leave_out_thoughts
                else tr("Do not keep earlier thoughts"),
                tr("Only some models send them again at all"),
            ),
        )
        for button, text, tip in texts:
            button.setText(text)
            describe(button, button.objectName(), text, tip)
        questions = [turn.question for turn in self._chat.conversation.turns]
        self._turns.setEnabled(n_turns > 0 or settings.left_out_turns > 0)
        self._pictures.setEnabled(settings.leave_out_old_pictures or any(each.images for each in questions))
        self._documents.setEnabled(settings.leave_out_old_documents or any(each.documents for each in questions))
        sends_thoughts = self._fill is None or self._fill.thoughts > 0
        self._thoughts.setEnabled(settings.leave_out_thoughts or sends_thoughts)

    def _toggle_turns(self) -> None:
        n_turns = len(self._chat.conversation.turns)
        self._gauge.leave_out_turns(0 if self._chat.settings.left_out_turns else (n_turns + 1) // 2)
        self._count()

    def _toggle_pictures(self) -> None:
        self._gauge.leave_out_old_pictures(leave_out=not self._chat.settings.leave_out_old_pictures)
        self._count()

    def _toggle_documents(self) -> None:
        self._gauge.leave_out_old_documents(leave_out=not self._chat.settings.leave_out_old_documents)
        self._count()

    def _toggle_thoughts(self) -> None:
        self._gauge.leave_out_thoughts(leave_out=not self._chat.settings.leave_out_thoughts)
        self._count()

    def _ask_prompt(self) -> None:
        self.close()
        self.prompt_asked.emit()
