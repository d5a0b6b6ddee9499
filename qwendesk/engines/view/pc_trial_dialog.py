"""The dialog of a trial of this PC: what it does, its progress, and the report before it is saved."""

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.engines.pc_trial.page import report_page
from qwendesk.engines.pc_trial.service import PcTrialState
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.question_dialog import Dialog


class PcTrialDialog(Dialog):
    """Shows a trial and emits a signal for each action that the user chooses. Esc stops a running trial first."""

    start_asked = Signal()
    stop_asked = Signal()
    save_asked = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._is_running = False
        self._full_size = QSize(min(820, parent.width() - 40), min(560, parent.height() - 40))
        self.setObjectName("pctrial.dialog")
        self.setWindowTitle(tr("Measure this PC"))
        self.setModal(True)
        self._words = _label("pctrial.words")
        self._note = _label("pctrial.note")
        self._note.hide()
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setProperty("kind", "details")
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        describe(self._text, "pctrial.text", tr("Progress and report"))
        self._save = self._button("save", tr("Save…"), tr("Choose a folder for the report"))
        self._save.clicked.connect(self.save_asked)
        self._start = self._button(
            "start", tr("Start"), tr("Measure every engine with the demo model and two of yours")
        )
        self._start.clicked.connect(self.start_asked)
        self._again = self._button("again", tr("Measure again"), tr("Measure once more and replace this report"))
        self._again.clicked.connect(self.start_asked)
        self._stop = self._button("stop", tr("Stop"), tr("Stop and keep what was measured"))
        self._stop.clicked.connect(self._ask_stop)
        self._close = self._button("close", tr("Close"), tr("Close without saving"))
        self._close.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        for button in (self._save, self._again, self._start, self._stop, self._close):
            row.addWidget(button)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        column.addWidget(self._words)
        column.addWidget(self._text, 1)
        column.addWidget(self._note)
        column.addLayout(row)
        self.finished.connect(self.deleteLater)

    def show_state(self, state: PcTrialState) -> None:
        """Show the lines of a running trial, or else the report of the latest one."""
        was_running, self._is_running = self._is_running, state.is_running
        self._words.setText(_words(state))
        self._show_text(state)
        if state.is_running and not was_running:
            self._stop.setEnabled(True)
            self._note.hide()
        has_report = state.report is not None
        for button, is_shown in (
            (self._save, has_report),
            (self._again, has_report),
            (self._start, not state.is_running and not has_report),
            (self._stop, state.is_running),
            (self._close, not state.is_running),
        ):
            button.setVisible(is_shown)
        if state.is_running != was_running or not self.isVisible():
            next_button = self._stop if state.is_running else self._save if has_report else self._start
            next_button.setFocus()

    def show_note(self, sentence: str) -> None:
        """Show where the report was saved, or why it wasn't."""
        self._note.setText(sentence)
        self._note.show()

    def reject(self) -> None:
        if self._is_running:
            self._ask_stop()
        else:
            super().reject()

    def _ask_stop(self) -> None:
        if self._stop.isEnabled():
            self._stop.setEnabled(False)
            self._words.setText(tr("Stopping…"))
            self.stop_asked.emit()

    def _show_text(self, state: PcTrialState) -> None:
        text = "\n".join(state.lines) if state.report is None else report_page(state.report)
        if self._text.isHidden() != (not text) or not self.isVisible():
            self._text.setVisible(bool(text))
            width = self._full_size.width()
            self.resize(self._full_size if text else QSize(width, self._column.totalHeightForWidth(width)))
        if text != self._text.toPlainText():
            self._text.setPlainText(text)
            bar = self._text.verticalScrollBar()
            bar.setValue(bar.maximum() if state.report is None else 0)

    def _button(self, name: str, label: str, tip: str) -> QPushButton:
        button = QPushButton(label)
        describe(button, f"pctrial.{name}", label, tip)
        button.setAutoDefault(False)
        if name in ("save", "start"):
            button.setProperty("kind", "primary")
        return button


def _label(name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    return label


def _words(state: PcTrialState) -> str:
    if state.is_running:
        return tr("Measuring. Please don't use the PC for anything else until it has finished.")
    if state.report is not None:
        return tr("This is the whole report. Nothing has been sent. Save it if you'd like to give it to someone.")
    return tr(
        "QwenDesk measures every engine on this PC with the demo model and up to two of your models: answers, memory "
        "and speed. This takes up to ten minutes. The loaded model is ejected first. Close games and other programs "
        "that use the GPU. Nothing is sent, and the report has no chats and no names."
    )
