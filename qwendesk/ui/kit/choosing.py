"""A drop-down list and a check box whose marks are icons of ours, in the theme's colours.

A stylesheet could only name picture files, and files have one colour.
"""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QStyle, QStyledItemDelegate, QStyleOptionButton, QWidget

from qwendesk.ui.kit.icons import pixmap
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_ARROW, _MARK, _EDGE = 14, 14, 8


class ChoiceBox(QComboBox):
    """One of several, with an arrow that says it opens."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        # The list's own delegate draws its rows as a menu of the style, past the stylesheet.
        self.setItemDelegate(QStyledItemDelegate(self))
        keeper.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        is_mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        left = _EDGE if is_mirrored else self.width() - _ARROW - _EDGE
        place = QRect(left, (self.height() - _ARROW) // 2, _ARROW, _ARROW)
        _draw(self, "down", self._keeper.theme["text_dim" if self.isEnabled() else "text_off"], place)


class CheckBox(QCheckBox):
    """On or off, in a question; a setting has a Switch."""

    def __init__(self, keeper: ThemeKeeper, text: str) -> None:
        super().__init__(text)
        self._keeper = keeper
        keeper.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.isChecked():
            return
        option = QStyleOptionButton()
        self.initStyleOption(option)
        box = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)
        place = QRect(0, 0, _MARK, _MARK)
        place.moveCenter(box.center())
        _draw(self, "done", self._keeper.theme["on_fill" if self.isEnabled() else "on_fill_off"], place)


def _draw(widget: QWidget, name: str, color: str, place: QRect) -> None:
    painter = QPainter(widget)
    painter.drawPixmap(place, pixmap(name, color, place.width(), widget.devicePixelRatioF()))
    painter.end()
