"""Sampling set by hand: the four values that the presets choose, in a small sheet above the style button."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QDoubleSpinBox, QFormLayout, QFrame, QLabel, QVBoxLayout, QWidget

from qwendesk.core.options import GenerationOptions
from qwendesk.core.settings import table
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class SamplingPopover(QFrame):
    """`applied` carries option name to text, as `--set` takes it."""

    applied = Signal(dict)

    def __init__(self, keeper: ThemeKeeper, values: dict[str, float], parent: QWidget, title: str = "") -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("kind", "popover")
        self.setObjectName("composer.custom")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(12)
        heading = QLabel(title or tr("Custom sampling"))
        heading.setProperty("kind", "heading")
        column.addWidget(heading)
        form = QFormLayout()
        form.setHorizontalSpacing(24)
        form.setVerticalSpacing(8)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._fields: dict[str, QDoubleSpinBox] = {}
        for key, value in values.items():
            self._fields[key] = self._field(key, value)
            form.addRow(tr(table(GenerationOptions)[key].setting.label), self._fields[key])
        column.addLayout(form)
        use = TextButton(keeper, tr("Use these"), kind="primary")
        describe(use, "composer.custom.use", tr("Use these"), tr("Use these values for the next answers"))
        use.clicked.connect(self._apply)
        column.addWidget(use)

    def show_above(self, anchor: QWidget) -> None:
        self.adjustSize()
        corner = anchor.mapToGlobal(QPoint(0, 0))
        self.move(corner.x(), corner.y() - self.height() - 8)
        self.show()
        next(iter(self._fields.values())).setFocus()

    def _field(self, key: str, value: float) -> QDoubleSpinBox:
        entry = table(GenerationOptions)[key]
        whole = entry.type is int
        field = QDoubleSpinBox(decimals=0 if whole else 2, singleStep=1 if whole else 0.05)
        field.setRange(entry.setting.low or 0, min(entry.setting.high or 1e6, 1e6))
        field.setValue(value)
        field.setMinimumWidth(96)
        field.lineEdit().setTextMargins(8, 0, 8, 0)
        describe(field, f"composer.custom.{key}", tr(entry.setting.label), tr(entry.setting.help))
        return field

    def _apply(self) -> None:
        texts = {
            key: f"{field.value():.0f}" if field.decimals() == 0 else f"{field.value():.2f}"
            for key, field in self._fields.items()
        }
        self.applied.emit(texts)
        self.close()
