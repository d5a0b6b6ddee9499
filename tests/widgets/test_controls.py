"""The marks of lists and check boxes can be seen, and the text of a button stands off its icon."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPushButton, QToolButton, QWidget

from qwendesk.widgets.buttons import TextButton
from qwendesk.widgets.controls import CheckBox, ComboBox, add_clear_button
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.fixture
def holder(keeper: ThemeKeeper) -> Iterator[QWidget]:
    holder = QWidget()
    yield holder
    holder.deleteLater()


def colours(widget: QWidget, part: QRect) -> set[str]:
    image = widget.grab(part).toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def test_combo_box_shows_an_arrow(keeper: ThemeKeeper, holder: QWidget) -> None:
    box = ComboBox()
    box.setParent(holder)
    box.addItems(["One", "Two"])
    box.resize(200, 32)
    edge = QRect(200 - 24, 4, 20, 24)
    assert keeper.theme["text_dim"].lower() in colours(box, edge)
    box.setEnabled(False)
    assert keeper.theme["text_dim"].lower() not in colours(box, edge)


def test_only_a_checked_box_shows_a_check_mark(keeper: ThemeKeeper, holder: QWidget) -> None:
    box = CheckBox("Models too")
    box.setParent(holder)
    box.adjustSize()
    square = QRect(3, 0, 14, box.height())
    assert keeper.theme["fill"].lower() not in colours(box, square)
    box.setChecked(True)
    found = colours(box, square)
    assert keeper.theme["fill"].lower() in found
    # Its thin lines are mixed with the ground.
    assert max(QColor(name).lightness() for name in found) > keeper.theme.color("fill").lightness() + 40


def test_the_clear_button_empties_the_field_and_is_shown_while_there_is_text(holder: QWidget) -> None:
    field = QLineEdit(holder)
    add_clear_button(field)
    holder.show()
    (button,) = field.findChildren(QToolButton)
    assert not button.isVisible()
    field.setText("qwen")
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert field.text() == ""
    assert not button.isVisible()


@pytest.mark.parametrize(("icon_name", "drawn"), [("copy", " Copy"), ("", "Copy")])
def test_one_space_keeps_the_text_of_a_button_off_its_icon(
    keeper: ThemeKeeper, holder: QWidget, icon_name: str, drawn: str
) -> None:
    button = TextButton("Copy", icon_name=icon_name)
    button.setParent(holder)
    assert (button.text(), QPushButton.text(button)) == ("Copy", drawn)
    button.setText("")
    assert not QPushButton.text(button)
    button.setText("Copy")
    assert QPushButton.text(button) == drawn
