"""The Speed tab: a run of the speed tests, its chart and table, and earlier runs."""

import html

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.bench.bench_runs import chosen_file
from qwendesk.bench.records import BenchRecord
from qwendesk.bench.services import BenchServices
from qwendesk.bench.share import options_text, share_text
from qwendesk.bench.speed_service import SpeedState
from qwendesk.bench.speeds import DEPTHS, SpeedPlan, expected_duration_s
from qwendesk.bench.table import BenchRow, reported_speed, table_lines
from qwendesk.bench.view.chart import ChartLine, DepthChart
from qwendesk.bench.view.pasted_dialog import PastedDialog
from qwendesk.bench.view.result_table import SpeedTable
from qwendesk.bench.view.tab_parts import ExportButton, RunStatus
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_date
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import tr
from qwendesk.core.units import show_duration, show_tokens
from qwendesk.engine.state import EngineState
from qwendesk.models.expected_speed import origin_text
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.layouts import DensitySpacing, horizontal_group
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import WrappingLabel
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# The depth up to which is measured unless the user chooses another.
_FIRST_DEPTH = 8192


class SpeedTab(QWidget):
    """Runs the speed tests of the chosen model and shows their results."""

    def __init__(self, services: BenchServices, engine: Observed[EngineState], navigation: Navigation) -> None:
        super().__init__()
        self._speed, self._decode_tok_s = services.speed, services.decode_tok_s
        self._catalog, self._cards_here = services.catalog, services.cards_here
        self._navigation, self._tasks = navigation, window_tasks()
        self._state = SpeedState()
        self._shown_record = 0
        self._run = TextButton(kind="primary")
        self._run.clicked.connect(self._on_run)
        self._export = ExportButton(
            "bench",
            tr("Save the chart and table as a picture, or copy them"),
            ("picture", tr("Save as picture…"), self._ask_where_to_save),
            ("text", tr("Copy as text"), self._copy),
            ("row", tr("Copy as a row to share"), lambda: self._tasks.start(self._copy_row(), owner=self)),
        )
        self._depth = ComboBox()
        describe(self._depth, "bench.depth", tr("Longest context to measure"))
        for depth in DEPTHS[1:]:
            self._depth.addItem(tr("Up to {0}", show_tokens(depth)), depth)
        self._depth.setCurrentIndex(self._depth.findData(_FIRST_DEPTH))
        self._depth.currentIndexChanged.connect(lambda _index: self._show_run())
        self.corner = horizontal_group(self._depth, self._export, self._run)
        self._build()
        app_theme().changed.connect(self._show_legend)
        bind(self, self._speed.state, self.show_state, every_ms=30)
        bind_field(self, engine, chosen_file, self._choose)

    @property
    def plan(self) -> SpeedPlan:
        """What the next run measures."""
        deepest = self._depth.currentData()
        return SpeedPlan(depths=tuple(depth for depth in DEPTHS if depth <= deepest))

    @property
    def record(self) -> BenchRecord | None:
        """The run that is shown; None while one is in progress, and before the first."""
        records = self._state.records
        if self._state.is_running or not records:
            return None
        return records[min(self._shown_record, len(records) - 1)]

    def show_state(self, state: SpeedState) -> None:
        if state.records != self._state.records or state.options != self._state.options:
            self._shown_record = 0
        self._state = state
        self._show_runs()
        self._show_run()
        self._show_all()

    def _build(self) -> None:
        self._words = WrappingLabel()
        self._words.setObjectName("bench.words")
        self._words.setProperty("kind", "dim")
        self._status = RunStatus("bench")
        self._runs = ComboBox()
        describe(self._runs, "bench.runs", tr("Earlier runs"))
        self._runs.activated.connect(self._choose_record)
        title = QLabel(tr("Tokens per second by depth"))
        title.setProperty("kind", "heading")
        self._caption = WrappingLabel()
        self._caption.setObjectName("bench.caption")
        self._caption.setProperty("kind", "small")
        self._legend = QLabel()
        self._legend.setObjectName("bench.legend")
        self._legend.setProperty("rich", True)
        self._chart = DepthChart()
        self._chart.setAccessibleName(title.text())
        self._chart_card = QFrame()
        self._chart_card.setProperty("kind", "modelcard")
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(self._legend)
        card = QVBoxLayout(self._chart_card)
        card.setContentsMargins(18, 12, 18, 8)
        card.addLayout(head)
        card.addWidget(self._caption)
        card.addWidget(self._chart)
        self._table = SpeedTable()
        self._notes = WrappingLabel()
        self._notes.setObjectName("bench.notes")
        self._notes.setProperty("kind", "small")
        self.results = QWidget()
        shown = QVBoxLayout(self.results)
        shown.setContentsMargins(0, 0, 0, 0)
        shown.setSpacing(14)
        for widget in (self._chart_card, self._table, self._notes):
            shown.addWidget(widget)
        above = QHBoxLayout()
        above.addWidget(self._words, 1000)
        above.addStretch(1)
        above.addWidget(self._runs)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(12)
        DensitySpacing(whole)
        whole.addLayout(above)
        whole.addWidget(self._status)
        whole.addLayout(self._elsewhere())
        whole.addWidget(self.results)
        whole.addStretch(1)

    def _elsewhere(self) -> QHBoxLayout:
        words = WrappingLabel(tr("Speeds that were measured elsewhere can count under For this PC, too."))
        words.setProperty("kind", "small")
        paste = TextButton(tr("Paste speeds…"))
        describe(paste, "bench.paste", tr("Paste speeds…"), tr("Add a copied row or a table of llama-bench"))
        paste.clicked.connect(self._paste)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(paste)
        row.addWidget(words, 1)
        return row

    def _choose(self, options: LoadOptions | None) -> None:
        self._tasks.start(self._speed.choose(options))

    def _copy(self) -> None:
        if self.record is not None:
            QGuiApplication.clipboard().setText(share_text(self.record, self._speed.state.value.published))

    async def _copy_row(self) -> None:
        if self.record is None:
            return
        self._status.show_progress(tr("Computing the SHA-256 of the file for the row…"), 0)
        row = await self._speed.row_of(self.record)
        self._show_status()
        QGuiApplication.clipboard().setText(row)

    def _paste(self) -> None:
        PastedDialog(self, self._catalog, self._cards_here()).open()

    def _ask_where_to_save(self) -> None:
        if self.record is not None:
            name = f"{self.record.title}.png"
            ask_where_to_save(self, "bench.save", tr("Save as picture"), name, self._save_picture)

    def _save_picture(self, path: str) -> None:
        if not self.results.grab().save(path, "PNG"):
            self._navigation.error_found.emit(
                tr("Not saved"), tr("The picture couldn't be written. Choose another folder.")
            )

    def _on_run(self) -> None:
        if self._state.is_running:
            self._speed.stop()
        else:
            self._tasks.start(self._speed.run(self.plan))

    def _choose_record(self, index: int) -> None:
        self._shown_record = index
        self._show_all()

    def _show_runs(self) -> None:
        records = self._state.records
        texts = [f"{show_date(record.at)} {record.at[11:16]}" for record in records]
        if [self._runs.itemText(index) for index in range(self._runs.count())] != texts:
            self._runs.clear()
            self._runs.addItems(texts)
        self._runs.setVisible(len(records) > 1 and not self._state.is_running)

    def _show_run(self) -> None:
        state = self._state
        self._run.setEnabled(state.options is not None)
        self._depth.setEnabled(not state.is_running)
        self._export.setEnabled(self.record is not None)
        text = tr("Stop") if state.is_running else _run_text(self._expected_s())
        tip = tr("Stop and keep what was measured") if state.is_running else tr("Measure the chosen model on this PC")
        self._run.setText(text)
        describe(self._run, "bench.run", text, tip)

    def _expected_s(self) -> float | None:
        state = self._state
        if state.options is None:
            return None
        last = state.records[0] if state.records else None
        rows, n_ctx = (last.rows, last.options.n_ctx) if last is not None else ((), 0)
        return expected_duration_s(self.plan, rows, n_ctx, self._decode_tok_s(state.options))

    def _show_all(self) -> None:
        state, record = self._state, self.record
        rows = state.rows if record is None else record.rows
        notes = state.notes if record is None else record.notes
        self._words.setText(_words(state))
        self._words.setVisible(record is None)
        self._caption.setText(_caption(record))
        self._caption.setVisible(record is not None)
        self._show_status()
        self.results.setVisible(bool(rows))
        self._notes.setText("\n".join(notes))
        self._notes.setVisible(bool(notes))
        self._table.show_results(table_lines(rows, state.published))
        self._show_chart(rows)
        self._show_legend()

    def _show_status(self) -> None:
        state, progress = self._state, self._state.progress
        if state.is_running and progress is not None and progress.n_tests:
            name = tr("Loading the model…") if progress.test == "load" else progress.test
            fraction = (state.n_done + progress.fraction) / progress.n_tests
            done = tr("{0} · {1} of {2} tests done", name, state.n_done, progress.n_tests)
            self._status.show_progress(done, fraction)
        elif state.is_running:
            self._status.show_progress(tr("Loading the model…"), 0)
        elif state.failure is not None:
            is_kept = isinstance(state.failure, BenchFailure) and state.n_done > 0
            self._status.show_failure(state.failure, tr("What was measured before is kept.") if is_kept else "")
        else:
            self._status.show_nothing()

    def _show_chart(self, rows: tuple[BenchRow, ...]) -> None:
        lines = self._lines(rows)
        depths = sorted({depth for line in lines if not line.is_dashed for depth, _ in line.points})
        reported = [line for line in lines if line.is_dashed]
        in_range = [
            ChartLine(line.name, line.role, points, is_dashed=True)
            for line in reported
            if (points := tuple(point for point in line.points if point[0] <= max(depths, default=0)))
        ]
        self._chart.show_lines((*(line for line in lines if not line.is_dashed), *in_range), depths)
        self._chart_card.setVisible(bool(depths))

    def _lines(self, rows: tuple[BenchRow, ...]) -> list[ChartLine]:
        """Return the lines of answers with drafts, of plain decoding, and of what was reported."""
        drafted = tuple((row.depth, row.median) for row in rows if row.test.startswith("text") and row.drafts != "off")
        # The same test as with drafts if it was measured, so that the lines can be compared.
        test = "text" if any(row.test.startswith("text") for row in rows) else "tg"
        plain = tuple((row.depth, row.median) for row in rows if row.test.startswith(test) and row.drafts == "off")
        published = self._state.published
        reported, pasted = (
            tuple((each.depth, reported_speed(each)) for each in published if each.is_pasted is is_pasted)
            for is_pasted in (False, True)
        )
        cards = ", ".join(dict.fromkeys(name for report in published for name in report.gpus)) or tr("CPU")
        lines = [
            ChartLine(tr("with drafts"), "accent", drafted),
            ChartLine(tr("plain"), "text_good", plain),
            ChartLine(tr("reported, {0}", cards), "text_dim", reported, is_dashed=True),
            ChartLine(tr("pasted by you, {0}", cards), "text_dim", pasted, is_dashed=True),
        ]
        return [line for line in lines if line.points]

    def _show_legend(self) -> None:
        rows = self._state.rows if self.record is None else self.record.rows
        theme, dim = current_theme(), current_theme()["text_dim"]
        parts = [
            f'<span style="color:{theme[line.role]}">{"┄" if line.is_dashed else "●"}</span> '
            f'<span style="color:{dim}">{html.escape(line.name)}</span>'
            for line in self._lines(rows)
        ]
        self._legend.setText("&nbsp;&nbsp; ".join(parts))
        sources = dict.fromkeys(origin_text(report) for report in self._state.published)
        self._legend.setToolTip("\n".join(sources))


def _run_text(seconds: float | None) -> str:
    if seconds is None:
        return tr("Run")
    if seconds < 55:
        return tr("Run, ~{0}", show_duration(max(10, round(seconds / 10) * 10)))
    return tr("Run, ~{0} min", max(1, round(seconds / 60)))


def _caption(record: BenchRecord | None) -> str:
    """Return what the chart is of, which an exported picture must say too."""
    return f"{record.title} · {record.pc} · {options_text(record)}" if record is not None else ""


def _words(state: SpeedState) -> str:
    if state.options is None:
        return tr(
            "Choose a model on this PC at the top of the window. Its speed is measured here. A model on a server can't "
            "be measured."
        )
    if state.is_running:
        return tr(
            "Measuring {0}. Other programs, and questions in chats, would disturb it.", model_title(state.options.model)
        )
    return tr(
        "Measures how fast {0} processes prompts and generates text on this PC, in short and long chats, with token "
        "drafts and without. The model is unloaded from the chat meanwhile. Close games and other programs that use "
        "the GPU.",
        model_title(state.options.model),
    )
