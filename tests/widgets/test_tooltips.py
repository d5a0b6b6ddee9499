"""Tooltips are wrapped, and show their text as it is."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QLabel, QToolTip, QWidget

from qwendesk.widgets.app_style import wrapped
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.fixture
def holder(keeper: ThemeKeeper) -> Iterator[QWidget]:
    holder = QWidget()
    holder.resize(700, 300)
    holder.show()
    yield holder
    QToolTip.hideText()
    holder.deleteLater()


def shown_tip() -> QLabel:
    tips = [each for each in QApplication.topLevelWidgets() if each.inherits("QTipLabel") and each.isVisible()]
    assert isinstance(tips[-1], QLabel)
    return tips[-1]


def test_a_long_tooltip_is_wrapped_whenever_it_is_shown(holder: QWidget) -> None:
    for text in ("Some words for a tooltip. " * 4, "Others that take its place. " * 5):
        QToolTip.showText(holder.mapToGlobal(QPoint(10, 10)), text, holder)
        tip = shown_tip()
        assert tip.width() < 480
        assert tip.height() > 2 * tip.fontMetrics().lineSpacing()
        assert " ".join(tip.text().split()) == text.strip()


def test_a_short_tooltip_and_its_own_lines_stay(holder: QWidget) -> None:
    QToolTip.showText(holder.mapToGlobal(QPoint(10, 10)), "One <b>line</b>\n\nand another", holder)
    assert shown_tip().text() == "One <b>line</b>\n\nand another"


@pytest.mark.parametrize("text", ["名字很长的文件" * 12, "smile 😀 " * 20])
def test_lines_are_broken_as_the_language_does(holder: QWidget, text: str) -> None:
    lines = wrapped(text, holder.font(), 200).split("\n")
    assert len(lines) > 2
    assert all(holder.fontMetrics().horizontalAdvance(line) <= 200 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
