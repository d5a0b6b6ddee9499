"""The bar at the bottom of the window: memory, state, GPUs, speed and context, as far as they are known."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.conversation import Answer
from qwendesk.core.devices import Segment
from qwendesk.core.plan import Comparison
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.meter_state import GpuBar, MeterState
from qwendesk.meters.services import MeterServices
from qwendesk.meters.view import meter_text
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import StatusButton, describe, restyle
from qwendesk.widgets.display_texts import context_text, context_tone, device_text, engine_text, speed_text
from qwendesk.widgets.layouts import laid_out_once
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.theme_keeper import app_theme, current_theme
from qwendesk.widgets.vram_bar import VramBar

if TYPE_CHECKING:
    from qwendesk.meters.view.history_popup import HistoryPopup

# Total space above and below the text.
_VERTICAL_SPACE = 28
_CURVE_POINTS = 40
# Space in pixels beside the bar's content, and between its parts.
_MARGIN = _SPACING = 16
# Least width in pixels of the memory's bar.
_LEAST_MEMORY = 80
# Widths below which numbers are hidden: first the RAM (with several GPUs at the first width, otherwise at the second),
# then GPU and curve, then the memory's numbers.
_WIDE, _NARROW, _NARROWER, _NARROWEST = 1400, 1120, 900, 700


class MeterBar(QFrame):
    """Shows MeterState, the engine's state and the last answer's figures. What can be clicked leads to more of it."""

    def __init__(self, services: MeterServices, navigation: Navigation) -> None:
        super().__init__()
        self._services, self._navigation = services, navigation
        self.setObjectName("meter.bar")
        self.setProperty("kind", "meterbar")
        app_theme().changed.connect(self._set_height)
        self._set_height()
        self._memory_name = _label("meter.memory.name", "small")
        self.memory = VramBar()
        describe(self.memory, "meter.memory", tr("Memory"), tr("Click to see the last five minutes"))
        self.memory.clicked.connect(self.show_history)
        self.memory.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.memory.setMinimumWidth(_LEAST_MEMORY)
        self._memory_text = _label("meter.memory.text", "number")
        self.gpus = GpuMeters()
        self.gpus.clicked.connect(self.show_history)
        self._state = StatusButton("meter.state", tr("Engine state"), chip="plain")
        self._state.clicked.connect(lambda: navigation.page_asked.emit("engine"))
        self._ram = _label("meter.ram", "small")
        self._gpu = _label("meter.gpu", "small")
        self._device = _label("meter.device", "small")
        self._device.setToolTip(tr("Where the model is loaded"))
        self._speed = StatusButton("meter.speed", tr("Why this speed?"))
        self._speed.setToolTip(tr("Speed of the current or last answer. Click to see why it's this fast."))
        self._speed.clicked.connect(self._ask_why)
        self._curve = Sparkline()
        self._curve.setObjectName("meter.curve")
        self._curve.setToolTip(tr("Speed of answers in the last five minutes"))
        self.context = StatusButton("meter.context", tr("What fills the context"))
        self.context.setProperty("quiet", "true")
        row = QHBoxLayout(self)
        row.setContentsMargins(_MARGIN, 0, _MARGIN, 0)
        row.setSpacing(_SPACING)
        left: tuple[QWidget, ...]
        left = (self._memory_name, self.memory, self._memory_text, self._state, self._ram, self._gpu, self._device)
        row.addWidget(self.gpus, 1000, Qt.AlignmentFlag.AlignVCenter)
        for widget in left:
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch(1)
        right: tuple[QWidget, ...] = (self._speed, self._curve, self.context)
        for each in right:
            row.addWidget(each, 0, Qt.AlignmentFlag.AlignVCenter)
        self._n_ctx = 0
        self._answer: Answer | None = None
        self._counted_tokens: int | None = None
        self._live_tokens = 0
        self._engine = EngineState()
        self._meters = MeterState()
        self._compared: tuple[Comparison, ...] = ()
        self._has_curve = False
        self.show_state(self._engine)
        meters, comparisons = services.service.state, services.comparer.comparisons
        bind(self, meters, lambda state: self.show_meters(state, comparisons.value))
        bind(self, services.measuring, lambda _name: self._show_chip())
        bind(self, comparisons, lambda compared: self.show_meters(meters.value, compared))

    @cached_property
    def history(self) -> "HistoryPopup":
        # Imported only now, because most sessions never open it.
        from qwendesk.meters.view.history_popup import HistoryPopup  # noqa: PLC0415

        return HistoryPopup(self, self._services)

    def show_history(self) -> None:
        """Open the last five minutes above the memory's bar."""
        self.history.show_above(self.gpus if self._has_several else self.memory)

    def _ask_why(self) -> None:
        self._navigation.why_asked.emit(self._answer or Answer())

    @property
    def _has_several(self) -> bool:
        return len(self._meters.bars) > 1

    def show_state(self, state: EngineState) -> None:
        self._engine = state
        self._n_ctx = state.report.n_ctx if state.report is not None else 0
        self._show_all()

    def show_answer(self, answer: Answer | None) -> None:
        """Show the figures of the last answer; None for an empty chat. The speed is shown only of the loaded model."""
        self._answer, self._live_tokens = answer, 0
        self._show_all()

    def show_live_tokens(self, tokens: int) -> None:
        """Show how many tokens an answer that is being generated has in the context; 0 if unknown."""
        self._live_tokens = tokens
        self._show_context()

    def show_counted_tokens(self, tokens: int | None) -> None:
        """Show how many tokens of the context the next message begins with; None for those of the last answer."""
        self._counted_tokens = tokens
        self._show_context()

    def show_meters(self, meters: MeterState, compared: tuple[Comparison, ...]) -> None:
        """Show the meters. `compared` is the predicted and actual memory use of the load."""
        self._meters, self._compared = meters, compared
        speeds = [point.tok_s for point in meters.history if point.tok_s is not None][-_CURVE_POINTS:]
        bad = meters.state in (SpillState.SPILLING, SpillState.SUSPECTED)
        self._curve.show_values(speeds, "text_bad" if bad else "text_good")
        self._has_curve = len(speeds) > 1
        self._show_all()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_what_fits()

    def _show_all(self) -> None:
        self._show_chip()
        self._show_memory()
        meters = self._meters
        system = meters.snapshot.system if meters.snapshot is not None else None
        gpu = meters.bars[0].gpu if meters.bars else None
        if gpu is None and meters.snapshot is not None and meters.snapshot.gpus:
            gpu = meters.snapshot.gpus[0]
        self._ram.setText(meter_text.ram_text(meters.ram))
        self._ram.setToolTip("" if system is None else meter_text.ram_tooltip(system))
        self._gpu.setText(meter_text.gpu_text(gpu))
        self._gpu.setToolTip(meter_text.gpu_tooltip(gpu))
        device = device_text(self._engine)
        if meters.state is SpillState.CPU_ONLY:
            device = " · ".join(part for part in (device or tr("On CPU"), meter_text.cpu_text(meters)) if part)
        self._device.setText(device)
        live = meters.tok_s if meters.answering else None
        answer, report = self._answer, self._engine.report
        is_of_model = answer is not None and report is not None and answer.model in ("", report.title)
        last = speed_text(answer.stats) if answer is not None and is_of_model else ""
        self._speed.setText(meter_text.rate_text(live) if live is not None else last)
        self._show_context()

    def _show_context(self) -> None:
        last = self._answer.stats.total_tokens if self._answer is not None else 0
        used = self._live_tokens or (last if self._counted_tokens is None else self._counted_tokens)
        text, (tone, tip) = context_text(used, self._n_ctx), context_tone(used, self._n_ctx)
        if self._live_tokens and text == self.context.text():
            return  # tokens come faster than the text changes
        self.context.setText(text)
        self.context.setToolTip(tip)
        restyle(self.context, "tone", tone)
        self._show_what_fits()

    def _show_chip(self) -> None:
        """Show how the model fits while one is ready or answering, else the state of the engine."""
        state = self._meters.state
        runs = self._engine.phase in (Phase.READY, Phase.ANSWERING) and not self._engine.is_silent
        if runs and state is not None:
            text, tone = meter_text.state_text(state)
            tip = meter_text.state_tooltip(state)
        else:
            text, tone = engine_text(self._engine, is_measuring=bool(self._services.measuring.value))
            tip = tr("Engine state")
        self._state.setText(text)
        self._state.setToolTip("\n".join((tip, tr("Open the Engine page"))))
        restyle(self._state, "chip", tone)

    def _show_memory(self) -> None:
        """Show the memory that the model is in, or without a model the video memory if there is any, else the RAM."""
        bars, snapshot = self._meters.bars, self._meters.snapshot
        if self._has_several and snapshot is not None:
            self.gpus.show_bars(bars, snapshot.gpus)
            return
        if self._meters.shared:
            self._show_shared_memory(self._meters.shared)
            return
        if bars:
            self._memory_name.setText(tr("VRAM"))
            self.memory.show_segments(bars[0].segments, spills=bool(bars[0].excess_bytes))
            self._memory_text.setText(meter_text.bar_text(bars))
            self.memory.setToolTip(meter_text.bar_tooltip(bars, self._compared))
            self.memory.setAccessibleName(tr("Video memory: {0}", meter_text.bar_text(bars)))
            return
        if snapshot is None or not self._meters.ram:
            return
        text, system = meter_text.segments_text(self._meters.ram), snapshot.system
        self._memory_name.setText(tr("RAM"))
        self.memory.show_segments(self._meters.ram)
        self._memory_text.setText(text)
        self.memory.setToolTip(
            tr("{0}\nClick to see the last five minutes", meter_text.ram_tooltip(system, self._compared))
        )
        self.memory.setAccessibleName(tr("RAM: {0}", text))

    def _show_shared_memory(self, segments: tuple[Segment, ...]) -> None:
        """Show the memory of a PC whose GPU uses the RAM."""
        text = meter_text.segments_text(segments)
        self._memory_name.setText(tr("Shared memory"))
        self.memory.show_segments(segments)
        self._memory_text.setText(text)
        self.memory.setToolTip(meter_text.shared_tooltip(segments, self._compared))
        self.memory.setAccessibleName(tr("Shared memory: {0}", text))

    def _set_height(self) -> None:
        theme = current_theme()
        self.setFixedHeight(theme.px(12) + theme.space(_VERTICAL_SPACE))

    def _show_what_fits(self) -> None:
        """Show what is known, and leave out the less important parts if there isn't room for all of it."""
        width, known = self.width(), self._meters.snapshot is not None
        has_vram, several = bool(self._meters.bars), self._has_several
        wanted: dict[QWidget, bool] = {
            self._ram: has_vram and width >= (_WIDE if several else _NARROW),
            self._gpu: bool(self._gpu.text()) and width >= _NARROWER and not several,
            self._curve: self._has_curve and width >= _NARROWER,
            self._memory_text: known and width >= _NARROWEST and not several,
            self._device: not has_vram or (not self._gpu.text() and width >= _NARROWER and not several),
            self._memory_name: known and not several,
            self.memory: known and not several,
            self._speed: bool(self._speed.text()),
            self.gpus: several,
        }
        always = (self._state, self.context)
        for widget in wanted:
            shown = [*always, *(each for each, is_wanted in wanted.items() if is_wanted)]
            widths = [each.minimumWidth() or each.sizeHint().width() for each in shown]
            if sum(widths) + _SPACING * (len(shown) - 1) + 2 * _MARGIN <= width:
                break
            wanted[widget] = False
        with laid_out_once(self):
            for widget, is_wanted in wanted.items():
                widget.setVisible(is_wanted)


def _label(name: str, kind: str = "") -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    if kind:
        label.setProperty("kind", kind)
    return label


# Width in pixels of the bar of one GPU.
_LEAST_CELL, _LARGEST_CELL = 72, 280
_GPU_SPACING = 12
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
        self._row.setSpacing(_GPU_SPACING)

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
        self.setMinimumWidth(count * _LEAST_CELL + (count - 1) * _GPU_SPACING)
        self.setMaximumWidth(count * _LARGEST_CELL + (count - 1) * _GPU_SPACING)


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


_CURVE_SIZE = QSize(80, 20)


class Sparkline(QWidget):
    """The latest speeds as a curve without numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._values: tuple[float, ...] = ()
        self._role = "text_good"
        self.setFixedSize(_CURVE_SIZE)
        app_theme().changed.connect(self.update)

    def show_values(self, values: Sequence[float], role: str) -> None:
        values = tuple(values)
        if (values, role) != (self._values, self._role):
            self._values, self._role = values, role
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if len(self._values) < 2:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(1, 3, -1, -3)
        painter.setPen(QPen(current_theme().color(self._role), 1.5))
        painter.drawPolyline(curve(self._values, area, max(self._values)))
        painter.end()


def curve(values: Sequence[float], area: QRectF, highest: float) -> QPolygonF:
    """Return a curve of the values from left to right over the whole area, with `highest` at its top."""
    step = area.width() / max(len(values) - 1, 1)
    scale = area.height() / highest if highest > 0 else 0.0
    return QPolygonF(
        [QPointF(area.left() + index * step, area.bottom() - value * scale) for index, value in enumerate(values)]
    )
