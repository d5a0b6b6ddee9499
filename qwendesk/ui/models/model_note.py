"""One more thing to say about a model, with a small button where something can be done."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from qwendesk.hub.findings import Finding
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.model_texts import fix_hint


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
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        row.addWidget(text, 1)
        if finding.fix is not None:
            fix = finding.fix
            button = TextButton(keeper, fix.label, kind="link")
            describe(button, f"{name}.fix", fix.label, fix_hint(fix))
            button.clicked.connect(lambda: self.fix_asked.emit(fix))
            row.addWidget(button)
