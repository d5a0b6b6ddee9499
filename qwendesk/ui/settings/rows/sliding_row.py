"""A number with a slider under it, for what people feel their way to."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.text_row import NumberRow
from qwendesk.ui.settings.rows.words import tooltip

_HANDLE = 16


class SlidingRow(NumberRow):
    """`stops` are the values the slider takes, in order, and `labels` what stands under each; "" for nothing.

    `auto` is the value that leaves the choice to the app, with a button of its own; None where there is none.
    """

    moved = Signal(object)
    """While the slider is held; `chosen` follows when it is let go."""

    def __init__(
        self,
        keeper: ThemeKeeper,
        entry: Entry,
        prefix: str,
        stops: Sequence[float],
        labels: Sequence[str],
        auto: float | None = None,
    ) -> None:
        self._auto = auto
        self._auto_button: TextButton | None = None
        super().__init__(keeper, entry, prefix)
        self._stops: tuple[float, ...] = ()
        self._slider = QSlider(Qt.Orientation.Horizontal)
        describe(self._slider, f"{self.name}.slider", tr(entry.setting.label), tooltip(entry))
        self._slider.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._slider.setPageStep(1)
        self._ticks = _Ticks(keeper)
        self.set_stops(stops, labels)
        self._slider.valueChanged.connect(self._on_moved)
        self._slider.sliderReleased.connect(lambda: self.chosen.emit(self._stop()))
        self.stack()
        self._row.insertWidget(2, self._slider)
        self._row.insertWidget(3, self._ticks)

    def set_stops(self, stops: Sequence[float], labels: Sequence[str]) -> None:
        """Another model has other stops."""
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
        """Where the slider stands for what Auto chose."""
        if not self._slider.isSliderDown():
            self._slider.blockSignals(True)
            self._slider.setValue(min(bisect_left(self._stops, value), len(self._stops) - 1))
            self._slider.blockSignals(False)

    def _put_before(self) -> None:
        super()._put_before()
        if self._auto is not None:
            button = TextButton(self.keeper, tr("Auto"), kind="tab")
            button.setCheckable(True)
            self.put_editor(button, "auto")
            button.clicked.connect(lambda: self.chosen.emit(self._auto))
            self._auto_button = button

    def _stop(self) -> Any:
        return self._stops[self._slider.value()]

    def _on_moved(self) -> None:
        (self.moved if self._slider.isSliderDown() else self.chosen).emit(self._stop())

    def _show(self, value: Any) -> None:
        super()._show(value)
        if self._auto_button is not None:
            self._auto_button.setChecked(value == self._auto)
            if value == self._auto:
                self.field.show_text("")
                return
        self.show_place(value)


class _Ticks(QWidget):
    """The labels under a slider, each at its stop."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._labels: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        keeper.changed.connect(self.update)

    def show_labels(self, labels: tuple[str, ...]) -> None:
        self._labels = labels
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(100, self._keeper.theme.px(15))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        font = painter.font()
        font.setPixelSize(self._keeper.theme.px(11))
        painter.setFont(font)
        painter.setPen(self._keeper.theme.color("text_dim"))
        way = (self.width() - _HANDLE) / max(len(self._labels) - 1, 1)
        for index, label in enumerate(self._labels):
            width = painter.fontMetrics().horizontalAdvance(label) + 2
            left = round(_HANDLE / 2 + index * way - width / 2)
            left = max(0, min(left, self.width() - width))
            painter.drawText(QRect(left, 0, width, self.height()), Qt.AlignmentFlag.AlignCenter, label)
        painter.end()
