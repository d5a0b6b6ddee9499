"""Which is better? One prompt, and two to four columns that answer it."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.bench.bench_runs import chosen_model
from qwendesk.bench.comparison import (
    FEWEST_COLUMNS,
    MOST_COLUMNS,
    ColumnResult,
    ComparisonState,
    ModelChoice,
    PresetChoice,
    PromptComparison,
    column_letter,
    column_texts,
    comparison_markdown,
)
from qwendesk.bench.services import BenchServices
from qwendesk.bench.view.compare_column import ColumnAnswer, ColumnSetup
from qwendesk.bench.view.run_parts import ExportButton, RunStatus
from qwendesk.core.errors import BadOption
from qwendesk.core.files import write_whole
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.file_dialogs import ask_for_files, ask_where_to_save
from qwendesk.widgets.kit import STRETCH, button, column, label, paragraph, row
from qwendesk.widgets.layouts import EqualColumnsLayout, FlowLayout, horizontal_group
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks

_LEAST_WIDTH = 300
_PROMPT_HEIGHT = 84
_STOP_STAYS_MS = 1000


class CompareColumn(QFrame):
    """The card of one column: its settings, and below them its answer."""

    remove_asked = Signal()

    def __init__(self, letter: str) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName(f"compare.{letter}")
        self.remove = IconButton("close", size=16, side=28)
        describe(self.remove, f"compare.{letter}.remove", tr("Remove column {0}", letter))
        self.remove.clicked.connect(self.remove_asked)
        self.setup = ColumnSetup(letter)
        self.answer = ColumnAnswer(letter)
        self._used = paragraph(kind="small", name=f"compare.{letter}.used")
        head = row(label(letter, "heading"), STRETCH, self.remove)
        content = column(head, self.setup, self._used, self.answer, margins=(16, 10, 16, 14))
        content.setStretchFactor(self.answer, 1)
        self.setLayout(content)
        self.show_result("", None)

    def show_result(self, used: str, result: ColumnResult | None) -> None:
        """Show an answer, and with which settings it was given."""
        self._used.setVisible(bool(used))
        self._used.setText(used)
        self.answer.show_result(result)


class CompareSection(QWidget):
    """Asks for a comparison, and shows its state."""

    def __init__(self, services: BenchServices, engine: Observed[EngineState], navigation: Navigation) -> None:
        super().__init__()
        self._services, self._engine, self._navigation = services, engine, navigation
        self._tasks = window_tasks()
        self.setObjectName("compare")
        self._state = ComparisonState()
        self._choices: tuple[str, tuple[ModelChoice, ...], tuple[PresetChoice, ...]] = ("", (), ())
        self._files: tuple[str, ...] = ()
        self._columns: list[CompareColumn] = []
        self._run = TextButton(kind="primary")
        self._run.clicked.connect(self._on_run)
        self._ended = QTimer(self, singleShot=True, interval=_STOP_STAYS_MS)
        """Runs for a moment after the end, in which a late click on Stop begins nothing."""
        self._ended.timeout.connect(self._show_run)
        self._export = ExportButton(
            "compare",
            tr("Save or copy the comparison as Markdown"),
            ("save", tr("Save as Markdown…"), self._ask_where_to_save),
            ("copy", tr("Copy as Markdown"), lambda: QGuiApplication.clipboard().setText(self._markdown())),
        )
        self.corner = horizontal_group(self._export, self._run)
        self._build()
        for _ in range(FEWEST_COLUMNS):
            self._add_column()
        bind(self, services.compare.state, self.show_state, every_ms=60)
        bind_field(self, engine, chosen_model, lambda _chosen: self._update_choices())

    @property
    def state(self) -> ComparisonState:
        """The state that is shown."""
        return self._state

    def _update_choices(self) -> None:
        """Offer the models and presets that there are now, and the model at the top of the window first."""
        chosen, services = chosen_model(self._engine.value), self._services
        self._choices = (chosen.model if chosen is not None else "", services.models(), services.presets())
        for each in self._columns:
            each.setup.set_choices(*self._choices)
        self._show_run()

    def show_state(self, state: ComparisonState) -> None:
        if self._state.is_running and not state.is_running:
            self._ended.start()
        self._state = state
        comparison = state.comparison
        for index, each in enumerate(self._columns):
            if comparison is None or index >= len(state.results):
                each.show_result("", None)
            else:
                used = " · ".join(column_texts(comparison.columns[index]))
                each.show_result(used, state.results[index])
        self._show_trouble(state.failure)
        self._show_run()

    def _build(self) -> None:
        words = paragraph(
            tr("One question, two to four answers. Two models take turns, so they never share memory."), "lead",
            name="compare.words",
        )  # fmt: skip
        self._prompt = QPlainTextEdit()
        self._prompt.setProperty("kind", "prompt")
        self._prompt.setFixedHeight(_PROMPT_HEIGHT)
        self._prompt.setTabChangesFocus(True)
        self._prompt.setPlaceholderText(tr("The prompt for all columns"))
        describe(self._prompt, "compare.prompt", tr("Prompt"), tr("Every column answers this prompt"))
        self._prompt.textChanged.connect(self._show_run)
        self._status = RunStatus("compare")
        tip = tr("Pictures and documents for every column")
        self._add_files = button(tr("Add files…"), "compare.files", icon_name="attach", tip=tip)
        self._add_files.clicked.connect(self._ask_for_files)
        tip = tr("Add a column with the settings of the last one")
        self._more = button(tr("Add column"), "compare.more", icon_name="new", tip=tip)
        self._more.clicked.connect(self._on_more)
        self._file_row = FlowLayout()
        self._file_row.addWidget(self._add_files)
        self._file_row.addWidget(self._more)
        self._chips: list[TextButton] = []
        self._grid = EqualColumnsLayout(least=_LEAST_WIDTH)
        self.setLayout(column(words, self._prompt, self._file_row, self._status, self._grid, STRETCH, spacing=12))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._update_choices()

    def _markdown(self) -> str:
        return comparison_markdown(self._services.compare.state.value)

    def _ask_where_to_save(self) -> None:
        ask_where_to_save(self, "compare.save", tr("Save as Markdown"), "comparison.md", self._save)

    def _save(self, path: str) -> None:
        try:
            write_whole(Path(path), self._markdown().encode())
        except OSError as error:
            self._navigation.error_found.emit(
                tr("Not saved"), tr("{0} couldn't be written: {1}.", path, error.strerror or error)
            )

    def _on_run(self) -> None:
        if self._state.is_running:
            self._services.compare.stop()
        elif not self._ended.isActive():
            self._begin()

    def _begin(self) -> None:
        try:
            columns = tuple(each.setup.column() for each in self._columns)
        except BadOption as error:
            self._show_trouble(error.sentence)
            return
        prompt = self._prompt.toPlainText()
        comparison = PromptComparison(prompt=prompt, files=self._files, columns=columns)
        self._tasks.start(self._services.compare.run(comparison))

    def _on_more(self) -> None:
        self._add_column()
        self._columns[-1].setup.copy_from(self._columns[-2].setup)
        self.show_state(self._state)

    def _add_column(self) -> None:
        added = CompareColumn(column_letter(len(self._columns)))
        added.setup.set_choices(*self._choices)
        added.setup.changed.connect(self._show_run)
        added.remove_asked.connect(lambda: self._remove(added))
        self._columns.append(added)
        self._grid.addWidget(added)
        self._show_run()

    def _remove(self, removed: CompareColumn) -> None:
        """Remove a column. Those after it move up, so that letters stay in order."""
        at = self._columns.index(removed)
        for left, right in zip(self._columns[at:], self._columns[at + 1 :], strict=False):
            left.setup.copy_from(right.setup)
        last = self._columns.pop()
        self._grid.removeWidget(last)
        last.hide()
        last.deleteLater()
        self.show_state(ComparisonState())  # its answers belong to other columns now

    def _ask_for_files(self) -> None:
        filters = [tr("All files (*)")]
        ask_for_files(self, "compare.files.dialog", tr("Files for every column"), filters, self._take_files)

    def _take_files(self, files: Sequence[str]) -> None:
        self._files = tuple(dict.fromkeys((*self._files, *files)))
        self._show_files()

    def _drop_file(self, file: str) -> None:
        self._files = tuple(each for each in self._files if each != file)
        self._show_files()

    def _show_files(self) -> None:
        for chip in self._chips:
            self._file_row.removeWidget(chip)
            chip.deleteLater()
        self._chips = []
        for number, file in enumerate(self._files):
            name = PurePath(file).name
            chip = TextButton(name.replace("&", "&&"), kind="document", icon_name="close")
            describe(chip, f"compare.file.{number}", tr("Remove {0}", name))
            chip.clicked.connect(lambda _checked=False, file=file: self._drop_file(file))
            self._chips.append(chip)
            self._file_row.addWidget(chip)

    def _show_trouble(self, sentence: str) -> None:
        if sentence:
            self._status.show_failure(BenchFailure("", sentence))
        else:
            self._status.show_nothing()

    def _show_run(self) -> None:
        is_running = self._state.is_running
        has_models = all(each.setup.model for each in self._columns)
        self._run.setEnabled(is_running or (has_models and bool(self._prompt.toPlainText().strip())))
        is_stop = is_running or self._ended.isActive()
        text = tr("Stop") if is_stop else tr("Compare")
        tip = tr("Stop and keep the answers so far") if is_stop else tr("Answer the prompt with every column")
        self._run.setText(text)
        describe(self._run, "compare.run", text, tip)
        self._export.setEnabled(bool(self._state.results) and not is_running)
        self._more.setEnabled(not is_running and len(self._columns) < MOST_COLUMNS)
        for each in self._columns:
            each.setup.setEnabled(not is_running)
            each.remove.setVisible(len(self._columns) > FEWEST_COLUMNS)
            each.remove.setEnabled(not is_running)
