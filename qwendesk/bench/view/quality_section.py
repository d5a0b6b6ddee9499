"""The quality test: what to score, and the scores of several models, quants and cache types below each other."""

from collections.abc import Callable
from pathlib import PurePath

from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from qwendesk.bench.bench_runs import chosen_file
from qwendesk.bench.quality_service import QualityPlan, QualityRecord, QualityService, QualityState
from qwendesk.bench.view.result_table import TextTable
from qwendesk.bench.view.run_parts import RunStatus
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_count, show_date, show_decimal
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.core.units import show_tokens
from qwendesk.engine.state import EngineState
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.file_dialogs import ask_for_file, ask_where_to_save
from qwendesk.widgets.kit import STRETCH, button, column, label, paragraph
from qwendesk.widgets.layouts import FlowLayout, horizontal_group, widget_with
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel

_CHUNK_LENGTHS = (512, 2048, 8192)
_CHUNKS = (20, 100, 0)
_CACHES = ("auto", "f16", "q8_0", "q5_1", "q4_0")
_BASE_ENDING = ".qdbase"


class QualitySection(QWidget):
    """Scores the chosen model and shows the scores."""

    def __init__(self, quality: QualityService, engine: Observed[EngineState]) -> None:
        super().__init__()
        self._quality, self._tasks = quality, window_tasks()
        self._state = QualityState()
        self._text = self._base = self._save_base = ""
        self.note = ElidedLabel("quality.note", kind="dim")
        self._run = TextButton(kind="primary")
        self._run.clicked.connect(self._on_run)
        self.corner = horizontal_group(self._run)
        words = paragraph(
            tr(
                "Perplexity says how well a model predicts a text: lower is better, but only on the same text. To "
                "judge a quant or a cache type, save a base with the best one, then compare the others with it: the "
                "divergence (KLD) is 0 for a model that predicts exactly the same."
            ),
            "lead",
        )
        self._status = RunStatus("quality")
        self._table = TextTable(
            "quality.table",
            (tr("model"), tr("text"), tr("KV cache"), tr("perplexity"), tr("divergence (KLD)"), tr("same token")),
        )
        self.setLayout(column(words, self._make_card(), self._status, self._table, STRETCH, spacing=12))
        self._show_files()
        bind(self, quality.state, self.show_state, every_ms=60)
        bind_field(self, engine, chosen_file, quality.choose)
        self._tasks.start(quality.read())

    @property
    def plan(self) -> QualityPlan:
        """What the next run scores."""
        return QualityPlan(
            text=self._text,
            n_ctx=self._length.currentData(),
            most_chunks=self._chunks.currentData(),
            cache_type=self._cache.currentData(),
            base=self._base,
            save_base=self._save_base,
        )

    def show_state(self, state: QualityState) -> None:
        if state.saved_base and state.saved_base != self._state.saved_base:
            # A base that was just saved is what comes next: the others are compared with it.
            self._base, self._save_base = state.saved_base, ""
            self._show_files()
        self._state = state
        self.note.setText(model_title(state.options.model) if state.options is not None else "")
        text = tr("Stop") if state.is_running else tr("Score the text")
        self._run.setText(text)
        self._run.setEnabled(state.options is not None)
        tip = tr("Stop without a result") if state.is_running else tr("Score the text with the chosen model")
        describe(self._run, "quality.run", text, tip)
        self._settings.setEnabled(not state.is_running)
        if state.is_running:
            self._status.show_progress(tr("Scoring · {0}%", round(100 * state.fraction)), state.fraction)
        elif state.failure is not None:
            self._status.show_failure(state.failure)
        else:
            self._status.show_nothing()
        self._table.show_lines([_cells(record) for record in state.records])
        self._table.setVisible(bool(state.records))

    def _make_card(self) -> QWidget:
        self._settings = QFrame()
        self._settings.setProperty("kind", "modelcard")
        self._length = _combo("quality.length", tr("Chunk length"))
        for length in _CHUNK_LENGTHS:
            self._length.addItem(tr("Chunks of {0} tokens", show_tokens(length)), length)
        self._chunks = _combo("quality.chunks", tr("How much of the text"))
        for count in _CHUNKS:
            self._chunks.addItem(tr("First {0} chunks", show_count(count)) if count else tr("Whole text"), count)
        self._cache = _combo("quality.cache", tr("KV cache"))
        for kind in _CACHES:
            self._cache.addItem(tr("As the model's options say") if kind == "auto" else kind, kind)
        self._text_label, self._base_label = label(), label()
        rows = (
            (tr("Text"), (self._text_label, *self._buttons("text"))),
            (tr("Base"), (self._base_label, *self._buttons("base"))),
            (tr("Chunks"), (self._length, self._chunks)),
            (tr("KV cache"), (self._cache,)),
        )
        grid = QGridLayout(self._settings)
        grid.setContentsMargins(18, 14, 18, 14)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(10)
        grid.setColumnStretch(1, 1)
        for row, (title, widgets) in enumerate(rows):
            grid.addWidget(label(title, "dim"), row, 0)
            line = FlowLayout()
            line.setSpacing(10)
            for widget in widgets:
                line.addWidget(widget)
            grid.addWidget(widget_with(line), row, 1)
        return self._settings

    def _buttons(self, kind: str) -> list[TextButton]:
        buttons: tuple[tuple[str, str, str, Callable[[], None]], ...]
        if kind == "text":
            buttons = (
                ("text.choose", tr("Choose a text…"), tr("A UTF-8 text file of at least one chunk"), self._choose_text),
                ("text.guide", tr("Use the guide"), tr("Score QwenDesk's own guide"), self._use_guide),
            )
        else:
            buttons = (
                ("base.choose", tr("Compare with…"), tr("A base that was saved with the same text"), self._choose_base),
                ("base.save", tr("Save as base…"), tr("Save what this model predicts, to compare others"), self._save),
                ("base.none", tr("No base"), tr("Only the perplexity"), self._use_none),
            )
        made = []
        for name, text, tip, run in buttons:
            made.append(button(text, f"quality.{name}", tip=tip))
            made[-1].setProperty("compact", "true")
            made[-1].clicked.connect(run)
        return made

    def _choose_text(self) -> None:
        ask_for_file(self, "quality.text.dialog", tr("Choose a text"), [tr("All files (*)")], self._use_text)

    def _choose_base(self) -> None:
        kinds = [tr("Bases (*.qdbase)"), tr("All files (*)")]
        ask_for_file(self, "quality.base.dialog", tr("Choose a base"), kinds, self._use_base)

    def _save(self) -> None:
        options = self._state.options
        title = model_title(options.model) if options is not None else "model"
        name = f"{title.replace('/', '-').replace(':', '-')}{_BASE_ENDING}"
        ask_where_to_save(self, "quality.save.dialog", tr("Save as base"), name, self._save_to)

    def _use_text(self, path: str) -> None:
        self._text = path
        self._show_files()

    def _use_guide(self) -> None:
        self._use_text("")

    def _use_base(self, path: str) -> None:
        self._base, self._save_base = path, ""
        self._show_files()

    def _save_to(self, path: str) -> None:
        self._base, self._save_base = "", path
        self._show_files()

    def _use_none(self) -> None:
        self._base = self._save_base = ""
        self._show_files()

    def _show_files(self) -> None:
        self._text_label.setText(PurePath(self._text).name or tr("QwenDesk's guide"))
        if self._save_base:
            self._base_label.setText(tr("saved to {0}", PurePath(self._save_base).name))
        else:
            self._base_label.setText(tr("compared with {0}", PurePath(self._base).name) if self._base else tr("none"))

    def _on_run(self) -> None:
        if self._state.is_running:
            self._quality.stop()
        else:
            self._tasks.start(self._quality.run(self.plan))


def _combo(name: str, text: str) -> ComboBox:
    combo = ComboBox()
    describe(combo, name, text)
    return combo


def _cells(record: QualityRecord) -> tuple[str, ...]:
    score, options = record.score, record.model.options
    cache = options.type_k if options.type_k == options.type_v else f"{options.type_k}/{options.type_v}"
    text = f"{record.text or tr('guide')}, {score.n_chunks} × {record.n_ctx}"
    model = f"{record.model.title} · {show_date(record.model.at)}"
    perplexity = f"{show_decimal(score.perplexity, 4)} ± {show_decimal(score.error, 4)}"
    found = score.divergence
    if found is None:
        return model, text, cache, perplexity, "", ""
    return (
        model, text, cache, perplexity,
        f"{show_decimal(found.mean, 5)} ± {show_decimal(found.error, 5)}",
        tr("{0}%", show_decimal(100 * found.same_top, 2)),
    )  # fmt: skip
