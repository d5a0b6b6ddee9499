"""A row for a number with a slider, for values that users find by trial and error."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QSlider

from qwendesk.core.settings import Entry
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.rows.option_texts import edit_text, tooltip
from qwendesk.widgets.rows.text_row import NumberRow


class SlidingRow(NumberRow):
    """A row with a slider beside the field. `stops` are the slider's values in order."""

    def __init__(self, entry: Entry, prefix: str, stops: Sequence[float]) -> None:
        super().__init__(entry, prefix)
        self._stops = tuple(stops)
        self._slider = _Slider(Qt.Orientation.Horizontal)
        describe(self._slider, f"{self.name}.slider", tr(entry.setting.label), tooltip(entry))
        self._slider.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._slider.setPageStep(1)
        self._slider.setRange(0, len(stops) - 1)
        self._controls.append(self._slider)
        self.setFocusProxy(self._slider)
        self._slider.valueChanged.connect(self._on_moved)
        self._slider.sliderReleased.connect(lambda: self._choose(self._stop()))
        self.stack()
        self._editors.insertWidget(0, self._slider, 1)
        self._editors.setStretch(self._editors.count() - 1, 0)

    def _stop(self) -> Any:
        return self._stops[self._slider.value()]

    def _on_moved(self) -> None:
        if self._slider.isSliderDown():
            self.field.show_text(edit_text(self._stop()))
        else:
            self._choose(self._stop())

    def _show(self, value: Any) -> None:
        super()._show(value)
        if not self._slider.isSliderDown():
            self._slider.blockSignals(True)
            self._slider.setValue(min(bisect_left(self._stops, value), len(self._stops) - 1))
            self._slider.blockSignals(False)


class _Slider(QSlider):
    """A slider that leaves the mouse wheel to the panel, whose scrolling would otherwise change it by accident."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
