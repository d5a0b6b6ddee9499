"""What the draft takes of each device, as bars with words, and whose numbers they are."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.plan import DevicePlan
from qwendesk.core.units import show_bytes
from qwendesk.services.engine.draft import Draft
from qwendesk.ui.inspector import load_text
from qwendesk.ui.kit.buttons import TextButton, describe, restyle
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.meters.texts import segment_name
from qwendesk.ui.meters.vram_bar import VramBar

_TONES = {"good": "good", "warn": "notice", "bad": "error"}


class PriceCard(QFrame):
    """Shows a Draft; `asked` when the engine's own numbers are wanted."""

    asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self.setProperty("kind", "attachment")
        self.setObjectName("inspector.price")
        self._rows: list[_DeviceRow] = []
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        self._speed = _small("inspector.price.speed")
        self._source = _small("inspector.price.source")
        self._ask = TextButton(keeper, tr("Ask the engine"), kind="link")
        describe(
            self._ask, "inspector.price.ask", tr("Ask the engine"),
            tr("Replace the estimates by the engine's own numbers; nothing is loaded"),
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

    def show_draft(self, draft: Draft) -> None:
        devices = load_text.shown_devices(draft.plan) if draft.plan is not None else ()
        while len(self._rows) < len(devices):
            row = _DeviceRow(self._keeper, len(self._rows))
            self._rows.append(row)
            self._list.addWidget(row)
        for index, row in enumerate(self._rows):
            row.setVisible(index < len(devices))
            if index < len(devices):
                row.show_device(devices[index])
        speed = load_text.speed_text(draft.plan)
        self._speed.setText(speed)
        self._speed.setVisible(bool(speed))
        self._source.setText(load_text.source_text(draft))
        can_ask = draft.plan is not None and draft.plan.source == "estimate" and not draft.conflicts
        self._ask.setVisible(can_ask)
        self._ask.setEnabled(not draft.is_asking)


class _DeviceRow(QWidget):
    """Name, amount, words, bar."""

    def __init__(self, keeper: ThemeKeeper, number: int) -> None:
        super().__init__()
        name = f"inspector.price.{number}"
        self.setObjectName(name)
        self._name = _small(f"{name}.name")
        self._amount = QLabel()
        self._amount.setObjectName(f"{name}.amount")
        self._amount.setProperty("kind", "strong")
        self._fit = QLabel()
        self._fit.setObjectName(f"{name}.fit")
        self._bar = VramBar(keeper)
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

    def show_device(self, device: DevicePlan) -> None:
        parts = load_text.segments(device)
        self._name.setText(load_text.device_name(device))
        self._amount.setText(load_text.amount_text(device))
        text, tone = load_text.fit_text(device)
        self._fit.setText(text)
        restyle(self._fit, "kind", _TONES[tone])
        self._bar.show_segments(parts, spills=bool(device.missing_bytes))
        detail = "\n".join(f"{segment_name(each.kind)}: {show_bytes(each.n_bytes)}" for each in parts if each.n_bytes)
        self._bar.setToolTip(detail)
        self._bar.setAccessibleName(f"{self._name.text()}: {self._amount.text()}, {text}")


def _small(name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("kind", "small")
    label.setWordWrap(True)
    return label
