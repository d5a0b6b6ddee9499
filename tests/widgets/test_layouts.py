"""Layouts and labels that adapt to the available width: side by side or stacked, whole or elided."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from qwendesk.widgets.layouts import ResponsivePairLayout
from qwendesk.widgets.text_layout import ElidedLabel

WORDS = "A sentence that is long enough to need several lines where there is little room for it."


def block(width: int, height: int) -> QWidget:
    """Asks for one size."""
    widget = QWidget()
    widget.setMinimumSize(width, height)
    return widget


@pytest.fixture
def holder(app: QApplication) -> Iterator[QWidget]:
    yield (made := QWidget())
    made.deleteLater()


def shown(holder: QWidget, width: int) -> None:
    holder.show()
    holder.resize(width, holder.heightForWidth(width))
    QApplication.sendPostedEvents()


def test_second_widget_is_at_the_right_if_both_fit(holder: QWidget) -> None:
    first, second = block(50, 20), block(100, 60)
    holder.setLayout(ResponsivePairLayout(first, second, least=200, spacing=10))

    shown(holder, 310)
    assert first.geometry().getRect() == (0, 20, 200, 20)
    assert second.geometry().getRect() == (210, 0, 100, 60)

    shown(holder, 309)
    assert first.geometry().getRect() == (0, 0, 309, 20)
    assert second.geometry().getRect() == (0, 30, 100, 60)
    assert holder.height() == 90


def test_single_widget_gets_the_whole_width(holder: QWidget) -> None:
    first, second = block(50, 20), block(100, 60)
    holder.setLayout(ResponsivePairLayout(first, second, least=200))
    second.hide()

    shown(holder, 150)
    assert first.geometry().getRect() == (0, 0, 150, 20)
    assert holder.heightForWidth(150) == 20


@pytest.mark.parametrize("width", [120, 330])
def test_sentence_wraps_to_the_lines_it_needs(holder: QWidget, width: int) -> None:
    sentence, second = QLabel(WORDS), block(100, 20)
    sentence.setWordWrap(True)
    holder.setLayout(ResponsivePairLayout(sentence, second, least=200))

    shown(holder, width)

    assert sentence.height() >= sentence.heightForWidth(sentence.width()) > 2 * sentence.fontMetrics().height()
    assert not sentence.geometry().intersects(second.geometry())
    assert holder.height() == max(sentence.geometry().bottom(), second.geometry().bottom()) + 1


def test_right_to_left_layout_is_mirrored(holder: QWidget) -> None:
    first, second = block(50, 20), block(100, 20)
    holder.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    holder.setLayout(ResponsivePairLayout(first, second, least=200, spacing=10))

    shown(holder, 400)
    assert (first.x(), second.x()) == (110, 0)

    shown(holder, 250)
    assert (first.x(), second.x()) == (0, 150)


def test_long_name_is_elided_in_the_middle(app: QApplication) -> None:
    label = ElidedLabel("name")
    label.setText("Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf")
    label.resize(label.fontMetrics().horizontalAdvance(label.text()) + 4, 20)
    assert label.shown == label.text()
    whole = label.grab().toImage()

    label.resize(label.width() * 2 // 3, 20)
    assert label.shown.startswith("Qwen")
    assert label.shown.endswith("gguf")
    assert "…" in label.shown
    assert label.text() == "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"
    assert label.grab().toImage() != whole.copy(0, 0, label.width(), 20)
    label.deleteLater()
