"""Opens the dialog of a trial of this PC, and runs and saves the trial."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.pc_trial.saved_report import save_report
from qwendesk.engines.pc_trial.service import PcTrial
from qwendesk.engines.view.pc_trial_dialog import PcTrialDialog
from qwendesk.widgets.bind import bind
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.tasks import window_tasks


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
