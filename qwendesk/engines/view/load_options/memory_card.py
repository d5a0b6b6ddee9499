"""Shows as bars how much memory of each device the pending options need, and the source of these numbers."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.plan import DevicePlan
from qwendesk.core.translation import join_list, tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.view.load_options import load_text
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.vram_bar import VramBar, segment_name

_TONES = {"good": "good", "warn": "notice", "bad": "error"}


class MemoryCard(QFrame):
    """Shows a PendingLoad. Emits `asked` when the user wants exact numbers from the engine."""

    asked = Signal()

    def __init__(self, prefix: str = "inspector.memory", *, can_ask: bool = True) -> None:
        """Names of its controls begin with `prefix`. `can_ask` says whether exact numbers are offered."""
        super().__init__()
        self._prefix, self._can_ask = prefix, can_ask
        self.setProperty("kind", "attachment")
        self.setObjectName(prefix)
        self._rows: list[_DeviceRow] = []
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        self._speed = _small(f"{prefix}.speed")
        self._source = _small(f"{prefix}.source")
        self._ask = TextButton(tr("Get exact numbers"), kind="link")
        describe(
            self._ask, f"{prefix}.ask", tr("Get exact numbers"),
            tr("Let the engine calculate what it needs. Nothing is loaded."),
        )  # fmt: skip
        self._ask.clicked.connect(self.asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(4)
        column.addLayout(self._list)
        column.addWidget(self._speed)
        foot = QHBoxLayout()
        foot.addWidget(self._source, 1)
        foot.addWidget(self._ask, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(foot)

    def show_pending(self, pending: PendingLoad, to_correct: str = "") -> None:
        """Show the plan, or instead of it that the option called `to_correct` has to be corrected first."""
        plan = pending.plan if not to_correct else None
        devices = load_text.shown_devices(plan) if plan is not None else ()
        names = load_text.device_names(plan) if plan is not None else {}
        while len(self._rows) < len(devices):
            row = _DeviceRow(f"{self._prefix}.{len(self._rows)}")
            self._rows.append(row)
            self._list.addWidget(row)
        for index, row in enumerate(self._rows):
            row.setVisible(index < len(devices))
            if index < len(devices):
                row.show_device(devices[index], names[devices[index].name])
        speed = load_text.speed_text(plan, pending.measured_tok_s)
        self._speed.setText(speed)
        self._speed.setVisible(bool(speed))
        source = load_text.source_text(plan, is_loaded=pending.is_loaded and not pending.needs_reload)
        self._source.setText(
            tr("No estimate yet. Correct this option first: {0}.", to_correct) if to_correct else source
        )
        can_ask = self._can_ask and plan is not None and plan.source == "estimate" and not pending.conflicts
        self._ask.setVisible(can_ask)
        self._ask.setEnabled(not pending.is_asking)
        self.setVisible(plan is not None or bool(to_correct))


class _DeviceRow(QWidget):
    """Shows a device: its name, the amount of memory, whether that fits, and a bar."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self._name = _small(f"{name}.name")
        self._amount = QLabel()
        self._amount.setObjectName(f"{name}.amount")
        self._amount.setProperty("kind", "strong")
        self._fit = QLabel()
        self._fit.setObjectName(f"{name}.fit")
        self._bar = VramBar()
        self._bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._bar.unsetCursor()
        self._bar.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._bar.setObjectName(f"{name}.bar")
        words = QHBoxLayout()
        words.addWidget(self._amount)
        words.addStretch(1)
        words.addWidget(self._fit)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(self._name)
        column.addLayout(words)
        column.addWidget(self._bar)

    def show_device(self, device: DevicePlan, name: str) -> None:
        parts = load_text.segments(device)
        self._name.setText(name)
        self._amount.setText(load_text.amount_text(device))
        text, tone = load_text.fit_text(device)
        self._fit.setText(text)
        restyle(self._fit, "kind", _TONES[tone])
        self._bar.show_segments(parts, spills=bool(device.missing_bytes))
        lines = (tr("{0}: {1}", segment_name(each.kind), show_bytes(each.n_bytes)) for each in parts if each.n_bytes)
        self._bar.setToolTip("\n".join(lines))
        self._bar.setAccessibleName(tr("{0}: {1}", self._name.text(), join_list((self._amount.text(), text))))


def _small(name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("kind", "small")
    label.setWordWrap(True)
    return label
