"""The bar at the bottom: only what is known now. Meters of memory and GPU join it later."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from qwendesk.core.stats import AnswerStats
from qwendesk.engine.state import EngineState
from qwendesk.ui.kit.buttons import restyle
from qwendesk.ui.kit.labels import context_text, device_text, engine_text, speed_text
from qwendesk.ui.kit.text import tr

HEIGHT = 40


class MeterBar(QFrame):
    """The engine's state, where it runs, the last answer's speed, and how full the context is."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("meter.bar")
        self.setProperty("kind", "meterbar")
        self.setFixedHeight(HEIGHT)
        self._engine = QLabel()
        self._engine.setObjectName("meter.state")
        self._engine.setProperty("chip", "plain")
        self._engine.setToolTip(tr("State of the engine"))
        self._device = QLabel()
        self._device.setObjectName("meter.device")
        self._device.setProperty("kind", "small")
        self._device.setToolTip(tr("Where the model is, by what the engine allocated"))
        self._speed = QLabel()
        self._speed.setObjectName("meter.speed")
        self._speed.setProperty("kind", "number")
        self._speed.setToolTip(tr("Speed of the last answer"))
        self._context = QLabel()
        self._context.setObjectName("meter.context")
        self._context.setProperty("kind", "small")
        self._context.setToolTip(tr("Tokens in the engine's memory after the last answer, of what fits"))
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(18)
        for widget in (self._engine, self._device):
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch(1)
        for widget in (self._speed, self._context):
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        self._n_ctx = 0
        self._stats: AnswerStats | None = None
        self.show_state(EngineState())

    def show_state(self, state: EngineState) -> None:
        text, tone = engine_text(state)
        self._engine.setText(text)
        restyle(self._engine, "chip", tone)
        self._device.setText(device_text(state))
        self._n_ctx = state.report.n_ctx if state.report is not None else 0
        self._show_context()

    def show_stats(self, stats: AnswerStats | None) -> None:
        """The last answer's numbers; None in an empty chat."""
        self._stats = stats
        self._speed.setText("" if stats is None else speed_text(stats))
        self._show_context()

    def _show_context(self) -> None:
        self._context.setText(context_text(self._stats, self._n_ctx))
