"""The row of an engine in the list: its state, its devices, and buttons to use, try or delete it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QRadioButton, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.engines.view.row_texts import EngineLine
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.layouts import DensitySpacing

_INDENT = 25
"""Indentation that aligns text with the title of the radio button above it."""


class EngineRow(QWidget):
    """Shows an EngineLine. `name` is the engine's name; "" is the row of the best one that runs.

    Controls have names such as "engine.list.NAME.try".
    """

    use_asked = Signal()
    try_asked = Signal()
    delete_asked = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        prefix = f"engine.list.{name or 'best'}"
        self.setObjectName(prefix)
        self._radio = QRadioButton()
        # Arrow keys must not change the engine, only a click or the space bar.
        self._radio.setAutoExclusive(False)
        describe(self._radio, f"{prefix}.use", "")
        self._radio.clicked.connect(self._on_clicked)
        self._is_wanted = False
        self._chip = QLabel()
        self._chip.setObjectName(f"{prefix}.state")
        self._chip.setProperty("chip", "plain")
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._details = _label(f"{prefix}.details", "small")
        self._sentence = _label(f"{prefix}.sentence", "small")
        self._try = TextButton(tr("Try again"))
        restyle(self._try, "compact", "true")
        describe(self._try, f"{prefix}.try", tr("Try again"))
        self._try.clicked.connect(self.try_asked)
        self._delete = TextButton(tr("Delete…"))
        restyle(self._delete, "compact", "true")
        describe(self._delete, f"{prefix}.delete", tr("Delete…"))
        self._delete.clicked.connect(self.delete_asked)
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._radio)
        first.addStretch(1)
        first.addWidget(self._try)
        first.addWidget(self._delete)
        first.addWidget(self._chip)
        below = QVBoxLayout()
        below.setContentsMargins(_INDENT, 0, 0, 0)
        below.setSpacing(2)
        below.addWidget(self._details)
        below.addWidget(self._sentence)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 6)
        column.setSpacing(2)
        DensitySpacing(column)
        column.addLayout(first)
        column.addLayout(below)

    def show_line(self, line: EngineLine, *, can_choose: bool) -> None:
        """Show an engine. `can_choose` is False while another change is in progress."""
        self._show_radio(line.title, is_wanted=line.is_wanted, can_use=line.can_use and can_choose)
        self._radio.setToolTip(line.sentence if not line.can_use else tr("Use this engine"))
        self._chip.setText(line.chip)
        self._chip.setAccessibleName(tr("State: {0}", line.chip))
        restyle(self._chip, "chip", line.tone)
        _show(self._details, line.details)
        _show(self._sentence, line.sentence)
        restyle(self._sentence, "kind", "notice" if line.tone == "warn" else "small")
        self._try.setVisible(bool(line.try_text))
        self._try.setEnabled(can_choose)
        self._try.setText(line.try_text)
        self._try.setAccessibleName(tr("{0}: {1}", line.try_text, line.title))
        self._try.setToolTip(tr("Start it in a separate process, even if it crashed before"))
        self._delete.setVisible(line.can_delete)
        self._delete.setAccessibleName(tr("Delete {0}", line.title))
        self._delete.setToolTip(tr("Delete this engine's folder"))

    def show_best(self, text: str, *, is_wanted: bool, can_choose: bool) -> None:
        """Show the row of the best one that runs; `text` tells which one that is."""
        self._show_radio(tr("Automatic (recommended)"), is_wanted=is_wanted, can_use=can_choose)
        self._radio.setToolTip(tr("Always use the best engine that runs on this PC"))
        _show(self._details, text)
        for part in (self._chip, self._sentence, self._try, self._delete):
            part.hide()

    def _show_radio(self, title: str, *, is_wanted: bool, can_use: bool) -> None:
        self._is_wanted = is_wanted
        self._radio.setText(title)
        self._radio.setAccessibleName(title)
        self._radio.setChecked(is_wanted)
        self._radio.setEnabled(can_use)

    def _on_clicked(self) -> None:
        # Show the new choice only after it has been made.
        self._radio.setChecked(self._is_wanted)
        if not self._is_wanted:
            self.use_asked.emit()


def _label(name: str, kind: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _show(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))
