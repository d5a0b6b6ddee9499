"""This PC: measures every engine, shows the report, and saves it or copies its speeds."""

import asyncio
from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from qwendesk.bench.pc_report import report_page, save_report, share_table
from qwendesk.bench.pc_trial import PcTrial, PcTrialState
from qwendesk.bench.view.run_parts import ExportButton, RunStatus
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.kit import STRETCH, column, paragraph
from qwendesk.widgets.layouts import horizontal_group
from qwendesk.widgets.tabbed_page import BELOW
from qwendesk.widgets.tasks import window_tasks


class PcSection(QWidget):
    """Runs the trial of this PC, and shows its lines or the report of the latest one. It scrolls itself."""

    def __init__(self, trial: PcTrial) -> None:
        super().__init__()
        self._trial, self._tasks = trial, window_tasks()
        self._run = TextButton(kind="primary")
        self._run.clicked.connect(self._on_run)
        self._export = ExportButton(
            "pc",
            tr("Save the report, or copy its speeds"),
            ("report", tr("Save report…"), self._ask_folder),
            ("text", tr("Copy speeds as text"), self._copy),
        )
        self.corner = horizontal_group(self._export, self._run)
        self._words = paragraph(kind="lead", name="pc.words")
        self._status = RunStatus("pc")
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setProperty("kind", "details")
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        describe(self._text, "pc.text", tr("Progress and report"))
        self._note = paragraph(name="pc.note", selectable=True)
        content = column(
            self._words, self._status, self._note, self._text, STRETCH, spacing=12, margins=(0, 4, 0, BELOW)
        )
        content.setStretchFactor(self._text, 1000)
        self.setLayout(content)
        bind(self, trial.state, self.show_state)

    def show_state(self, state: PcTrialState) -> None:
        """Show the lines of a running trial, or else the report of the latest one."""
        self._words.setText(_words(state))
        if state.failure is not None:
            self._status.show_failure(state.failure)
        else:
            self._status.show_nothing()
        self._note.hide()
        self._export.setEnabled(state.report is not None)
        text = tr("Stop") if state.is_running else tr("Measure, at most 10 min")
        tip = (
            tr("Stop and keep what was measured")
            if state.is_running
            else tr("Measure every engine with the demo model and two of yours")
        )
        self._run.setText(text)
        describe(self._run, "pc.run", text, tip)
        self._show_text("\n".join(state.lines) if state.report is None else report_page(state.report))
        if state.report is None:
            bar = self._text.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _show_text(self, text: str) -> None:
        self._text.setVisible(bool(text))
        if text != self._text.toPlainText():
            self._text.setPlainText(text)

    def _on_run(self) -> None:
        if self._trial.state.value.is_running:
            self._words.setText(tr("Stopping…"))
            self._trial.stop()
        else:
            self._tasks.start(self._trial.run())

    def _copy(self) -> None:
        report = self._trial.state.value.report
        if report is not None:
            QGuiApplication.clipboard().setText(share_table(report))

    def _ask_folder(self) -> None:
        def save(folder: str) -> None:
            self._tasks.start(self._save(Path(folder)), owner=self)

        ask_for_folder(self, "pc.folder_dialog", tr("Choose a folder for the report"), save)

    async def _save(self, folder: Path) -> None:
        report = self._trial.state.value.report
        if report is None:
            return
        try:
            path, page = await asyncio.to_thread(save_report, report, folder)
        except QwenDeskError as error:
            sentence = error.sentence
        else:
            sentence = tr("Saved {0} and {1}. To help, send the first one.", path, page)
        self._note.setText(sentence)
        self._note.show()


def _words(state: PcTrialState) -> str:
    if state.is_running:
        return tr("Measuring. Please don't use the PC for anything else until it has finished.")
    if state.report is not None:
        return tr("This is the whole report. Nothing has been sent. Save it if you'd like to give it to someone.")
    return tr(
        "Measures every engine on this PC with the demo model and up to two of your models: answers, memory and speed. "
        "The model is unloaded from the chat meanwhile. Close games and other programs that use the GPU. Nothing is "
        "sent, and the report has no chats and no names."
    )
