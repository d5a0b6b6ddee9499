"""A table of model files: the files that fit this PC first, and the others folded behind a button."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from qwendesk.core.translation import tr, tr_n
from qwendesk.models.fit import FitLabel
from qwendesk.models.view.offer_texts import NO_DETAIL, fit_details, fit_text
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.kit import rule
from qwendesk.widgets.text_layout import WrappingLabel
from qwendesk.widgets.theme_keeper import app_theme

_GAP = 16
# Rows of the grid for each file: in a narrow table its cells are below each other, and a rule above them.
_ROWS_PER_LINE = 6
# Pixels between rows.
_WIDE_GAP, _NARROW_GAP = 4, 5
_CENTRE_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class FileLine(msgspec.Struct, frozen=True, kw_only=True):
    """The widgets of one file, from left to right, and at most one note below them."""

    name: QLabel
    size: QLabel
    fit: QLabel
    detail: QLabel
    speed: QLabel | None = None
    """Before `detail`, in tables that show speeds."""
    button: QWidget
    notes: tuple[QLabel, ...] = ()
    fits: bool

    @property
    def cells(self) -> tuple[QLabel, ...]:
        speed = (self.speed,) if self.speed is not None else ()
        return self.name, self.size, self.fit, *speed, self.detail


class FileTable(QWidget):
    """Shows one line for each file. In a narrow table the fit and the detail are below the name."""

    def __init__(self, name: str, lines: Sequence[FileLine], headings: Sequence[str] = ()) -> None:
        super().__init__()
        self._lines = sorted(lines, key=lambda line: not line.fits)
        self._n_fitting = sum(line.fits for line in lines)
        self._headings = [small_label(text) for text in headings]
        self._is_wide: bool | None = None
        self._is_folded = self._can_fold = 0 < self._n_fitting < len(lines)
        self.setObjectName(name)
        # The layout follows the width that there is; it must not ask for more.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._rules = [rule() for _ in lines]
        self._fold = TextButton(kind="link")
        self._fold.clicked.connect(self._toggle)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 0)
        self._grid.setHorizontalSpacing(_GAP)
        self._n_cells = len(lines[0].cells) if lines else 0
        self._grid.setColumnStretch(self._n_cells, 1)
        app_theme().follow(self, self._arrange)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Place the cells for the current width."""
        is_wide = self.width() >= self._wide_width()
        if is_wide == self._is_wide:
            return
        self._is_wide = is_wide
        while self._grid.count():
            self._grid.takeAt(0)
        for column, heading in enumerate(self._headings):
            self._grid.addWidget(heading, 0, column)
        self._grid.setVerticalSpacing(_WIDE_GAP if is_wide else _NARROW_GAP)
        place = self._place_wide if is_wide else self._place_narrow
        fold_row = 1 + _ROWS_PER_LINE * self._n_fitting
        for index, line in enumerate(self._lines):
            row = 1 + _ROWS_PER_LINE * index
            row += row >= fold_row
            self._grid.addWidget(self._rules[index], row, 0, 1, self._n_cells + 2)
            place(row + 1, line)
        self._grid.addWidget(self._fold, fold_row, 0, 1, self._n_cells + 2, Qt.AlignmentFlag.AlignLeft)
        self._show_lines()

    def _place_wide(self, row: int, line: FileLine) -> None:
        for column, cell in enumerate(line.cells):
            self._grid.addWidget(cell, row, column, _CENTRE_LEFT)
        self._grid.addWidget(line.button, row, self._n_cells + 1)
        for note in line.notes:
            self._grid.addWidget(note, row + 1, 0, 1, self._n_cells + 1)

    def _place_narrow(self, row: int, line: FileLine) -> None:
        self._grid.addWidget(line.name, row, 0, _CENTRE_LEFT)
        columns = self._n_cells + 2
        self._grid.addWidget(line.size, row, 1, 1, columns - 2, Qt.AlignmentFlag.AlignVCenter)
        self._grid.addWidget(line.button, row, columns - 1)
        self._grid.addWidget(line.fit, row + 1, 0, 1, columns, Qt.AlignmentFlag.AlignLeft)
        if line.speed is not None:
            self._grid.addWidget(line.speed, row + 2, 0, 1, columns)
        self._grid.addWidget(line.detail, row + 3, 0, 1, columns)
        for note in line.notes:
            self._grid.addWidget(note, row + 4, 0, 1, columns)

    def _wide_width(self) -> int:
        """Return the width at which all cells of a line are side by side."""
        sizes = [[cell.sizeHint().width() for cell in (*line.cells, line.button)] for line in self._lines]
        widths: list[int] = [max(column) for column in zip(*sizes, strict=True)]
        return sum(widths) + _GAP * len(widths)

    def _toggle(self) -> None:
        self._is_folded = not self._is_folded
        self._show_lines()

    def _show_lines(self) -> None:
        for heading in self._headings:
            heading.setVisible(bool(self._is_wide))
        for index, line in enumerate(self._lines):
            is_shown = line.fits or not self._is_folded
            self._rules[index].setVisible(is_shown and not self._is_wide)
            for widget in (line.name, line.size, line.button, *line.notes):
                widget.setVisible(is_shown)
            line.fit.setVisible(is_shown and bool(line.fit.text()))
            if line.speed is not None:
                line.speed.setVisible(is_shown and bool(line.speed.text()))
            has_detail = bool(self._is_wide) or line.detail.text() not in ("", NO_DETAIL)
            line.detail.setVisible(is_shown and has_detail)
        self._show_fold()

    def _show_fold(self) -> None:
        n_folded = len(self._lines) - self._n_fitting
        show = tr_n("Show {0} that doesn't fit", "Show {0} that don't fit", n_folded)
        text = show if self._is_folded else tr("Hide files that don't fit")
        self._fold.setVisible(self._can_fold)
        self._fold.setText(text)
        describe(self._fold, f"{self.objectName()}.fold", text, tr("Files that are too large for this PC's memory"))


def fit_chip(fit: FitLabel) -> QLabel:
    """Return a label with the fit, which wraps if there is little room, and all numbers in its tooltip."""
    text, tone = fit_text(fit)
    chip = WrappingLabel(text)
    chip.setProperty("kind", "fit")
    chip.setProperty("chip", tone)
    chip.setToolTip(fit_details(fit))
    return chip


def small_label(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", "small")
    return label
