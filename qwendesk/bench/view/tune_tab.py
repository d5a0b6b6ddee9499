"""The Auto-tune tab: one button that finds faster load options, what it tried, and what it found."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.bench.auto_tune import LONGEST_S, AutoTune, TuneState
from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.bench.bench_runs import chosen_file
from qwendesk.bench.tune_text import TuneLine, progress_text, result_sentence, tune_lines
from qwendesk.bench.view.chart import TuneChart
from qwendesk.bench.view.tab_parts import RunStatus
from qwendesk.core.model_titles import model_title
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import join_sentences, tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, horizontal_group
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import WrappingLabel

_COLUMNS = 5


class TuneTable(QFrame):
    """A card with a numbered line for each set of options. Labels are kept, so a run in progress does not flicker."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("tune.table")
        self._lines: tuple[TuneLine, ...] = ()
        self._labels: list[list[QLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(18, 10, 18, 10)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(1, 2)
        self._grid.setColumnStretch(4, 3)
        for column, text in enumerate(("", tr("Options"), tr("Prompts, tok/s"), tr("Answers, tok/s"), tr("Gain"))):
            self._grid.addWidget(_label(text, column, kind="dim"), 0, column)

    def show_lines(self, lines: Sequence[TuneLine]) -> None:
        if tuple(lines) == self._lines:
            return
        self._lines = tuple(lines)
        while len(self._labels) < len(lines):
            labels = [_label("", column) for column in range(_COLUMNS)]
            for column, label in enumerate(labels):
                self._grid.addWidget(label, len(self._labels) + 1, column)
            self._labels.append(labels)
        for index, labels in enumerate(self._labels):
            for label in labels:
                label.setVisible(index < len(lines))
            if index < len(lines):
                _fill(labels, index + 1, lines[index])


class TuneTab(QWidget):
    """Tunes the chosen model and shows what was tried and found."""

    def __init__(self, tune: AutoTune, engine: Observed[EngineState]) -> None:
        super().__init__()
        self._tune, self._tasks = tune, window_tasks()
        self.setObjectName("tune")
        self._state = TuneState()
        self._chosen: LoadOptions | None = None
        self._is_kept = False
        """Whether the user keeps their own settings instead of what was found."""
        self._run = TextButton(kind="primary")
        self._run.clicked.connect(self._on_run)
        self.corner = horizontal_group(self._run)
        self._build()
        bind(self, tune.state, self.show_state, every_ms=60)
        bind_field(self, engine, chosen_file, self.set_model)

    @property
    def state(self) -> TuneState:
        """The state that is shown."""
        return self._state

    def set_model(self, chosen: LoadOptions | None) -> None:
        """Show which model the next run tunes; None if none is chosen."""
        self._chosen = chosen
        self._show_all()

    def show_state(self, state: TuneState) -> None:
        self._is_kept = self._is_kept and not state.is_running
        self._state = state
        self._show_all()

    def _build(self) -> None:
        self._words = WrappingLabel()
        self._words.setObjectName("tune.words")
        self._words.setProperty("kind", "dim")
        self._switch = Switch()
        text = tr("Also try a smaller cache (q8_0)")
        describe(self._switch, "tune.cache", text, tr("Answers change a little, and formulas in long chats may suffer"))
        label = QLabel(text)
        label.setBuddy(self._switch)
        self._choice = horizontal_group(self._switch, label)
        self._status = RunStatus("tune")
        self._result = WrappingLabel()
        self._result.setObjectName("tune.result")
        self._result.setProperty("kind", "strong")
        self._use = TextButton(tr("Use these"), kind="primary")
        describe(self._use, "tune.use", tr("Use these"), tr("Save them as the profile “Auto-tuned” of this model"))
        self._use.clicked.connect(self._on_use)
        self._keep = TextButton(tr("Keep mine"))
        describe(self._keep, "tune.keep", tr("Keep mine"), tr("Change nothing"))
        self._keep.clicked.connect(self._on_keep)
        self._buttons = QWidget()
        row = FlowLayout(self._buttons)
        row.addWidget(self._use)
        row.addWidget(self._keep)
        title = QLabel(tr("Gain over your settings, per cent"))
        title.setProperty("kind", "heading")
        self._chart = TuneChart()
        self._chart.setAccessibleName(title.text())
        self._chart_card = QFrame()
        self._chart_card.setProperty("kind", "modelcard")
        card = QVBoxLayout(self._chart_card)
        card.setContentsMargins(18, 12, 18, 8)
        card.addWidget(title)
        card.addWidget(self._chart)
        self._table = TuneTable()
        self._tried = QWidget()
        shown = QVBoxLayout(self._tried)
        shown.setContentsMargins(0, 0, 0, 0)
        shown.setSpacing(14)
        shown.addWidget(self._chart_card)
        shown.addWidget(self._table)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(12)
        DensitySpacing(whole)
        left = Qt.AlignmentFlag.AlignLeft
        whole.addWidget(self._words)
        whole.addWidget(self._choice, 0, left)
        whole.addWidget(self._status)
        whole.addWidget(self._result)
        whole.addWidget(self._buttons)
        whole.addWidget(self._tried)
        whole.addStretch(1)

    def _on_run(self) -> None:
        if self._state.is_running:
            self._tune.stop()
        elif self._chosen is not None:
            self._tasks.start(self._tune.run(self._chosen, may_change_answers=self._switch.isChecked()))

    def _on_use(self) -> None:
        self._use.setEnabled(False)
        self._tasks.start(self._tune.use())

    def _on_keep(self) -> None:
        self._is_kept = True
        self._show_all()

    def _show_all(self) -> None:
        state = self._state
        self._words.setText(_words(state, self._chosen))
        self._choice.setEnabled(not state.is_running)
        self._show_run()
        self._show_status()
        self._show_result()
        lines = tune_lines(state)
        self._tried.setVisible(bool(lines))
        self._chart_card.setVisible(len(lines) > 1)
        self._chart.show_lines(lines)
        self._table.show_lines(lines)

    def _show_run(self) -> None:
        is_running = self._state.is_running
        self._run.setEnabled(is_running or self._chosen is not None)
        text = tr("Stop") if is_running else tr("Tune, at most 3 min")
        tip = tr("Stop and keep what was found") if is_running else tr("Find faster load options for the chosen model")
        self._run.setText(text)
        describe(self._run, "tune.run", text, tip)

    def _show_status(self) -> None:
        state = self._state
        if state.is_running:
            self._status.show_progress(progress_text(state), 1 - state.left_s / LONGEST_S)
        elif state.failure:
            self._status.show_failure(BenchFailure("", state.failure))
        else:
            self._status.show_nothing()

    def _show_result(self) -> None:
        state = self._state
        sentence = result_sentence(state)
        if state.is_saved:
            sentence = join_sentences(sentence, tr("Saved as the profile “Auto-tuned”."))
        elif self._is_kept:
            sentence = join_sentences(sentence, tr("You kept your settings."))
        self._result.setText(sentence)
        self._result.setVisible(bool(sentence))
        is_open = bool(sentence) and state.found is not None and not state.is_saved and not self._is_kept
        self._buttons.setVisible(is_open)
        self._use.setEnabled(is_open)


def _words(state: TuneState, chosen: LoadOptions | None) -> str:
    if state.is_running and state.options is not None:
        return tr(
            "Tuning {0}. Other programs, and questions in chats, would disturb it.", model_title(state.options.model)
        )
    if chosen is None:
        return tr(
            "Choose a model on this PC at the top of the window. The fastest load options for it are found here. Of a "
            "model on a server, the server decides them."
        )
    return tr(
        "Finds the load options with which {0} is fastest on this PC: threads, batches, token drafts, and where its "
        "parts are. Short runs try one option after the other. What doesn't fit into memory isn't tried, and the "
        "context stays as long as it is. The model is unloaded from the chat meanwhile.",
        model_title(chosen.model),
    )


def _fill(labels: list[QLabel], number: int, line: TuneLine) -> None:
    texts = (str(number), line.name, line.prompt, line.answer, line.remark)
    for label, text in zip(labels, texts, strict=True):
        label.setText(text)
    restyle(labels[-1], "kind", "good" if line.is_found else "dim")


def _label(text: str, column: int, kind: str = "") -> QLabel:
    """Return a label of the table; the numbers in the third and fourth column are at the right."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(column == _COLUMNS - 1)
    if column in (2, 3):
        label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    if kind:
        label.setProperty("kind", kind)
    return label
