"""The Engine page: the running engine, devices and drivers, a test, and diagnostics to copy."""

import sys
from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.plan import Comparison, Plan
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.self_test import Diagnosis
from qwendesk.engines.view import engine_text
from qwendesk.engines.view.engine_text import EnginePageSection, Known
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_WIDEST = 760
"""Maximum width of the content, the same as on the settings page."""


class EnginePage(QScrollArea):
    """Shows values and asks for tests. `versions` returns the versions of the libraries for copied diagnostics."""

    test_asked = Signal()
    measure_asked = Signal()

    def __init__(self, versions: Callable[[], dict[str, str]]) -> None:
        super().__init__()
        self._versions = versions
        self._known = Known()
        self._running = False
        self._n_others = 0
        self.setObjectName("engine.page")
        self.setAccessibleName(tr("Engine"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        # Page Up and Page Down work while a button has the focus. A focus ring around the whole page would not help.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._test = TextButton(tr("Test engine"), kind="primary")
        describe(
            self._test, "engine.test", tr("Test engine"), tr("Ask the built-in demo model about text and a picture")
        )
        self._test.clicked.connect(self.test_asked)
        self._copy = TextButton(" " + tr("Copy diagnostics"), icon_name="copy")
        describe(self._copy, "engine.copy", tr("Copy diagnostics"), tr("Copy all of this, without any message text"))
        self._copy.clicked.connect(self.copy_all)
        self._measure = TextButton(tr("Measure this PC…"))
        describe(
            self._measure,
            "engine.measure",
            tr("Measure this PC…"),
            tr("Measure answers, memory and speed of every engine, for a report that you can send"),
        )
        self._measure.clicked.connect(self.measure_asked)
        self._result = QLabel()
        self._result.setObjectName("engine.result")
        self._result.setWordWrap(True)
        self._result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._cards: dict[str, _Card] = {}
        self.setWidget(self._content())
        self._on_theme()
        app_theme().changed.connect(self._on_theme)
        self._show_all()

    def add_card(self, card: QWidget) -> None:
        """Add a card of another package after the sections."""
        self._column.insertWidget(self._column.count() - 1, card)
        self._n_others += 1

    def put_list(self, engines: QWidget) -> None:
        """Put the list of engines before the sections."""
        self._column.insertWidget(self._column.indexOf(self._result) + 1, engines)

    def show_state(self, state: EngineState) -> None:
        self._learn(state=state)

    def show_snapshot(self, snapshot: Snapshot | None) -> None:
        self._learn(snapshot=snapshot)

    def show_engines(self, engines: EngineChoice) -> None:
        self._learn(engines=engines)

    def show_measured(self, tok_s: float | None) -> None:
        """Show the speed that was measured with the loaded model's options; None before its first answer."""
        if tok_s != self._known.measured_tok_s:
            self._learn(measured_tok_s=tok_s)

    def show_plan(self, plan: Plan | None) -> None:
        """Show the plan of the latest load; None before the first."""
        self._learn(plan=plan)

    def show_next_step(self, sentence: str) -> None:
        """Show what to do because the engine is outgrown; "" if it isn't."""
        self._learn(next_step=sentence)

    def show_compared(self, compared: tuple[Comparison, ...]) -> None:
        """Show the predicted and the measured memory of the loaded model."""
        self._learn(compared=compared)

    def show_test(self, diagnosis: Diagnosis | None, *, running: bool) -> None:
        if running and self._test.hasFocus():
            self._copy.setFocus()  # disabling a button moves its focus to the first control of the window
        self._running = running
        self._learn(diagnosis=diagnosis)

    def _content(self) -> QWidget:
        page = QWidget()
        page.setProperty("kind", "page")
        middle = self._middle = QWidget()
        self._column = QVBoxLayout(middle)
        self._column.setContentsMargins(0, 20, 0, 24)
        self._column.setSpacing(16)
        DensitySpacing(self._column)
        title = QLabel(tr("Engine"))
        title.setProperty("kind", "pagetitle")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(title)
        head.addStretch(1)
        buttons = FlowLayout()
        buttons.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        buttons.addWidget(self._measure)
        buttons.addWidget(self._copy)
        buttons.addWidget(self._test)
        head.addLayout(buttons)
        self._column.addLayout(head)
        self._column.addWidget(self._result)
        self._column.addStretch(1)
        row = QHBoxLayout(page)
        row.setContentsMargins(40, 0, 40, 0)
        row.addStretch(1)
        row.addWidget(middle, 1000)
        row.addStretch(1)
        return page

    def _on_theme(self) -> None:
        self._middle.setMaximumWidth(current_theme().px(_WIDEST))

    def _learn(self, **changes: object) -> None:
        self._known = msgspec.structs.replace(self._known, **changes)
        self._show_all()

    def _show_all(self) -> None:
        self._test.setEnabled(not self._running)
        self._result.setText(engine_text.test_lines(self._known.diagnosis, running=self._running))
        for section in engine_text.sections(self._known, platform=sys.platform):
            card = self._cards.get(section.id)
            if card is None:
                card = self._cards[section.id] = _Card(section)
                self._column.insertWidget(self._column.count() - 1 - self._n_others, card)
            card.show_section(section)

    def copy_all(self) -> None:
        """Copy everything on the page to the clipboard as text."""
        text = engine_text.diagnostics(self._known, self._versions(), platform=sys.platform)
        QGuiApplication.clipboard().setText(text)


class _Card(QFrame):
    """One section: a heading and rows of label and value."""

    def __init__(self, section: EnginePageSection) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName(f"engine.{section.id}")
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._shown: EnginePageSection | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(16, 12, 16, 14)
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, 200)
        self._grid.setColumnStretch(1, 1)
        heading = QLabel(section.title)
        heading.setProperty("kind", "heading")
        self._grid.addWidget(heading, 0, 0, 1, 2)

    def show_section(self, section: EnginePageSection) -> None:
        if section == self._shown:
            return
        self._shown = section
        while len(self._rows) < len(section.rows):
            self._add_row()
        for index, (label, value) in enumerate(self._rows):
            known = index < len(section.rows)
            label.setVisible(known)
            value.setVisible(known)
            if known:
                label.setText(section.rows[index][0])
                value.setText(section.rows[index][1])

    def _add_row(self) -> None:
        label, value = QLabel(), QLabel()
        label.setProperty("kind", "dim")
        label.setWordWrap(True)
        value.setWordWrap(True)
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        value.setAlignment(Qt.AlignmentFlag.AlignTop)
        label.setAlignment(Qt.AlignmentFlag.AlignTop)
        place = len(self._rows) + 1
        self._grid.addWidget(label, place, 0)
        self._grid.addWidget(value, place, 1)
        self._rows.append((label, value))
