"""A popover with fields for a few generation options, above a button of the composer."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDoubleSpinBox, QFormLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.settings import table
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import ENTER_KEYS, TextButton, describe
from qwendesk.widgets.popups import Popover


class SamplingPopover(Popover):
    applied = Signal(dict)
    """Option name to text, in the form of `--set`."""

    def __init__(self, values: dict[str, float], parent: QWidget, title: str = "") -> None:
        super().__init__(parent)
        self.setObjectName("composer.custom")
        self.setAccessibleName(title or tr("Custom sampling"))
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
        use = TextButton(tr("Apply"), kind="primary")
        describe(use, "composer.custom.use", tr("Apply"), tr("Applies from your next message."))
        use.clicked.connect(self._apply)
        column.addWidget(use)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in ENTER_KEYS and isinstance(self.focusWidget(), QDoubleSpinBox):
            self._apply()
        else:
            super().keyPressEvent(event)

    def show_above(self, anchor: QWidget) -> None:
        self.adjustSize()
        corner = anchor.mapToGlobal(QPoint(0, 0))
        self.move(corner.x(), corner.y() - self.height() - 8)
        self.show()
        first = next(iter(self._fields.values()))
        first.setFocus()
        first.selectAll()

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
