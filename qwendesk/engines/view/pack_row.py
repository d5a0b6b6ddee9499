"""The row of an engine pack: size, licence, requirements, progress, and what to do after a failed download."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.engines.view.row_texts import PackLine
from qwendesk.widgets.buttons import TextButton, describe, restyle

_STEPS = 1000


class PackRow(QWidget):
    """Shows a PackLine. Names of its controls begin with `prefix`, such as "engine.pack.cuda-12.get"."""

    asked = Signal(str)
    """Emitted when a button is clicked, with get, online, pause or discard."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix
        self.setObjectName(prefix)
        self._title = self._label("strong", "title")
        self._chip = self._label("", "state")
        self._chip.setProperty("chip", "plain")
        self._chip.setWordWrap(False)
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._details = self._label("small", "details")
        self._hint = self._label("notice", "hint")
        self._problem = self._label("error", "problem")
        self._progress = self._label("small", "progress")
        self._bar = QProgressBar()
        self._bar.setObjectName(f"{prefix}.bar")
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self._get = self._button("get", tr("Download"), tr("Download, verify and try this engine"))
        self._online = self._button("online", tr("Go online"), tr("Turn off Offline and download it"))
        self._pause = self._button("pause", tr("Pause"), tr("Pause the download and keep what is downloaded"))
        self._discard = self._button("discard", tr("Delete download"), tr("Delete the unfinished download"))
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._title, 1)
        for button in (self._discard, self._pause, self._online, self._get):
            first.addWidget(button)
        first.addWidget(self._chip)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 6)
        column.setSpacing(4)
        column.addLayout(first)
        for part in (self._details, self._hint, self._bar, self._progress, self._problem):
            column.addWidget(part)

    def show_line(self, line: PackLine, *, is_main: bool = False) -> None:
        """Show a pack. `is_main` makes the download the primary button, unless a hint advises against it."""
        self._title.setText(line.title)
        self._chip.setText(line.chip)
        self._chip.setAccessibleName(tr("State: {0}", line.chip))
        restyle(self._chip, "chip", line.tone)
        for label, text in (
            (self._details, line.details), (self._hint, line.hint), (self._progress, line.progress),
            (self._problem, line.problem),
        ):  # fmt: skip
            label.setText(text)
            label.setVisible(bool(text))
        self._bar.setVisible(line.fraction is not None)
        self._bar.setValue(round(_STEPS * (line.fraction or 0.0)))
        self._bar.setAccessibleName(tr("Progress of {0}", line.title))
        self._get.setVisible(bool(line.get_text) and not line.is_offline)
        self._get.setText(line.get_text)
        self._get.setAccessibleName(tr("{0}: {1}", line.get_text, line.title))
        restyle(self._get, "kind", "primary" if is_main and not line.hint else "")
        self._online.setVisible(line.is_offline)
        self._pause.setVisible(line.is_running)
        self._discard.setVisible(line.can_discard)

    def _label(self, kind: str, suffix: str) -> QLabel:
        label = QLabel()
        label.setObjectName(f"{self._prefix}.{suffix}")
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setWordWrap(True)
        if kind:
            label.setProperty("kind", kind)
        return label

    def _button(self, what: str, text: str, tip: str) -> TextButton:
        button = TextButton(text)
        restyle(button, "compact", "true")
        describe(button, f"{self._prefix}.{what}", text, tip)
        button.clicked.connect(lambda: self.asked.emit(what))
        return button
