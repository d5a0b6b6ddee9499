"""The Engine page: whether everything works, where the model is, and the rest folded."""

import sys

import msgspec
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.commands.outgrown import NextStep
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.observed import Observed
from qwendesk.core.plan import Comparison
from qwendesk.core.translation import tr
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.engines.self_test import SelfTest, SelfTestState, versions
from qwendesk.engines.view.engine_report import Known, diagnostics, facts, health, sections, test_lines
from qwendesk.engines.view.engines_presenter import EnginesPresenter
from qwendesk.engines.view.load_options.command_card import LoadedCommand
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.widgets.bind import bind
from qwendesk.widgets.kit import (
    GAP,
    LIST_PADDING,
    MARGIN,
    PADDING,
    PAGE_WIDTH,
    STRETCH,
    Fold,
    IconLabel,
    button,
    card,
    centred,
    column,
    label,
    paragraph,
    row,
)
from qwendesk.widgets.layouts import FlowLayout, ResponsivePairLayout, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks

# Icon and colour of the sentence that tells whether everything works.
_ICONS = {
    "good": ("done", "text_good"),
    "warn": ("warning", "text_warn"),
    "bad": ("warning", "text_bad"),
    "plain": ("info", "text_dim"),
}
# Width in pixels of the labels of a card, and least width of the title beside the buttons.
_LABELS, _LEAST_TITLE = 136, 160


class EnginePage(QScrollArea):
    """Shows what is known of the engine, and tests it. It has a list of engines if the user can choose one."""

    def __init__(
        self,
        engine: EngineService,
        planner: LoadPlanner,
        self_test: SelfTest,
        navigation: Navigation,
        *,
        engines: EnginesPresenter | None,
        snapshot: Observed[Snapshot | None],
    ) -> None:
        super().__init__()
        self._self_test, self._tasks = self_test, window_tasks()
        self._known = Known()
        self._running = False
        self._numbers: dict[str, _Rows] = {}
        self.setObjectName("engine.page")
        self.setAccessibleName(tr("Engine"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        # Page Up and Page Down work while a button has the focus. A focus ring around the whole page would not help.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._cards = column(spacing=GAP)
        """The cards of other features."""
        self._all_numbers = column(spacing=GAP)
        self._fold_numbers = Fold("engine.numbers", tr("All numbers"), widget_with(self._all_numbers))
        measure = button(
            tr("Measure this PC…"),
            "engine.measure",
            kind="link",
            tip=tr("Measure answers, memory and speed of every engine, on the Bench page"),
        )
        measure.clicked.connect(lambda: navigation.bench_section_asked.emit("pc"))
        self._folds: QVBoxLayout = column(self._fold_numbers, spacing=8)
        content = column(
            self._head(), self._health_card(), self._cards, self._folds, row(measure, STRETCH), STRETCH, spacing=GAP,
            margins=(0, 16, 0, 24),
        )  # fmt: skip
        page = QWidget()
        page.setProperty("kind", "page")
        self._content = centred(widget_with(content), PAGE_WIDTH, margin=MARGIN)
        page.setLayout(self._content)
        self.setWidget(page)
        self._show_all()
        if engines is not None:
            self.fold_engines = Fold("engine.engines", tr("Engines on this PC"), engines.list)
            self._folds.addWidget(self.fold_engines)
            bind(self, engines.engines, self._show_engines)
        bind(self, engine.observed, lambda state: self._learn(state=state, plan=planner.latest))
        bind(self, snapshot, lambda found: self._learn(snapshot=found))
        bind(self, self_test.state, self._show_test)

    def add_command(
        self,
        pending: PendingLoadService,
        options: Observed[GenerationOptions],
        next_step: Observed[NextStep | None],
        compared: Observed[tuple[Comparison, ...]],
    ) -> None:
        """Add the command of the loaded model, for other programs, and show what was measured of it.

        `options` are those of the open chat, `next_step` is what to do because the engine is outgrown.
        """
        self.command = LoadedCommand(pending, options)
        self._fold_command = Fold("engine.commands", tr("Commands for other programs"), self.command)
        self._folds.addWidget(self._fold_command)
        bind(self, pending.state, self._show_measured)
        bind(self, next_step, lambda step: self._learn(next_step=step.sentence if step is not None else ""))
        bind(self, compared, lambda rows: self._learn(compared=rows))

    def add_card(self, added: QWidget) -> None:
        """Add a card of another feature below the sentence that tells whether everything works."""
        self._cards.addWidget(added)

    def show_card(self, name: str) -> None:
        """Scroll to the card of another feature with this object name, and give it the focus."""
        found = self.findChild(QWidget, name)
        if found is not None:
            found.setFocus()
            self.ensureWidgetVisible(found)
            # A page that is shown for the first time moves again.
            QTimer.singleShot(0, found, lambda: self.ensureWidgetVisible(found))

    def show_spill(self, spills: bool) -> None:
        """Say whether part of the model is in shared memory."""
        self._learn(spills=spills)

    def show_vllm_command(self) -> None:
        """Show the command that runs the loaded model in vLLM."""
        self._fold_command.show_open(is_open=True)
        self.command.card.show_kind("vllm")
        self.ensureWidgetVisible(self.command)

    def test(self) -> None:
        """Test the engine, and show the result."""
        self._tasks.start(self._self_test.run())

    def copy_all(self) -> None:
        """Copy everything on the page to the clipboard as text."""
        text = diagnostics(self._known, versions(), platform=sys.platform)
        QGuiApplication.clipboard().setText(text)

    def _head(self) -> ResponsivePairLayout:
        tip = tr("Ask the built-in demo model about text and a picture, beside your model")
        self._test = button(tr("Test engine"), "engine.test", icon_name="resume", tip=tip)
        self._test.clicked.connect(self.test)
        tip = tr("Copy all of this, without any message text")
        self._copy = button(tr("Copy report"), "engine.copy", kind="quiet", icon_name="copy", tip=tip)
        self._copy.clicked.connect(self.copy_all)
        buttons = FlowLayout()
        buttons.addWidget(self._copy)
        buttons.addWidget(self._test)
        return ResponsivePairLayout(label(tr("Engine"), "pagetitle"), widget_with(buttons), least=_LEAST_TITLE)

    def _health_card(self) -> QFrame:
        self._icon = IconLabel()
        self._health = paragraph(kind="heading", name="engine.health", selectable=True)
        self._place = paragraph(kind="lead", name="engine.place", selectable=True)
        self._result = paragraph(name="engine.result", selectable=True)
        self._facts = _Rows("engine.facts")
        words = row(column(self._icon, STRETCH), column(self._health, self._place, spacing=2), spacing=12)
        words.setStretch(1, 1)
        return card(column(words, self._result, self._facts, spacing=12), padding=PADDING)

    def _show_engines(self, choice: EngineChoice) -> None:
        if choice.note and choice.note != self._known.engines.note:
            self.fold_engines.show_open(is_open=True)
        self._learn(engines=choice)

    def _show_measured(self, pending: PendingLoad) -> None:
        """Show the measured speed, unless it is of options that aren't loaded."""
        tok_s = pending.measured_tok_s if pending.is_loaded and not pending.needs_reload else None
        if tok_s != self._known.measured_tok_s:
            self._learn(measured_tok_s=tok_s)

    def _show_test(self, state: SelfTestState) -> None:
        if state.is_running and self._test.hasFocus():
            self._copy.setFocus()  # disabling a button moves its focus to the first control of the window
        self._running = state.is_running
        self._learn(diagnosis=state.diagnosis)

    def _learn(self, **changes: object) -> None:
        self._known = msgspec.structs.replace(self._known, **changes)
        self._show_all()

    def _show_all(self) -> None:
        self._test.setEnabled(not self._running)
        found = health(self._known)
        self._icon.show_icon(*_ICONS[found.tone])
        self._health.setText(found.title)
        self._place.setText(found.sentence)
        self._place.setVisible(bool(found.sentence))
        lines = test_lines(self._known.diagnosis, running=self._running)
        self._result.setText(lines)
        self._result.setVisible(bool(lines))
        self._facts.show_rows(facts(self._known))
        for section in sections(self._known, platform=sys.platform):
            rows = self._numbers.get(section.id)
            if rows is None:
                rows = self._numbers[section.id] = _Rows(f"engine.{section.id}")
                content = column(label(section.title, "heading"), rows)
                self._all_numbers.addWidget(card(content, padding=LIST_PADDING))
            rows.show_rows(section.rows)


class _Rows(QWidget):
    """Rows of a label and a value."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._shown: tuple[tuple[str, str], ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(PADDING)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, _LABELS)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 4)

    def show_rows(self, rows: tuple[tuple[str, str], ...]) -> None:
        if rows == self._shown:
            return
        self._shown = rows
        while len(self._rows) < len(rows):
            parts = paragraph(kind="dim"), paragraph(selectable=True)
            for place, part in enumerate(parts):
                part.setAlignment(Qt.AlignmentFlag.AlignTop)
                self._grid.addWidget(part, len(self._rows), place)
            self._rows.append(parts)
        for index, parts in enumerate(self._rows):
            for part, text in zip(parts, rows[index] if index < len(rows) else ("", ""), strict=True):
                part.setText(text)
                part.setVisible(index < len(rows))
