"""Columns of equal width that wrap."""

import pytest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from qwendesk.widgets.layouts import EqualColumnsLayout


def holder(app: QApplication, count: int, width: int) -> tuple[QWidget, list[QLabel]]:
    """Return a shown widget with labels in columns that are at least 300 pixels wide."""
    shown = QWidget()
    layout = EqualColumnsLayout(least=300)
    shown.setLayout(layout)
    labels = [QLabel("text\n" * (number + 1)) for number in range(count)]
    for label in labels:
        layout.addWidget(label)
    shown.resize(width, layout.heightForWidth(width) + 100)
    shown.show()
    app.processEvents()
    return shown, labels


@pytest.mark.parametrize(
    ("count", "width", "columns"), [(2, 1000, 2), (4, 1300, 4), (4, 1000, 2), (3, 1000, 3), (3, 700, 2), (4, 400, 1)]
)
def test_columns_are_equally_wide_and_wrap_evenly(app: QApplication, count: int, width: int, columns: int) -> None:
    shown, labels = holder(app, count, width)

    first_row = [label for label in labels if label.y() == labels[0].y()]
    assert len(first_row) == columns
    assert len({label.width() for label in labels}) == 1
    assert labels[0].width() * columns + 14 * (columns - 1) <= width
    shown.close()


def test_a_row_is_as_tall_as_its_tallest_column(app: QApplication) -> None:
    shown, labels = holder(app, 4, 700)

    assert labels[0].height() == labels[1].height() < labels[2].height() == labels[3].height()
    assert labels[2].y() == labels[0].y() + labels[0].height() + 14
    shown.close()


def test_a_hidden_column_takes_no_space(app: QApplication) -> None:
    shown, labels = holder(app, 3, 1000)
    labels[1].hide()
    app.processEvents()

    assert labels[0].width() == labels[2].width() == 493
    shown.close()
