"""The page of an empty chat: suggested questions, or the ways to load a model while none is loaded."""

import html

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.model_titles import model_title
from qwendesk.core.paths import is_demo
from qwendesk.core.served_model import privacy_text
from qwendesk.core.translation import join_sentences, mark, tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.kit import READING_WIDTH
from qwendesk.widgets.layouts import FlowLayout, laid_out_once

# Questions that the built-in demo was trained on.
DEMO_QUESTIONS = (
    "What is VRAM spill?",
    "What can you do?",
    "Show me a table",
    "Tell me a joke",
    "What is a mixture of experts?",
    "Write a Python function",
)
_SIDE = 24
REAL_QUESTIONS = (
    mark("How does a mixture of experts work?"),
    mark("Rename my screenshots with Python"),
    mark("Plan a LAN party for eight people"),
    mark("Explain a board game's rules to me"),
)


class WelcomePage(QWidget):
    """Suggests questions that suit the loaded model. Without a model, offers the one used last and others."""

    asked = Signal(str)
    """The text of a suggestion that was clicked."""
    last_asked = Signal()
    """Asks to load the model that was used last."""
    picker_asked = Signal()
    """Asks to show the model picker."""
    offers_asked = Signal()
    """Asks to show the models that fit this PC."""
    demo_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._state = EngineState()
        self._last_model, self._has_tools = "", False
        self._shown: tuple[str, ...] | None = None
        self.setProperty("kind", "page")
        self._title = QLabel(tr("Welcome to QwenDesk"))
        self._title.setProperty("kind", "title")
        self._text = QLabel()
        self._text.setProperty("kind", "lead")
        self._text.setObjectName("welcome.text")
        self._text.setProperty("rich", True)
        self._text.setWordWrap(True)
        self._box = QWidget()
        self._grid = QGridLayout(self._box)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(10)
        self._chips: list[TextButton] = []
        self._columns = 0
        self._make_chips()
        choose = TextButton(tr("Choose a real model"), kind="link", icon_name="model", role="text_link")
        describe(choose, "welcome.choose", tr("Choose a real model"), tr("See which models fit this PC"))
        choose.clicked.connect(self.offers_asked)
        self._choose = choose
        self._ways = self._ways_to_a_model()
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
        column.addWidget(self._ways)
        column.addStretch(6)
        holder = self._holder = QWidget()
        holder.setMaximumWidth(READING_WIDTH)
        holder.setLayout(column)
        row = QHBoxLayout(self)
        row.setContentsMargins(_SIDE, 0, _SIDE, 0)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        self.show_state(self._state)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange_chips()

    def show_last_model(self, model: str) -> None:
        """Set the model that was used last, as in `LoadOptions.model`; "" if there is none."""
        self._last_model = model
        self.show_state(self._state)

    def show_tools(self, *, on: bool) -> None:
        """Set whether tools are on in this chat."""
        if on != self._has_tools:
            self._has_tools = on
            self.show_state(self._state)

    def show_state(self, state: EngineState) -> None:
        self._state = state
        with laid_out_once(self._holder):
            self._show_model()

    def _show_model(self) -> None:
        state = self._state
        model = state.requested.model if state.requested is not None else ""
        active = state.report is not None or state.is_loading
        has_real = active and not is_demo(model)
        is_unloaded = state.idle_unloaded is not None and not active
        self._choose.setVisible(not has_real and (active or is_unloaded))
        self._ways.setVisible(not active and not is_unloaded)
        self._title.setText(tr("What can I help with?") if has_real else tr("Welcome to QwenDesk"))
        if active and is_demo(model):
            self._show_text(
                tr(
                    "{0} The built-in demo model is loaded so that you can try the app right away. It is tiny and "
                    "knows only the topics below and a few more. For real answers, choose a Qwen3.5, 3.6 or 3.8 GGUF "
                    "file.",
                    privacy_text(model, has_tools=self._has_tools),
                )
            )
            self._suggest(DEMO_QUESTIONS)
        elif active:
            name = state.report.title if state.report is not None else tr("Your model")
            ready = tr("{0} is ready.", name) if state.report is not None else tr("{0} is loading.", name)
            where = privacy_text(model, has_tools=self._has_tools)
            can_see = state.report is not None and state.report.can_see
            invitation = (
                tr("{0} {1} Ask anything, or drop a picture.", ready, where)
                if can_see
                else tr("{0} {1} Ask anything.", ready, where)
            )
            notice = state.report.template.notice if state.report is not None else ""
            self._show_text(join_sentences(invitation, notice))
            self._suggest(_real_questions())
        elif is_unloaded and state.idle_unloaded is not None:
            model = state.idle_unloaded.model
            name = tr("The built-in demo") if is_demo(model) else model_title(model)
            self._show_text(
                tr("{0} is unloaded while another program needs the memory. Messages wait until it has ended.", name)
                if state.questions_held
                else tr("{0} isn't loaded at the moment. It loads again when you send a message.", name)
            )
            self._suggest(DEMO_QUESTIONS if is_demo(model) else _real_questions())
        else:
            self._show_ways()

    def _show_ways(self) -> None:
        """Show how to get a model: load the last one again if there is one, or choose one."""
        self._suggest(())
        self._load_last.setVisible(bool(self._last_model))
        if self._last_model:
            self._title.setText(tr("No model is loaded"))
            self._show_text(tr("You last used {0}. {1}", model_title(self._last_model), privacy_text(self._last_model)))
        else:
            self._show_text(tr("To begin, choose a model."))

    def _ways_to_a_model(self) -> QWidget:
        self._load_last = self._way("last", tr("Load again"), tr("Load the model that you used last"), self.last_asked)
        self._load_last.setProperty("kind", "primary")
        choose_tip, get_tip = tr("Models on this PC"), tr("See which models fit this PC")
        demo_tip = tr("Tiny and fast. It shows the app, not what a real model can do.")
        choose = self._way("pick", tr("Choose a model"), choose_tip, self.picker_asked, COMMANDS["model_menu"].shortcut)
        ways = QWidget()
        flow = FlowLayout(ways)
        for button in (
            self._load_last,
            choose,
            self._way("get", tr("Get models"), get_tip, self.offers_asked),
            self._way("demo", tr("Try the built-in demo"), demo_tip, self.demo_asked),
        ):
            flow.addWidget(button)
        return ways

    def _way(self, name: str, text: str, tip: str, asked: SignalInstance, shortcut: str = "") -> TextButton:
        button = TextButton(text)
        describe(button, f"welcome.{name}", text, tip, shortcut)
        button.clicked.connect(asked)
        return button

    def _show_text(self, text: str) -> None:
        self._text.setText(f'<p style="line-height: 140%">{html.escape(text)}</p>')

    def _make_chips(self) -> None:
        """Create all chips before the window is shown, because creating them later would delay the first answer."""
        for index in range(max(len(DEMO_QUESTIONS), len(REAL_QUESTIONS))):
            chip = TextButton(kind="suggestion")
            chip.setObjectName(f"welcome.suggestion.{index}")
            chip.clicked.connect(lambda _checked=False, chip=chip: self.asked.emit(chip.text()))
            self._chips.append(chip)
        self._arrange_chips()

    def _arrange_chips(self) -> None:
        """Use two columns, or one if the longest question doesn't fit into half the width."""
        widest = max((chip.sizeHint().width() for chip in self._chips if chip.text()), default=0)
        room = min(READING_WIDTH, self.width() - 2 * _SIDE)
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
        # Hidden during the change, because showing each chip would lay out the whole window again.
        self._box.hide()
        for index, chip in enumerate(self._chips):
            question = questions[index] if index < len(questions) else ""
            chip.setText(question)
            describe(chip, chip.objectName(), question, tr("Send this question"))
            chip.setVisible(bool(question))
        self._arrange_chips()
        self._box.setVisible(bool(questions))


def _real_questions() -> tuple[str, ...]:
    return tuple(map(tr, REAL_QUESTIONS))
