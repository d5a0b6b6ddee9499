"""What is being done with a model: words, a bar, and a button to stop it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QWidget

from qwendesk.ui.bridges.models import Work
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.model_texts import work_text

_STEPS = 1000


class WorkBar(QWidget):
    """Shows a Work, or hides. Downloads are stopped where they are listed."""

    cancelled = Signal()

    def __init__(self, keeper: ThemeKeeper, prefix: str) -> None:
        super().__init__()
        self._text = QLabel()
        self._text.setObjectName(f"{prefix}.work")
        self._text.setProperty("kind", "small")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._bar = QProgressBar()
        self._bar.setObjectName(f"{prefix}.progress")
        self._bar.setAccessibleName(tr("Progress"))
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self._cancel = TextButton(keeper, tr("Cancel"), kind="quiet")
        describe(self._cancel, f"{prefix}.cancel", tr("Cancel"), tr("Stop; everything stays as it was"))
        self._cancel.clicked.connect(self.cancelled)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self._text)
        row.addWidget(self._bar, 1)
        row.addWidget(self._cancel)
        self.hide()

    def show_work(self, work: Work | None) -> None:
        self.setVisible(work is not None)
        if work is not None:
            self._text.setText(work_text(work))
            self._bar.setValue(round(_STEPS * work.n_done / work.n_bytes) if work.n_bytes else 0)
            self._cancel.setVisible(work.kind != "download")
