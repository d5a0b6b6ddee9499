"""The drop-down list, the check box, the switch and a search field's clear button, in the theme's colours.

They paint their own marks, because a stylesheet can only use image files for them, and a file has one colour.
"""

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, QVariantAnimation
from PySide6.QtGui import QAction, QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionButton,
    QWidget,
)

from qwendesk.core.translation import tr
from qwendesk.widgets.app_style import show_only_the_frame
from qwendesk.widgets.icons import icon, pixmap
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_ARROW, _MARK, _MARGIN = 14, 14, 8


class ComboBox(QComboBox):
    """A drop-down list with an arrow."""

    def __init__(self) -> None:
        super().__init__()
        # The default delegate draws rows like a native menu and ignores the stylesheet.
        self.setItemDelegate(QStyledItemDelegate(self))
        show_only_the_frame(self.view().window(), self.view())
        app_theme().changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        is_mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        left = _MARGIN if is_mirrored else self.width() - _ARROW - _MARGIN
        place = QRect(left, (self.height() - _ARROW) // 2, _ARROW, _ARROW)
        _draw(self, "down", current_theme()["text_dim" if self.isEnabled() else "text_off"], place)


class CheckBox(QCheckBox):
    """A check box for dialogs. Settings use a Switch."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        app_theme().changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.isChecked():
            return
        option = QStyleOptionButton()
        self.initStyleOption(option)
        box = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)
        place = QRect(0, 0, _MARK, _MARK)
        place.moveCenter(box.center())
        _draw(self, "done", current_theme()["on_fill" if self.isEnabled() else "on_fill_off"], place)


def _draw(widget: QWidget, name: str, color: str, place: QRect) -> None:
    painter = QPainter(widget)
    painter.drawPixmap(place, pixmap(name, color, place.width(), widget.devicePixelRatioF()))
    painter.end()


class _ClearAction(QAction):
    """The button in a text field that empties it. It is shown while there is text."""

    def __init__(self, field: QLineEdit) -> None:
        super().__init__(tr("Clear"), field)
        self._field = field
        self.triggered.connect(field.clear)
        field.textChanged.connect(self._update)
        app_theme().changed.connect(self._update)
        field.addAction(self, QLineEdit.ActionPosition.TrailingPosition)
        self._update()

    def _update(self) -> None:
        self.setVisible(bool(self._field.text()))
        self.setIcon(icon("close", current_theme()["text_dim"], _ARROW))


def add_clear_button(field: QLineEdit) -> None:
    """Add a button to `field` that empties it."""
    _ClearAction(field)


_WIDTH, _HEIGHT, _EDGE = 40, 22, 3
# Pixels around the track for the focus ring, which would be hard to see on the accent colour.
_RING = 4


class Switch(QAbstractButton):
    """An on-off switch. The knob slides unless motion is reduced."""

    def __init__(self) -> None:
        super().__init__()
        self._knob = QVariantAnimation(self)
        self._knob.valueChanged.connect(self.update)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedSize(self.sizeHint())
        self.toggled.connect(self._on_toggled)
        app_theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH + 2 * _RING, _HEIGHT + 2 * _RING)

    @property
    def knob_place(self) -> float:
        """Position of the knob: 0 is off, 1 is on, and values in between while it slides."""
        running = self._knob.state() is QVariantAnimation.State.Running
        return float(self._knob.currentValue()) if running else float(self.isChecked())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.EnabledChange:
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(_RING, _RING, _WIDTH, _HEIGHT)
        on, works = self.isChecked(), self.isEnabled()
        ground = ("fill" if works else "fill_off") if on else "card"
        knob = ("on_fill" if works else "on_fill_off") if on else "text_dim"
        painter.setPen(QColor(theme["fill" if on and works else "text_dim"]))
        painter.setBrush(QColor(theme[ground]))
        painter.drawRoundedRect(track, _HEIGHT / 2, _HEIGHT / 2)
        side = _HEIGHT - 2 * _EDGE
        left = track.left() + _EDGE + self.knob_place * (_WIDTH - 2 * _EDGE - side)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme[knob]))
        painter.drawEllipse(QRectF(left, track.top() + _EDGE, side, side))
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme["focus"]), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(track.adjusted(-3, -3, 3, 3), _HEIGHT / 2 + 3, _HEIGHT / 2 + 3)
        painter.end()

    def _on_toggled(self, on: bool) -> None:
        if self.isVisible():
            app_theme().motion.slide(self._knob, float(not on), float(on))
