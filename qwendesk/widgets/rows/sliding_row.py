"""A row for a number with a slider, for values that users find by trial and error."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from qwendesk.core.settings import Entry
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.rows.option_texts import edit_text, tooltip
from qwendesk.widgets.rows.text_row import NumberRow
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Pixels between the labels under a slider.
_LABEL_GAP = 3
_HANDLE = 16


class SlidingRow(NumberRow):
    """A row with a slider. `stops` are the slider's values in order, and `labels` the texts below them; () for none.

    `auto` is the value with which QwenDesk chooses, and has its own button; if it is None, there is no such value, and
    the slider is beside the field.
    """

    moved = Signal(object)
    """The slider was moved and is still held. `chosen` is emitted on release."""

    def __init__(
        self, entry: Entry, prefix: str, stops: Sequence[float], labels: Sequence[str] = (), auto: float | None = None
    ) -> None:
        self._auto = auto
        self._auto_button: TextButton | None = None
        super().__init__(entry, prefix)
        self._stops: tuple[float, ...] = ()
        self._slider = _Slider(Qt.Orientation.Horizontal)
        describe(self._slider, f"{self.name}.slider", tr(entry.setting.label), tooltip(entry))
        self._slider.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._slider.setPageStep(1)
        self._controls.append(self._slider)
        self.setFocusProxy(self._slider)
        self._ticks = _Ticks()
        self.set_stops(stops, labels)
        self._slider.valueChanged.connect(self._on_moved)
        self._slider.sliderReleased.connect(lambda: self._choose(self._stop()))
        self.stack()
        if auto is None:
            self._editors.insertWidget(0, self._slider, 1)
            self._editors.setStretch(self._editors.count() - 1, 0)
        else:
            self._row.insertWidget(2, self._slider)
        if labels:
            self._row.insertWidget(3, self._ticks)

    def set_stops(self, stops: Sequence[float], labels: Sequence[str]) -> None:
        """Replace the slider's values, which depend on the model."""
        if tuple(stops) != self._stops:
            self._stops = tuple(stops)
            self._slider.blockSignals(True)
            self._slider.setRange(0, len(stops) - 1)
            self._slider.blockSignals(False)
            self._ticks.show_labels(tuple(labels))

    def show_auto(self, text: str) -> None:
        if self._auto_button is not None:
            self._auto_button.setText(text or tr("Auto"))

    def show_place(self, value: float) -> None:
        """Move the slider to the automatically chosen value."""
        if not self._slider.isSliderDown():
            self._slider.blockSignals(True)
            self._slider.setValue(min(bisect_left(self._stops, value), len(self._stops) - 1))
            self._slider.blockSignals(False)

    def _put_before(self) -> None:
        super()._put_before()
        if self._auto is not None:
            button = TextButton(tr("Auto"), kind="tab")
            button.setCheckable(True)
            self.put_editor(button, "auto")
            button.clicked.connect(lambda: self._choose(self._auto))
            self._auto_button = button

    def _stop(self) -> Any:
        return self._stops[self._slider.value()]

    def _on_moved(self) -> None:
        if self._slider.isSliderDown():
            self.field.show_text(edit_text(self._stop()))
            self.moved.emit(self._stop())
        else:
            self._choose(self._stop())

    def _show(self, value: Any) -> None:
        super()._show(value)
        if self._auto_button is not None:
            self._auto_button.setChecked(value == self._auto)
            if value == self._auto:
                self.field.show_text("")
                return
        self.show_place(value)


class _Slider(QSlider):
    """A slider that leaves the mouse wheel to the panel, whose scrolling would otherwise change it by accident."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class _Ticks(QWidget):
    """The labels under a slider."""

    def __init__(self) -> None:
        super().__init__()
        self._labels: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        app_theme().changed.connect(self.update)

    def show_labels(self, labels: tuple[str, ...]) -> None:
        self._labels = labels
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(100, current_theme().px(15))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        font = painter.font()
        font.setPixelSize(current_theme().px(11))
        painter.setFont(font)
        painter.setPen(current_theme().color("text_dim"))
        widths = [painter.fontMetrics().horizontalAdvance(label) + 2 for label in self._labels]
        for index, left in label_places(widths, self.width()):
            place = QRect(left, 0, widths[index], self.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, self._labels[index])
        painter.end()


def label_places(widths: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Return the index and the left edge of each label that has room under a slider of this width, in pixels.

    The first and the last are always shown; others only where they don't touch one before them or the last.
    """
    way = (width - _HANDLE) / max(len(widths) - 1, 1)
    wanted = [round(_HANDLE / 2 + index * way - each / 2) for index, each in enumerate(widths)]
    lefts = [max(0, min(left, width - each)) for left, each in zip(wanted, widths, strict=True)]
    shown: list[tuple[int, int]] = []
    free_from = 0
    for index, left in enumerate(lefts):
        is_last = index == len(lefts) - 1
        if is_last or not shown or free_from <= left <= lefts[-1] - widths[index] - _LABEL_GAP:
            shown.append((index, left))
            free_from = left + widths[index] + _LABEL_GAP
    return shown
