"""Shows as bars how much memory of each device the pending options need, and the source of these numbers."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QWidget

from qwendesk.core.devices import SegmentKind, short_card_name
from qwendesk.core.plan import DevicePlan
from qwendesk.core.translation import join_list, join_sentences, tr
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.view.load_options import load_text
from qwendesk.widgets.buttons import restyle
from qwendesk.widgets.kit import IconLabel, button, column, label, paragraph, row
from qwendesk.widgets.layouts import FlowLayout, ResponsivePairLayout, widget_with
from qwendesk.widgets.vram_bar import SEGMENT_ROLES, VramBar, segment_name

_TONES = {"good": "small", "warn": "notice", "bad": "error"}
# Least width of a device's name beside its numbers, in pixels.
_LEAST_NAME = 60


class MemoryCard(QWidget):
    """Shows a PendingLoad. Emits `asked` when the user wants exact numbers from the engine."""

    asked = Signal()

    def __init__(self, prefix: str = "inspector.memory", *, can_ask: bool = True) -> None:
        """Names of its controls begin with `prefix`. `can_ask` says whether exact numbers are offered."""
        super().__init__()
        self._prefix, self._can_ask = prefix, can_ask
        self.setObjectName(prefix)
        self._rows: list[_DeviceRow] = []
        self._list = column()
        self._legend = _Legend()
        self._speed = paragraph(kind="small", name=f"{prefix}.speed")
        self._source = paragraph(kind="small", name=f"{prefix}.source")
        self._ask = button(
            tr("Get exact numbers"), f"{prefix}.ask", kind="link",
            tip=tr("Let the engine calculate what it needs. Nothing is loaded."),
        )  # fmt: skip
        self._ask.clicked.connect(self.asked)
        foot = row(self._source)
        foot.setStretch(0, 1)
        foot.addWidget(self._ask, 0, Qt.AlignmentFlag.AlignTop)
        self.setLayout(column(self._list, self._legend, self._speed, foot, spacing=4))

    def show_pending(self, pending: PendingLoad, to_correct: str = "") -> None:
        """Show the plan, or instead of it that the option called `to_correct` has to be corrected first."""
        plan = pending.plan if not to_correct else None
        devices = load_text.shown_devices(plan) if plan is not None else ()
        names = load_text.device_names(plan) if plan is not None else {}
        while len(self._rows) < len(devices):
            made = _DeviceRow(f"{self._prefix}.{len(self._rows)}")
            self._rows.append(made)
            self._list.addWidget(made)
        for index, shown in enumerate(self._rows):
            shown.setVisible(index < len(devices))
            if index < len(devices):
                shown.show_device(devices[index], short_card_name(names[devices[index].name]))
        parts = [part for device in devices for part in load_text.segments(device) if part.n_bytes]
        self._legend.show_kinds({part.kind for part in parts} - {"free"})
        speed = load_text.speed_text(pending) if plan is not None else ""
        self._speed.setText(speed)
        self._speed.setVisible(bool(speed))
        is_loaded = pending.is_loaded and not pending.needs_reload
        source = join_sentences(load_text.source_text(plan, is_loaded=is_loaded), load_text.own_text(devices))
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
        self._name = label(kind="small", name=f"{name}.name", wraps=True)
        self._amount = label(kind="number", name=f"{name}.amount")
        self._fit = label(name=f"{name}.fit")
        self._bar = VramBar()
        self._bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._bar.unsetCursor()
        self._bar.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._bar.setObjectName(f"{name}.bar")
        numbers = widget_with(row(self._amount, self._fit))
        self.setLayout(column(ResponsivePairLayout(self._name, numbers, least=_LEAST_NAME), self._bar, spacing=0))

    def show_device(self, device: DevicePlan, name: str) -> None:
        parts = load_text.segments(device)
        self._name.setText(name)
        self._amount.setText(load_text.amount_text(device))
        text, tone = load_text.fit_text(device)
        self._fit.setText(text)
        restyle(self._fit, "kind", _TONES[tone])
        self._bar.show_segments(parts, spills=bool(device.missing_bytes))
        self._bar.setToolTip("\n".join(load_text.part_lines(device)))
        self._bar.setAccessibleName(tr("{0}: {1}", self._name.text(), join_list((self._amount.text(), text))))


class _Legend(QWidget):
    """Says which colour of a bar is what."""

    def __init__(self) -> None:
        super().__init__()
        line = FlowLayout(self, spacing=12)
        self._parts: dict[SegmentKind, QWidget] = {}
        for kind, role in SEGMENT_ROLES:
            part = widget_with(row(IconLabel("stop", role, 12), label(segment_name(kind), "small"), spacing=4))
            self._parts[kind] = part
            line.addWidget(part)

    def show_kinds(self, kinds: set[SegmentKind]) -> None:
        for kind, part in self._parts.items():
            part.setVisible(kind in kinds)
