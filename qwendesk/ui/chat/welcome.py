"""The empty chat: what to try now, and how to get a real model."""

import html
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.paths import is_demo
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.labels import model_name
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

DEMO_QUESTIONS = (
    "What is VRAM spill?",
    "What can you do?",
    "Show me a table",
    "Tell me a joke",
    "What is a mixture of experts?",
    "Write a Python function",
)
"""Questions that the built-in demo was trained on."""
_WIDEST, _SIDE = 680, 24
REAL_QUESTIONS = (
    "How does a mixture of experts work?",
    "Rename my screenshots with Python",
    "Plan a LAN party for eight people",
    "Explain a board game's rules to me",
)


class Welcome(QWidget):
    """`asked` carries a suggestion's text; `model_asked` when a real model should be chosen."""

    asked = Signal(str)
    model_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._shown: tuple[str, ...] | None = None
        self.setProperty("kind", "page")
        self._title = QLabel(tr("Welcome to QwenDesk"))
        self._title.setProperty("kind", "title")
        self._text = QLabel()
        self._text.setProperty("kind", "lead")
        self._text.setObjectName("welcome.text")
        self._text.setWordWrap(True)
        self._box = QWidget()
        self._grid = QGridLayout(self._box)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(10)
        self._chips: list[TextButton] = []
        self._columns = 0
        self._make_chips()
        choose = TextButton(
            keeper, " " + tr("Choose a real model (GGUF file)…"), kind="link", icon_name="folder", role="text_link"
        )
        describe(
            choose, "welcome.choose", tr("Choose a real model"), tr("Choose a Qwen3.5 or Qwen3.6 GGUF file on this PC")
        )
        choose.clicked.connect(self.model_asked)
        self._choose = choose
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addStretch(5)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addSpacing(8)
        column.addWidget(self._box)
        column.addSpacing(4)
        column.addWidget(choose, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(6)
        holder = QWidget()
        holder.setMaximumWidth(_WIDEST)
        holder.setLayout(column)
        row = QHBoxLayout(self)
        row.setContentsMargins(_SIDE, 0, _SIDE, 0)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        self.show_state(EngineState())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange_chips()

    def show_state(self, state: EngineState) -> None:
        model = state.wanted.model if state.wanted is not None else ""
        active = state.report is not None or state.phase in (Phase.STARTING, Phase.LOADING)
        has_real = active and not is_demo(model)
        self._choose.setVisible(not has_real)
        self._title.setText(tr("What shall we do?") if has_real else tr("Welcome to QwenDesk"))
        if active and is_demo(model):
            self._say(
                tr(
                    "Everything stays on this PC. The built-in demo model is loaded so that you can try the app at "
                    "once: it is tiny and knows only the topics below and a few more. For real answers choose a real "
                    "model, a Qwen3.5 or Qwen3.6 GGUF file."
                )
            )
            self._suggest(DEMO_QUESTIONS)
        elif active:
            name = model_name(state.report) if state.report is not None else tr("Your model")
            ready = tr("{0} is ready.", name) if state.report is not None else tr("{0} is being loaded.", name)
            self._say(tr("{0} Everything stays on this PC. Ask anything, or drop a picture.", ready))
            self._suggest(REAL_QUESTIONS)
        elif state.resting is not None:
            name = tr("The built-in demo") if is_demo(model) else Path(model).stem
            self._say(tr("{0} was ejected to free memory. It loads again when you ask.", name))
            self._suggest(DEMO_QUESTIONS if is_demo(model) else REAL_QUESTIONS)
        else:
            self._say(
                tr(
                    "Everything stays on this PC. Choose a Qwen3.5 or Qwen3.6 GGUF file to begin, or the built-in demo "
                    "from the button at the top (Ctrl+L)."
                )
            )
            self._suggest(())

    def _say(self, text: str) -> None:
        self._text.setText(f'<p style="line-height: 140%">{html.escape(text)}</p>')

    def _make_chips(self) -> None:
        """All chips at once, before the window is shown: making them later would make people wait."""
        for index in range(max(len(DEMO_QUESTIONS), len(REAL_QUESTIONS))):
            chip = TextButton(self._keeper, kind="suggestion")
            chip.setObjectName(f"welcome.suggestion.{index}")
            chip.clicked.connect(lambda _checked=False, chip=chip: self.asked.emit(chip.text()))
            self._chips.append(chip)
        self._arrange_chips()

    def _arrange_chips(self) -> None:
        """In two columns, or in one where the longest question would be cut."""
        widest = max((chip.sizeHint().width() for chip in self._chips if chip.text()), default=0)
        room = min(_WIDEST, self.width() - 2 * _SIDE)
        columns = 2 if 2 * widest + self._grid.spacing() <= room else 1
        if columns == self._columns:
            return
        self._columns = columns
        for index, chip in enumerate(self._chips):
            self._grid.addWidget(chip, index // columns, index % columns)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, columns - 1)

    def _suggest(self, questions: tuple[str, ...]) -> None:
        if questions == self._shown:
            return
        self._shown = questions
        # Hidden meanwhile: each chip shown alone would lay out the whole window again.
        self._box.hide()
        for index, chip in enumerate(self._chips):
            question = questions[index] if index < len(questions) else ""
            chip.setText(question)
            describe(chip, chip.objectName(), question, tr("Ask this"))
            chip.setVisible(bool(question))
        self._arrange_chips()
        self._box.setVisible(bool(questions))
