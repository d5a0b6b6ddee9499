"""One more thing to say about a model, with a small button where something can be done."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.hub.findings import Finding, Fix
from qwendesk.ui.kit.beside import BesideOrBelow
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.model_texts import fix_hint

_LEAST_WORDS = 240
"""Pixels that the words have beside the button."""


class ModelNote(QWidget):
    """Shows one Finding below the state."""

    fix_asked = Signal(object)
    """Its Fix."""

    def __init__(self, keeper: ThemeKeeper, finding: Finding, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        text = QLabel(finding.message)
        text.setObjectName(f"{name}.text")
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.setProperty("kind", "small")
        text.setWordWrap(True)
        text.setToolTip(finding.evidence)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        if finding.fix is None:
            column.addWidget(text)
        else:
            button = self._button(keeper, finding.fix, f"{name}.fix")
            column.addLayout(BesideOrBelow(text, button, least=_LEAST_WORDS, spacing=16))

    def _button(self, keeper: ThemeKeeper, fix: Fix, name: str) -> TextButton:
        button = TextButton(keeper, fix.label, kind="link")
        describe(button, name, fix.label, fix_hint(fix))
        button.clicked.connect(lambda: self.fix_asked.emit(fix))
        return button
