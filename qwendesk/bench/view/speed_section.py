"""How fast is it? Runs the speed tests, and shows a run in sentences, with its chart and table in the details."""

import html
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.bench.records import BenchRecord
from qwendesk.bench.services import BenchServices
from qwendesk.bench.share import options_text, share_text
from qwendesk.bench.speed_service import SpeedState
from qwendesk.bench.speed_text import (
    SpeedLine,
    answer_tok_s,
    doing_text,
    expected_run_text,
    headline,
    speed_lines,
    verdict,
)
from qwendesk.bench.speeds import DEPTHS, SpeedPlan
from qwendesk.bench.table import BenchRow, reported_speed, table_lines
from qwendesk.bench.view.chart import ChartLine, DepthChart
from qwendesk.bench.view.result_table import SpeedTable
from qwendesk.bench.view.run_parts import BusyCard, ComparedBars, ExportButton, FindingList, RunStatus
from qwendesk.core.everyday_units import READING_TOK_S, rate_text
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_date
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.core.units import show_duration, show_tokens
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.models.expected_speed import origin_text
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.kit import (
    GAP,
    LIST_PADDING,
    PADDING,
    STRETCH,
    Fold,
    IconLabel,
    button,
    card,
    column,
    label,
    paragraph,
    row,
)
from qwendesk.widgets.layouts import EqualColumnsLayout, ResponsivePairLayout, horizontal_group, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# The depth up to which is measured unless the user chooses another.
FIRST_DEPTH: Final = 8192
# Least width in pixels of the chart and of the table beside each other, and of a sentence beside a button.
_LEAST_DETAILS, _LEAST_SENTENCE = 430, 260


def plan_up_to(depth: int) -> SpeedPlan:
    """Return what is measured up to this depth, in tokens."""
    return SpeedPlan(depths=tuple(each for each in DEPTHS if each <= depth))


class SpeedSection(QWidget):
    """Runs the speed tests of the chosen model and shows their results."""

    tune_asked = Signal()

    def __init__(self, services: BenchServices, navigation: Navigation) -> None:
        super().__init__()
        self._services, self._speed = services, services.speed
        self._navigation, self._tasks = navigation, window_tasks()
        self._state = SpeedState()
        self._picked: BenchRecord | None = None
        """An earlier run that is shown instead of the latest of the chosen model."""
        self.note = ElidedLabel("bench.note", kind="dim")
        self._run = TextButton()
        self._run.clicked.connect(self.begin)
        self._export = ExportButton(
            "bench",
            tr("Save the chart and table as a picture, or copy them"),
            ("picture", tr("Save as picture…"), self._ask_where_to_save),
            ("text", tr("Copy as text"), self._copy),
            ("row", tr("Copy as a row to share"), lambda: self._tasks.start(self._copy_row(), owner=self)),
        )
        self.corner = horizontal_group(self._export, self._run)
        self._words = paragraph(kind="lead", name="bench.words")
        self._status = RunStatus("bench")
        self._busy = BusyCard("bench", tr("Stop and keep these"))
        self._busy.stop_asked.connect(self._speed.stop)
        self._busy.ended.connect(self._show_all)
        self._result = widget_with(
            column(self._sentences(), self._make_verdict(), self._details(), self._method(), spacing=GAP)
        )
        self.setLayout(column(self._words, self._status, self._busy, self._result, STRETCH, spacing=GAP))
        app_theme().changed.connect(self._show_legend)
        bind(self, self._speed.state, self.show_state, every_ms=30)

    @property
    def plan(self) -> SpeedPlan:
        """What the next run measures."""
        return plan_up_to(self._depth.currentData())

    @property
    def record(self) -> BenchRecord | None:
        """The run that is shown; None while one is in progress, and before the first."""
        if self._state.is_running:
            return None
        return self._picked or next(iter(self._state.own_records), None)

    def begin(self) -> None:
        """Measure the chosen model."""
        self._picked = None
        self._tasks.start(self._speed.run(self.plan))

    def show_record(self, record: BenchRecord) -> None:
        """Show an earlier run."""
        self._picked = record
        self._show_all()

    def show_state(self, state: SpeedState) -> None:
        if state.records[:1] != self._state.records[:1] or state.options != self._state.options:
            self._picked = None
        self._state = state
        has_begun = state.is_running and not self._busy.is_wanted
        self._busy.show_running(is_running=state.is_running)
        self._show_all()
        if has_begun and self.isVisible():
            self._busy.focus_stop()

    def _sentences(self) -> QFrame:
        self._headline = paragraph(kind="result", name="bench.headline", selectable=True)
        self._bars = ComparedBars("bench")
        self._findings = FindingList("bench.finding")
        return card(column(self._headline, self._bars, self._findings, spacing=12), "hero", name="bench.result")

    def _make_verdict(self) -> QFrame:
        self._verdict_icon = IconLabel()
        self._verdict_text = paragraph(kind="body", name="bench.verdict", selectable=True)
        faster = button(tr("Make it faster…"), "bench.faster", icon_name="speed")
        faster.clicked.connect(self.tune_asked)
        words = row(self._verdict_icon, self._verdict_text, spacing=16)
        words.setStretch(1, 1)
        line = ResponsivePairLayout(widget_with(words), faster, least=_LEAST_SENTENCE, spacing=16)
        return card(column(line), padding=LIST_PADDING)

    def _details(self) -> Fold:
        title = label(tr("Tokens per second by depth"), "heading")
        self._caption = paragraph(kind="small", name="bench.caption")
        self._legend = QLabel()
        self._legend.setObjectName("bench.legend")
        self._legend.setProperty("rich", True)
        self._chart = DepthChart()
        self._chart.setAccessibleName(title.text())
        self._chart_card = card(column(title, self._legend, self._chart, STRETCH), padding=LIST_PADDING)
        self._table = SpeedTable()
        beside = EqualColumnsLayout(least=_LEAST_DETAILS, spacing=GAP)
        beside.addWidget(self._chart_card)
        beside.addWidget(widget_with(column(self._table, STRETCH)))
        self._picture = widget_with(column(self._caption, beside))
        self._fold = Fold("bench.details", tr("Details: tokens per second by chat length, table"), self._picture)
        return self._fold

    def _method(self) -> Fold:
        self._notes = paragraph(kind="small", name="bench.notes", selectable=True)
        self._depth = ComboBox()
        describe(self._depth, "bench.depth", tr("Longest context to measure"))
        for depth in DEPTHS[1:]:
            self._depth.addItem(tr("Up to {0}", show_tokens(depth)), depth)
        self._depth.setCurrentIndex(self._depth.findData(FIRST_DEPTH))
        self._depth.currentIndexChanged.connect(lambda _index: self._show_run())
        depths = row(label(tr("Longest context to measure")), self._depth, STRETCH, spacing=12)
        content = column(self._notes, depths, spacing=12, margins=(PADDING // 2, 0, 0, 0))
        return Fold("bench.method", tr("How it was measured"), widget_with(content))

    def _copy(self) -> None:
        if self.record is not None:
            QGuiApplication.clipboard().setText(share_text(self.record, self._published))

    async def _copy_row(self) -> None:
        if self.record is None:
            return
        self._status.show_progress(tr("Computing the SHA-256 of the file for the row…"), 0)
        row_text = await self._speed.row_of(self.record)
        self._show_all()
        QGuiApplication.clipboard().setText(row_text)

    def _ask_where_to_save(self) -> None:
        if self.record is not None:
            self._fold.show_open(is_open=True)
            name = f"{self.record.title}.png"
            ask_where_to_save(self, "bench.save", tr("Save as picture"), name, self._save_picture, kind="pictures")

    def _save_picture(self, path: str) -> None:
        width = self._picture.width()
        self._picture.resize(width, self._picture.heightForWidth(width))
        if not self._picture.grab().save(path, "PNG"):
            self._navigation.error_found.emit(
                tr("Not saved"), tr("The picture couldn't be written. Choose another folder.")
            )

    def _show_run(self) -> None:
        text = tr("Measure again") if self.record is not None else tr("Measure")
        expected = expected_run_text(self._services.expected_run_s(self.plan))
        self._run.setText(text)
        self._run.setEnabled(self._state.options is not None)
        tip = tr("Measure the chosen model on this PC")
        describe(self._run, "bench.run", text, join_sentences(f"{tip}.", expected) if expected else tip)
        restyle(self._run, "kind", "" if self.record is not None else "primary")

    def _show_all(self) -> None:
        state, record = self._state, self.record
        is_busy = self._busy.is_wanted
        self._show_run()
        self._run.setVisible(not is_busy)
        self._export.setVisible(not is_busy)
        self._export.setEnabled(record is not None)
        if not is_busy and self._busy.has_focus:
            self._run.setFocus()
        self._busy.setVisible(is_busy)
        if state.is_running:
            self._show_progress()
        self._show_status()
        self._words.setText(_words(state))
        self._words.setVisible(record is None and not is_busy)
        self._result.setVisible(record is not None and not is_busy)
        self.note.setText(_note(state, record))
        if record is not None:
            self._show_record(record)

    @property
    def _published(self) -> tuple[SpeedReport, ...]:
        """What others reported of the model of the shown run."""
        record, state = self.record, self._state
        return state.published if record is None or self._is_own(record) else ()

    @property
    def _asked(self) -> str:
        """The load option `speculative` of the shown run's model."""
        options = self._state.options
        is_chosen = self.record is None or self._is_own(self.record)
        return options.speculative if options is not None and is_chosen else "auto"

    def _show_progress(self) -> None:
        state, progress = self._state, self._state.progress
        fraction, lines = 0.0, list(speed_lines(state.rows, self._asked))
        if tok_s := answer_tok_s(state.rows, asked=self._asked):
            lines.insert(0, SpeedLine("done", headline(tok_s)))
        if progress is not None:
            lines.append(SpeedLine("clock", doing_text(progress.test), tr("measuring…")))
            if progress.n_tests:
                fraction = (state.n_done + progress.fraction) / progress.n_tests
        expected = self._services.expected_run_s(self.plan)
        left_s = 10 * max(1, round((expected or 0.0) * (1 - fraction) / 10))
        left = tr("About {0} left.", show_duration(left_s)) if expected else ""
        self._busy.show_progress(join_sentences(tr("Measuring."), left), fraction, lines)

    def _show_status(self) -> None:
        state = self._state
        if state.failure is not None and not state.is_running:
            is_kept = isinstance(state.failure, BenchFailure) and state.n_done > 0
            self._status.show_failure(state.failure, tr("What was measured before is kept.") if is_kept else "")
        else:
            self._status.show_nothing()

    def _show_record(self, record: BenchRecord) -> None:
        tok_s = answer_tok_s(record.rows, asked=self._asked)
        self._headline.setText(headline(tok_s) if tok_s else tr("Measured in part."))
        self._bars.setVisible(bool(tok_s))
        self._bars.show_pairs(
            (tr("You read"), READING_TOK_S, rate_text(READING_TOK_S)), (tr("This PC"), tok_s, rate_text(tok_s))
        )
        self._findings.show_lines(speed_lines(record.rows, self._asked))
        self._show_verdict(record, tok_s)
        self._caption.setText(f"{record.title} · {record.pc} · {options_text(record)}")
        self._notes.setText("\n".join((_method_text(record), *record.notes)))
        self._table.show_results(table_lines(record.rows, self._published))
        self._show_chart(record.rows)
        self._show_legend()

    def _show_verdict(self, record: BenchRecord, tok_s: float) -> None:
        options = self._state.options
        estimate = self._services.estimated_tok_s(options) if options is not None and self._is_own(record) else None
        found = verdict(tok_s, self._published, record.cards, estimate) if tok_s else None
        self._verdict_icon.show_icon(*(("warning", "text_warn") if found and found.is_slow else ("done", "text_good")))
        self._verdict_icon.setVisible(found is not None)
        self._verdict_text.setText(
            join_sentences(found.title, found.sentence)
            if found is not None
            else tr("Nothing is known to compare it with.")
        )

    def _is_own(self, record: BenchRecord) -> bool:
        return record in self._state.own_records

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
        published = self._published
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
        rows = self.record.rows if self.record is not None else ()
        theme, dim = current_theme(), current_theme()["text_dim"]
        parts = [
            f'<span style="color:{theme[line.role]}">{"┄" if line.is_dashed else "●"}</span> '
            f'<span style="color:{dim}">{html.escape(line.name)}</span>'
            for line in self._lines(rows)
        ]
        self._legend.setText("&nbsp;&nbsp; ".join(parts))
        sources = dict.fromkeys(origin_text(report) for report in self._published)
        self._legend.setToolTip("\n".join(sources))


def _method_text(record: BenchRecord) -> str:
    """Return when and how a run was measured, in llama.cpp's words."""
    when = tr("{0}, {1}", show_date(record.at), record.at[11:16])
    repeats = max((len(row.values) for row in record.rows), default=0)
    runs = tr_n("{0} run of each test", "{0} runs of each test", repeats)
    return " · ".join((when, record.pc, runs, options_text(record), f"llama-cpp-python {record.engine}"))


def _note(state: SpeedState, record: BenchRecord | None) -> str:
    if record is not None:
        return tr("{0} on {1}", record.title, record.pc)
    return model_title(state.options.model) if state.options is not None else ""


def _words(state: SpeedState) -> str:
    if state.options is None:
        return tr(
            "Choose a model on this PC at the top of the window. Its speed is measured here. A model on a server can't "
            "be measured."
        )
    return tr(
        "Measures how fast {0} reads and answers on this PC, in short and long chats. The model is unloaded from the "
        "chat meanwhile. Close games and other programs that use the GPU.",
        model_title(state.options.model),
    )
