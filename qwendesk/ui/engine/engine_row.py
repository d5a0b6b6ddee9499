"""One engine of the list: whether it is used, what it runs on, and what can be done with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QRadioButton, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.ui.engine.row_texts import EngineLine
from qwendesk.ui.kit.buttons import TextButton, describe, restyle
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_INDENT = 25
"""Text under a radio button begins where its title does."""


class EngineRow(QWidget):
    """`name` is the engine's; "" for the row of the best one. Controls are called "engine.list.NAME.try"."""

    use_asked = Signal()
    try_asked = Signal()
    delete_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, name: str) -> None:
        super().__init__()
        prefix = f"engine.list.{name or 'best'}"
        self.setObjectName(prefix)
        self._radio = QRadioButton()
        # Only a click or the space bar chooses: an engine is not changed by walking over it with the arrow keys.
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
        self._try = TextButton(keeper, tr("Try again"))
        restyle(self._try, "compact", "true")
        describe(self._try, f"{prefix}.try", tr("Try again"))
        self._try.clicked.connect(self.try_asked)
        self._delete = TextButton(keeper, tr("Delete…"))
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
        Airy(keeper, column)
        column.addLayout(first)
        column.addLayout(below)

    def show_line(self, line: EngineLine, *, can_choose: bool) -> None:
        """`can_choose`: no other change is under way."""
        self._show_radio(line.title, is_wanted=line.is_wanted, can_use=line.can_use and can_choose)
        self._radio.setToolTip(line.sentence if not line.can_use else tr("Use this engine from now on"))
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
        self._try.setToolTip(tr("Start it in a process of its own, whatever it did before"))
        self._delete.setVisible(line.can_delete)
        self._delete.setAccessibleName(tr("Delete {0}", line.title))
        self._delete.setToolTip(tr("Delete this engine's folder; it asks first"))

    def show_best(self, text: str, *, is_wanted: bool, can_choose: bool) -> None:
        """The row of the best one that runs."""
        self._show_radio(tr("Best one that runs"), is_wanted=is_wanted, can_use=can_choose)
        self._radio.setToolTip(tr("Take the best engine that runs on this PC, now and after every change"))
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
        # What is chosen is shown when it is known, not when it is asked for.
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
