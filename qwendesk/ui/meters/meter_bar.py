"""The bar at the bottom: memory, state, GPU, speed and context, only as far as they are known."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from qwendesk.core.stats import AnswerStats
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.spill import SpillState
from qwendesk.services.engine.measured import Comparison
from qwendesk.services.meters.bars import GpuBar, HistoryPoint, Meters, Segment
from qwendesk.ui.kit.buttons import describe, restyle
from qwendesk.ui.kit.labels import context_text, device_text, engine_text, speed_text
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.meters import texts
from qwendesk.ui.meters.vram_bar import Sparkline, VramBar

_AIR = 28
"""Above and below the text, together."""
_CURVE_POINTS = 40
_NARROW, _NARROWER, _NARROWEST = 1120, 900, 700
"""Below these widths the least important numbers go, in turn: RAM, GPU and curve, then the memory's numbers."""


class MeterBar(QFrame):
    """Shows Meters, the engine's state and the last answer's figures."""

    history_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self.setObjectName("meter.bar")
        self.setProperty("kind", "meterbar")
        self._keeper = keeper
        keeper.changed.connect(self._set_height)
        self._set_height()
        self._memory_name = _label("meter.memory.name", "small")
        self.memory = VramBar(keeper)
        describe(self.memory, "meter.memory", tr("Memory"), tr("Click for the last five minutes"))
        self.memory.clicked.connect(self.history_asked)
        self._memory_text = _label("meter.memory.text", "number")
        self._state = _label("meter.state")
        self._state.setProperty("chip", "plain")
        self._state.setToolTip(tr("State of the engine"))
        self._ram = _label("meter.ram", "small")
        self._gpu = _label("meter.gpu", "small")
        self._device = _label("meter.device", "small")
        self._device.setToolTip(tr("Where the model is, by what the engine allocated"))
        self._speed = _label("meter.speed", "number")
        self._speed.setToolTip(tr("Speed of the answer, or of the last one"))
        self._curve = Sparkline(keeper)
        self._curve.setObjectName("meter.curve")
        self._curve.setToolTip(tr("Speed while answers were written, in the last five minutes"))
        self._context = _label("meter.context", "small")
        self._context.setToolTip(tr("Tokens in the engine's memory after the last answer, of what fits"))
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(16)
        left: tuple[QWidget, ...]
        left = (self._memory_name, self.memory, self._memory_text, self._state, self._ram, self._gpu, self._device)
        for widget in left:
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch(1)
        right: tuple[QWidget, ...] = (self._speed, self._curve, self._context)
        for each in right:
            row.addWidget(each, 0, Qt.AlignmentFlag.AlignVCenter)
        self._n_ctx = 0
        self._stats: AnswerStats | None = None
        self._engine = EngineState()
        self._meters = Meters()
        self._compared: tuple[Comparison, ...] = ()
        self._has_curve = False
        self.show_state(self._engine)

    def show_state(self, state: EngineState) -> None:
        self._engine = state
        self._n_ctx = state.report.n_ctx if state.report is not None else 0
        self._show_all()

    def show_stats(self, stats: AnswerStats | None) -> None:
        """The last answer's numbers; None in an empty chat."""
        self._stats = stats
        self._show_all()

    def show_meters(
        self, meters: Meters, history: Sequence[HistoryPoint], compared: tuple[Comparison, ...] = ()
    ) -> None:
        """`compared`: what the load was predicted to take, and what it takes."""
        self._meters, self._compared = meters, compared
        speeds = [point.tok_s for point in history if point.tok_s is not None][-_CURVE_POINTS:]
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
        self._ram.setText("" if system is None else texts.ram_text(system))
        self._ram.setToolTip("" if system is None else texts.ram_tooltip(system))
        self._gpu.setText(texts.gpu_text(gpu))
        self._gpu.setToolTip(texts.gpu_tooltip(gpu))
        device = device_text(self._engine)
        if meters.state is SpillState.CPU_ONLY:
            device = " · ".join(part for part in (device or tr("On CPU"), texts.cpu_text(meters)) if part)
        self._device.setText(device)
        live = meters.tok_s if meters.answering else None
        last = "" if self._stats is None or self._engine.report is None else speed_text(self._stats)
        self._speed.setText(texts.rate_text(live) if live is not None else last)
        self._context.setText(context_text(self._stats, self._n_ctx))
        self._show_what_fits()

    def _show_chip(self) -> None:
        """How the model fits, once one runs; before that, and after a fault, what the engine does."""
        state = self._meters.state
        runs = self._engine.phase in (Phase.READY, Phase.ANSWERING)
        if runs and state is not None:
            text, tone = texts.state_text(state)
            tip = texts.state_tooltip(state)
        else:
            text, tone = engine_text(self._engine)
            tip = tr("State of the engine")
        self._state.setText(text)
        self._state.setToolTip(tip)
        restyle(self._state, "chip", tone)

    def _show_memory(self) -> None:
        """Video memory where there is some, else the RAM."""
        bars, snapshot = self._model_bars(), self._meters.snapshot
        if bars:
            self._memory_name.setText(tr("VRAM"))
            spills = any(bar.excess_bytes for bar in bars)
            self.memory.show_segments(_added(bars), spills=spills)
            self._memory_text.setText(texts.bar_text(bars))
            self.memory.setToolTip(texts.bar_tooltip(bars, self._compared))
            self.memory.setAccessibleName(tr("Video memory: {0}", texts.bar_text(bars)))
            return
        system = snapshot.system if snapshot is not None else None
        if system is None or system.ram_used_bytes is None or system.ram_total_bytes is None:
            return
        used, total = system.ram_used_bytes, system.ram_total_bytes
        ours = min(system.engine_ram_bytes or 0, used)
        segments = (Segment("weights", ours), Segment("other", used - ours), Segment("free", total - used))
        self._memory_name.setText(tr("RAM"))
        self.memory.show_segments(segments)
        self._memory_text.setText(texts.pair_text(used, total))
        self.memory.setToolTip(tr("{0}\nClick for the last five minutes", texts.ram_tooltip(system, self._compared)))
        self.memory.setAccessibleName(tr("RAM: {0}", texts.pair_text(used, total)))

    def _model_bars(self) -> tuple[GpuBar, ...]:
        """The GPUs the model is on; without a model the first GPU."""
        bars = self._meters.bars
        if self._engine.report is None:
            return bars[:1]
        ours = tuple(bar for bar in bars if any(each.kind not in ("other", "free") for each in bar.segments))
        return ours or bars[:1]

    def _set_height(self) -> None:
        theme = self._keeper.theme
        self.setFixedHeight(theme.px(12) + theme.space(_AIR))

    def _show_what_fits(self) -> None:
        width, known = self.width(), self._meters.snapshot is not None
        has_vram = bool(self._meters.bars)
        self._ram.setVisible(has_vram and width >= _NARROW)
        self._gpu.setVisible(bool(self._gpu.text()) and width >= _NARROWER)
        self._device.setVisible(not has_vram or (not self._gpu.text() and width >= _NARROWER))
        self._curve.setVisible(self._has_curve and width >= _NARROWER)
        for widget in (self._memory_name, self.memory):
            widget.setVisible(known)
        self._memory_text.setVisible(known and width >= _NARROWEST)


def _added(bars: tuple[GpuBar, ...]) -> tuple[Segment, ...]:
    """Several GPUs as one bar."""
    return tuple(
        Segment(kind, sum(each.n_bytes for bar in bars for each in bar.segments if each.kind == kind))
        for kind, _ in texts.SEGMENT_ROLES
    )


def _label(name: str, kind: str = "") -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    if kind:
        label.setProperty("kind", kind)
    return label
