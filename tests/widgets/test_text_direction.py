"""Lines in Arabic and Hebrew begin at the right, among lines that begin at the left."""

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from qwendesk.widgets.text_layout import draw_line

WIDTH = 300


def inked(text: str) -> tuple[int, int]:
    """The first and the last column of a line that is not empty."""
    image = QImage(WIDTH, 40, QImage.Format.Format_Grayscale8)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    draw_line(painter, QRectF(0, 0, WIDTH, 40), text)
    painter.end()
    columns = [x for x in range(WIDTH) if any(image.pixelColor(x, y).value() < 128 for y in range(40))]
    return columns[0], columns[-1]


@pytest.mark.parametrize("words", ["שלום", "مرحبا"])
def test_line_is_aligned_by_its_letters_and_elided_if_too_long(app: QApplication, words: str) -> None:
    first, last = inked(words)
    assert WIDTH - last < first
    assert inked("Hello")[0] < 10
    assert inked("123")[0] < 10
    first, last = inked(f"{words} " * 40)
    assert last > WIDTH - 10
    assert inked(f"{words} Hello " * 40)[1] > WIDTH - 10
