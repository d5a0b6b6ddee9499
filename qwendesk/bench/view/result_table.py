"""Tables of the Bench page: cards with a line for each result."""

import re
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel

from qwendesk.bench.table import TableLine
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import restyle
from qwendesk.widgets.kit import LIST_PADDING, paragraph, rule

# Where a text wraps, a value is not parted from its spread, nor a test from its depth.
_SPACES = re.compile(r" (?=[±@%])|(?<=[±@]) ")


class TextTable(QFrame):
    """A card with lines of texts below a head. A column without any text is hidden.

    Labels are kept and get new texts, so nothing flickers.
    """

    def __init__(self, name: str, head: Sequence[str]) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName(name)
        self._lines: tuple[tuple[str, ...], ...] = ()
        self._head: list[QLabel] = []
        self._labels: list[list[QLabel]] = []
        self._rules: list[QFrame] = []
        self._n_columns = len(head)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(LIST_PADDING, 10, LIST_PADDING, 10)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(5)
        for column, text in enumerate(head):
            label = _cell(text, column, "dim")
            self._grid.addWidget(label, 0, column)
            self._head.append(label)

    def show_lines(self, lines: Sequence[tuple[str, ...]]) -> None:
        if tuple(lines) == self._lines:
            return
        self._lines = tuple(lines)
        while len(self._labels) < len(lines):
            self._add_line()
        is_used = [any(line[column] for line in lines) for column in range(self._n_columns)]
        for column, (label, is_shown) in enumerate(zip(self._head, is_used, strict=True)):
            label.setVisible(is_shown)
            self._grid.setColumnStretch(column, (1 if column else 2) if is_shown else 0)
        for index, (labels, line) in enumerate(zip(self._labels, self._rules, strict=True)):
            is_line = index < len(lines)
            line.setVisible(is_line)
            for column, label in enumerate(labels):
                label.setVisible(is_line and is_used[column])
                label.setText(_unbroken(lines[index][column]) if is_line else "")

    def set_kind(self, line: int, column: int, kind: str) -> None:
        """Style one text, as `kind` in the stylesheet."""
        restyle(self._labels[line][column], "kind", kind)

    def set_tip(self, line: int, column: int, tip: str) -> None:
        """Show more about one text while the mouse is over it."""
        self._labels[line][column].setToolTip(tip)

    def _add_line(self) -> None:
        row = 1 + 2 * len(self._labels)
        line = rule()
        self._grid.addWidget(line, row, 0, 1, self._n_columns)
        labels = [_cell("", column) for column in range(self._n_columns)]
        for column, label in enumerate(labels):
            self._grid.addWidget(label, row + 1, column)
        self._rules.append(line)
        self._labels.append(labels)


class SpeedTable(TextTable):
    """The table of a run of the speed tests."""

    def __init__(self) -> None:
        super().__init__("bench.table", (tr("test"), tr("with drafts"), tr("plain"), tr("reported"), tr("gain")))

    def show_results(self, lines: Sequence[TableLine]) -> None:
        self.show_lines([(line.test, line.with_drafts, line.plain, line.reported, line.gain) for line in lines])
        for index, line in enumerate(lines):
            self.set_kind(index, self._n_columns - 1, "good" if line.is_gain else "dim")


def _unbroken(text: str) -> str:
    return _SPACES.sub("\N{NO-BREAK SPACE}", text)


def _cell(text: str, column: int, kind: str = "") -> QLabel:
    cell = paragraph(text, kind, selectable=True)
    if column:
        cell.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return cell
