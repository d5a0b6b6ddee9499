"""The table of a run on the Bench page."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel

from qwendesk.bench.table import TableLine
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import restyle

_COLUMNS = 5


class ResultTable(QFrame):
    """A card with a line for each test. Labels are kept and get new texts, so a run in progress does not flicker."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("bench.table")
        self._lines: tuple[TableLine, ...] = ()
        self._labels: list[list[QLabel]] = []
        self._rules: list[QFrame] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(18, 10, 18, 10)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(0, 2)
        for column in range(1, _COLUMNS):
            self._grid.setColumnStretch(column, 1)
        head = (tr("test"), tr("with drafts"), tr("plain"), tr("reported"), tr("gain"))
        for column, text in enumerate(head):
            self._grid.addWidget(_label(text, column, kind="dim"), 0, column)

    def show_lines(self, lines: Sequence[TableLine]) -> None:
        if tuple(lines) == self._lines:
            return
        self._lines = tuple(lines)
        while len(self._labels) < len(lines):
            self._add_line()
        for index, (labels, rule) in enumerate(zip(self._labels, self._rules, strict=True)):
            is_shown = index < len(lines)
            rule.setVisible(is_shown)
            for label in labels:
                label.setVisible(is_shown)
            if is_shown:
                self._fill(labels, lines[index])

    def _fill(self, labels: list[QLabel], line: TableLine) -> None:
        texts = (line.test, line.with_drafts, line.plain, line.reported, line.gain)
        for label, text in zip(labels, texts, strict=True):
            label.setText(text)
        restyle(labels[-1], "kind", "good" if line.is_gain else "dim")

    def _add_line(self) -> None:
        row = 1 + 2 * len(self._labels)
        rule = QFrame()
        rule.setProperty("kind", "rule")
        rule.setFixedHeight(1)
        self._grid.addWidget(rule, row, 0, 1, _COLUMNS)
        labels = [_label("", column) for column in range(_COLUMNS)]
        for column, label in enumerate(labels):
            self._grid.addWidget(label, row + 1, column)
        self._rules.append(rule)
        self._labels.append(labels)


def _label(text: str, column: int, kind: str = "") -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if column:
        label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    if kind:
        label.setProperty("kind", kind)
    return label
