"""The engine page: what runs, the devices and drivers, a test, and everything as text to copy."""

import sys
from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.plan import Plan
from qwendesk.engine.state import EngineState
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.services.engine.engines import Engines
from qwendesk.services.engine.measured import Comparison
from qwendesk.services.engine.testing import Diagnosis
from qwendesk.ui.engine import engine_text
from qwendesk.ui.engine.engine_text import Known, Section
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_WIDEST = 760
"""As the settings page."""


class EnginePage(QScrollArea):
    """Shows values; asks for a test. `versions` gives the libraries' versions when something is copied."""

    test_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, versions: Callable[[], dict[str, str]]) -> None:
        super().__init__()
        self._keeper = keeper
        self._versions = versions
        self._known = Known()
        self._running = False
        self._n_others = 0
        self.setObjectName("engine.page")
        self.setAccessibleName(tr("Engine"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        # Page Up and Down reach it from its buttons; a ring around a whole page says nothing.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._test = TextButton(keeper, tr("Test engine"), kind="primary")
        describe(
            self._test, "engine.test", tr("Test engine"), tr("Ask the built-in demo model about text and a picture")
        )
        self._test.clicked.connect(self.test_asked)
        self._copy = TextButton(keeper, " " + tr("Copy diagnostics"), icon_name="copy")
        describe(self._copy, "engine.copy", tr("Copy diagnostics"), tr("Copy all of this, without any message text"))
        self._copy.clicked.connect(self.copy_all)
        self._result = QLabel()
        self._result.setObjectName("engine.result")
        self._result.setWordWrap(True)
        self._result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._cards: dict[str, _Card] = {}
        self.setWidget(self._content())
        self._on_theme()
        keeper.changed.connect(self._on_theme)
        self._show_all()

    def add_card(self, card: QWidget) -> None:
        """Something of another room, after the sections."""
        self._column.insertWidget(self._column.count() - 1, card)
        self._n_others += 1

    def put_list(self, engines: QWidget) -> None:
        """The engines to choose from, before the sections."""
        self._column.insertWidget(self._column.indexOf(self._result) + 1, engines)

    def show_state(self, state: EngineState) -> None:
        self._learn(state=state)

    def show_snapshot(self, snapshot: Snapshot | None) -> None:
        self._learn(snapshot=snapshot)

    def show_engines(self, engines: Engines) -> None:
        self._learn(engines=engines)

    def show_plan(self, plan: Plan | None) -> None:
        """Of the latest load; None before the first."""
        self._learn(plan=plan)

    def show_compared(self, compared: tuple[Comparison, ...]) -> None:
        """What the loaded model was predicted to take, and what it takes."""
        self._learn(compared=compared)

    def show_test(self, diagnosis: Diagnosis | None, *, running: bool) -> None:
        if running and self._test.hasFocus():
            self._copy.setFocus()  # a disabled button would give it to the first control of the window
        self._running = running
        self._learn(diagnosis=diagnosis)

    def _content(self) -> QWidget:
        page = QWidget()
        page.setProperty("kind", "page")
        middle = self._middle = QWidget()
        self._column = QVBoxLayout(middle)
        self._column.setContentsMargins(0, 20, 0, 24)
        self._column.setSpacing(16)
        Airy(self._keeper, self._column)
        title = QLabel(tr("Engine"))
        title.setProperty("kind", "pagetitle")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(title)
        head.addStretch(1)
        buttons = FlowLayout()
        buttons.setAlignment(Qt.AlignmentFlag.AlignVCenter)
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
        self._middle.setMaximumWidth(self._keeper.theme.px(_WIDEST))

    def _learn(self, **news: object) -> None:
        self._known = msgspec.structs.replace(self._known, **news)
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
        """Everything on the page as text, on the clipboard."""
        text = engine_text.diagnostics(self._known, self._versions(), platform=sys.platform)
        QGuiApplication.clipboard().setText(text)


class _Card(QFrame):
    """One section: a heading and rows of label and value."""

    def __init__(self, section: Section) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName(f"engine.{section.id}")
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._shown: Section | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(16, 12, 16, 14)
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, 200)
        self._grid.setColumnStretch(1, 1)
        heading = QLabel(section.title)
        heading.setProperty("kind", "heading")
        self._grid.addWidget(heading, 0, 0, 1, 2)

    def show_section(self, section: Section) -> None:
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
