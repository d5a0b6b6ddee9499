"""What the sections of the Bench page share: a run in progress, why one ended early, findings, bars and exports."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QProgressBar, QWidget

from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.bench.speed_text import SpeedLine
from qwendesk.core.failures import LoadFailure
from qwendesk.core.translation import join_sentences, tr
from qwendesk.widgets.buttons import ChevronButton, describe, restyle
from qwendesk.widgets.kit import PADDING, IconLabel, button, card, column, label, paragraph, row, rule
from qwendesk.widgets.layouts import ResponsivePairLayout, widget_with
from qwendesk.widgets.popups import Menu

# How long Stop keeps its place when a run has ended, so that a late click on it does nothing else.
_STOP_STAYS_MS = 1000
_STEPS = 1000
_BAR, _THIN_BAR = 8, 6
# Least width in pixels of the note beside Stop.
_LEAST_NOTE = 200


class RunStatus(QWidget):
    """A failure in a red card, or else a text over a progress bar, or nothing."""

    def __init__(self, name: str) -> None:
        """`name` begins the object names: NAME.trouble, NAME.progress and NAME.progress.text."""
        super().__init__()
        self._trouble_text = paragraph(name=f"{name}.trouble", selectable=True)
        self._trouble = card(row(self._trouble_text), "failure", padding=12)
        self._text = label(name=f"{name}.progress.text")
        self._bar = _progress_bar(f"{name}.progress", _THIN_BAR)
        self.setLayout(column(self._trouble, self._text, self._bar))
        self.show_nothing()

    def show_nothing(self) -> None:
        self.hide()

    def show_failure(self, failure: BenchFailure | LoadFailure, more: str = "") -> None:
        """Show why a run ended early, and a further sentence."""
        sentences = (f"{failure.title}." if failure.title else "", failure.sentence, more)
        self._trouble_text.setText(join_sentences(*sentences))
        self._show(is_failure=True)

    def show_progress(self, text: str, fraction: float) -> None:
        """Show what is done now, and how much of all is done, from 0 to 1."""
        self._text.setText(text)
        self._bar.setValue(round(_STEPS * fraction))
        self._show(is_failure=False)

    def _show(self, *, is_failure: bool) -> None:
        self._trouble.setVisible(is_failure)
        self._text.setVisible(not is_failure)
        self._bar.setVisible(not is_failure)
        self.show()


class FindingList(QWidget):
    """Findings below each other: an icon, a sentence, and a figure at the right."""

    def __init__(self, name: str) -> None:
        """`name` begins the object names of the sentences: NAME.0, NAME.1 and so on."""
        super().__init__()
        self._name = name
        self._lines: tuple[SpeedLine, ...] = ()
        self._rows: list[tuple[QWidget, IconLabel, QLabel, QLabel]] = []
        self._column = column(spacing=0)
        self.setLayout(self._column)

    def show_lines(self, lines: Sequence[SpeedLine]) -> None:
        if tuple(lines) == self._lines:
            return
        self._lines = tuple(lines)
        while len(self._rows) < len(lines):
            self._add_row()
        for place, (holder, icon, sentence, figure) in enumerate(self._rows):
            holder.setVisible(place < len(lines))
            if place < len(lines):
                icon.show_icon(lines[place].icon)
                sentence.setText(lines[place].sentence)
                figure.setText(lines[place].figure)

    def _add_row(self) -> None:
        icon, sentence = IconLabel(), paragraph(kind="body", name=f"{self._name}.{len(self._rows)}", selectable=True)
        figure = label(kind="dim")
        content = row(icon, sentence, figure, spacing=16, margins=(0, 9, 0, 9))
        content.setStretch(1, 1)
        parts = [rule()] if self._rows else []
        holder = widget_with(column(*parts, content, spacing=0))
        self._column.addWidget(holder)
        self._rows.append((holder, icon, sentence, figure))


class BusyCard(QFrame):
    """A run in progress: what it does, how far it is, what it has found, and Stop, which keeps its place at the end."""

    stop_asked = Signal()
    ended = Signal()
    """Emitted when the card may be hidden."""

    def __init__(self, name: str, stop_text: str) -> None:
        """`name` begins the object names: NAME.doing, NAME.found and NAME.stop."""
        super().__init__()
        self.setProperty("kind", "hero")
        self._text = paragraph(kind="result", name=f"{name}.doing")
        self._bar = _progress_bar(f"{name}.doing.bar", _BAR)
        self._found = FindingList(f"{name}.found")
        self._stop = button(stop_text, f"{name}.stop")
        restyle(self._stop, "big", "true")
        self._stop.clicked.connect(self._on_stop)
        self._is_running = False
        self._late = QTimer(self, singleShot=True, interval=_STOP_STAYS_MS)
        self._late.timeout.connect(self.ended)
        note = paragraph(tr("Please don't chat or play until this is done."), "dim")
        foot = ResponsivePairLayout(self._stop, note, least=_LEAST_NOTE, spacing=16, second_grows=True)
        self.setLayout(
            column(self._text, self._bar, self._found, foot, spacing=12, margins=(PADDING, PADDING, PADDING, PADDING))
        )

    @property
    def is_wanted(self) -> bool:
        """Whether it is to be shown: while something runs, and a moment longer, for a late click on Stop."""
        return self._is_running or self._late.isActive()

    @property
    def has_focus(self) -> bool:
        return self._stop.hasFocus()

    def focus_stop(self) -> None:
        self._stop.setFocus()

    def show_running(self, *, is_running: bool) -> None:
        if self._is_running and not is_running:
            self._late.start()
        self._is_running = is_running

    def show_progress(self, text: str, fraction: float, lines: Sequence[SpeedLine] = ()) -> None:
        """Show what is done now, how much of all is done, from 0 to 1, and what was found."""
        self._text.setText(text)
        self._bar.setValue(round(_STEPS * fraction))
        self._found.show_lines(lines)
        self._found.setVisible(bool(lines))

    def _on_stop(self) -> None:
        if self._is_running:
            self.stop_asked.emit()


class ComparedBars(QWidget):
    """Two bars of a common scale, each with a name before it and a text behind it. The second one is what counts."""

    def __init__(self, name: str) -> None:
        super().__init__()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        self._rows: list[tuple[QLabel, QProgressBar, QLabel]] = []
        for place in range(2):
            parts = label(kind="dim"), _progress_bar(f"{name}.bar.{place}", _BAR), label()
            parts[1].setProperty("role", "compared" if place else "before")
            for number, part in enumerate(parts):
                grid.addWidget(part, place, number)
            self._rows.append(parts)

    def show_pairs(self, *pairs: tuple[str, float, str]) -> None:
        """Show for each bar its name, its value and its text."""
        most = max(value for _, value, _ in pairs) or 1.0
        for (name, bar, text), (shown_name, value, shown_text) in zip(self._rows, pairs, strict=True):
            name.setText(shown_name)
            text.setText(shown_text)
            bar.setValue(round(_STEPS * value / most))
            bar.setAccessibleName(shown_name)
            bar.setAccessibleDescription(shown_text)


class ExportButton(ChevronButton):
    """A button with a menu of the ways to export a result."""

    def __init__(self, name: str, tip: str, *entries: tuple[str, str, Callable[[], object]]) -> None:
        """`name` begins the object names. Each entry is a key, its text, and what happens."""
        super().__init__(tr("Share"), kind="quiet")
        describe(self, f"{name}.export", tr("Share"), tip)
        menu = Menu(self)
        for key, text, chosen in entries:
            action = menu.addAction(text)
            action.setObjectName(f"{name}.export.{key}")
            action.triggered.connect(chosen)
        self.setMenu(menu)


def _progress_bar(name: str, height: int) -> QProgressBar:
    bar = QProgressBar()
    bar.setObjectName(name)
    bar.setTextVisible(False)
    bar.setFixedHeight(height)
    bar.setRange(0, _STEPS)
    return bar
