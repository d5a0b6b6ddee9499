"""Labels and tooltips show each character of their text: a file's name or a server's error may look like HTML."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QApplication, QLabel, QToolTip, QWidget

from qwendesk.widgets.text_layout import ElidedLabel, WrappingLabel
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.mark.parametrize("make_label", [QLabel, WrappingLabel])
def test_text_that_looks_like_html_loads_and_hides_nothing(
    keeper: ThemeKeeper, tmp_path: Path, make_label: Callable[[str], QLabel]
) -> None:
    picture = QPixmap(900, 900)
    picture.fill(Qt.GlobalColor.red)
    picture.save(str(tmp_path / "large.png"))
    text = f'<img src="{(tmp_path / "large.png").as_posix()}"><span style="font-size: 1px">hidden</span>'
    label = make_label(text)
    assert label.sizeHint().height() < 900, "the picture isn't loaded: on Windows it could be on a stranger's server"
    label.setText(f"{text} more")
    assert label.sizeHint().height() < 900
    assert label.textFormat() is Qt.TextFormat.PlainText


def test_tooltip_that_looks_like_html_loads_nothing(keeper: ThemeKeeper, tmp_path: Path) -> None:
    """Formulas, addresses and names of files are tooltips too."""
    picture = QPixmap(900, 900)
    picture.fill(Qt.GlobalColor.red)
    picture.save(str(tmp_path / "large.png"))
    page = QWidget()
    page.show()
    QToolTip.showText(QPoint(5, 5), f'<img src="{(tmp_path / "large.png").as_posix()}">', page)
    tip = next(each for each in QApplication.topLevelWidgets() if isinstance(each, QLabel) and _is_tip(each))
    assert tip.height() < 900
    assert tip.textFormat() is Qt.TextFormat.PlainText
    QToolTip.hideText()


def _is_tip(widget: QWidget) -> bool:
    return widget.metaObject().className() == "QTipLabel" and widget.isVisible()


def test_labels_with_colours_of_our_own_are_rich(keeper: ThemeKeeper) -> None:
    label = QLabel('<span style="color:red">x</span>')
    label.setProperty("rich", True)
    label.ensurePolished()
    assert label.textFormat() is Qt.TextFormat.RichText


def test_last_parts_of_a_text_are_left_out_before_a_name_is_cut(keeper: ThemeKeeper) -> None:
    label = ElidedLabel("machine", by_part=True)
    label.setText("RTX 3090 with 24 GB · 64 GB RAM")
    label.ensurePolished()
    metrics = label.fontMetrics()
    label.resize(metrics.horizontalAdvance(label.text()) + 2, 20)
    assert label.shown == label.text()
    label.resize(metrics.horizontalAdvance(label.text()) - 2, 20)
    assert label.shown == "RTX 3090 with 24 GB"
    label.resize(metrics.horizontalAdvance("RTX 3090 with 24 GB") - 2, 20)
    assert "…" in label.shown
