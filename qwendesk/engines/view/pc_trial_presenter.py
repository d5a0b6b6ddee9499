"""Opens the dialog of a trial of this PC, and runs and saves the trial."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.pc_trial.report import report_page, save_report
from qwendesk.engines.pc_trial.service import PcTrial, PcTrialState
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.tasks import window_tasks


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


class PcTrialPresenter(QObject):
    """Belongs to the page from which the dialog is opened."""

    def __init__(self, page: QWidget, pc_trial: PcTrial, engine: EngineService) -> None:
        super().__init__(page)
        self._page = page
        self._pc_trial = pc_trial
        self._engine = engine
        self._tasks = window_tasks()
        self._is_starting = False

    def open(self) -> None:
        """Show the dialog. The trial starts when the user presses Start."""
        dialog = PcTrialDialog(self._page.window())
        bind(dialog, self._pc_trial.state, dialog.show_state)
        dialog.start_asked.connect(lambda: self._tasks.start(self._run()))
        dialog.stop_asked.connect(self._pc_trial.stop)
        dialog.save_asked.connect(lambda: self._ask_folder(dialog))
        dialog.open()

    async def _run(self) -> None:
        if self._is_starting or self._pc_trial.state.value.is_running:
            return
        self._is_starting = True
        try:
            await self._engine.eject()
        finally:
            self._is_starting = False
        await self._pc_trial.run()

    def _ask_folder(self, dialog: PcTrialDialog) -> None:
        def save(folder: str) -> None:
            self._tasks.start(self._save(Path(folder), dialog), owner=dialog)

        ask_for_folder(dialog, "pctrial.folder_dialog", tr("Choose a folder for the report"), save)

    async def _save(self, folder: Path, dialog: PcTrialDialog) -> None:
        report = self._pc_trial.state.value.report
        if report is None:
            return
        try:
            path, page = await asyncio.to_thread(save_report, report, folder)
        except QwenDeskError as error:
            dialog.show_note(error.sentence)
        else:
            dialog.show_note(tr("Saved {0} and {1}. To help, send the first one.", path, page))
