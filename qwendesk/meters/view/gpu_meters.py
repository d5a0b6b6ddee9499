"""One bar for each of several GPUs, with name, memory, utilisation and power."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.meters.meter_state import GpuBar
from qwendesk.meters.view import meter_text
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.vram_bar import VramBar

_LEAST_CELL, _LARGEST_CELL = 72, 280
"""Width in pixels of the bar of one GPU."""
_SPACING = 12
_BAR_HEIGHT = 14


class GpuMeters(QWidget):
    """Shows the bars of several GPUs beside each other, in the order in which the system lists them."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("meter.gpus")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._cells: list[_GpuMeter] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(_SPACING)

    def show_bars(self, bars: Sequence[GpuBar], gpus: Sequence[GpuReading]) -> None:
        """Show `bars` in the order of `gpus`, which are all readings of the last sample."""
        placed = meter_text.named_bars(bars, gpus)
        while len(self._cells) < len(placed):
            cell = _GpuMeter(len(self._cells))
            cell.memory.clicked.connect(self.clicked)
            self._cells.append(cell)
            self._row.addWidget(cell, 1)
        for index, cell in enumerate(self._cells):
            cell.setVisible(index < len(placed))
            if index < len(placed):
                name, bar = placed[index]
                cell.show_bar(bar, name)
        count = max(len(placed), 1)
        self.setMinimumWidth(count * _LEAST_CELL + (count - 1) * _SPACING)
        self.setMaximumWidth(count * _LARGEST_CELL + (count - 1) * _SPACING)


class _GpuMeter(QWidget):
    """The bar of one GPU below a line of text, which says less where there is less room."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._texts: Sequence[str] = ("",)
        self._label = QLabel()
        self._label.setObjectName(f"meter.gpu.{number}.text")
        self._label.setProperty("kind", "small")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.memory = VramBar()
        describe(self.memory, f"meter.gpu.{number}.memory", tr("Memory"), tr("Click to see the last five minutes"))
        self.memory.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.memory.setFixedHeight(_BAR_HEIGHT)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._label)
        column.addWidget(self.memory)

    def show_bar(self, bar: GpuBar, name: str) -> None:
        self._texts = meter_text.gpu_line_texts(bar, name)
        lines = [name, meter_text.gpu_text(bar.gpu), meter_text.gpu_tooltip(bar.gpu), meter_text.bar_tooltip((bar,))]
        self.memory.show_segments(bar.segments, spills=bool(bar.excess_bytes))
        self.memory.setToolTip("\n".join(line for line in dict.fromkeys(lines) if line))
        self.memory.setAccessibleName(tr("Video memory: {0}", self._texts[0]))
        self._label.setToolTip(self.memory.toolTip())
        self._show_what_fits()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_what_fits()

    def minimumSizeHint(self) -> QSize:
        return QSize(_LEAST_CELL, super().minimumSizeHint().height())

    def _show_what_fits(self) -> None:
        metrics = self._label.fontMetrics()
        fitting = (text for text in self._texts if metrics.horizontalAdvance(text) <= self.width())
        self._label.setText(next(fitting, self._texts[-1]))
