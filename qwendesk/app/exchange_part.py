"""Joins export and import to the list of chats: the dialogs for files, and what is said afterwards."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog

from qwendesk.core.errors import QwenDeskError
from qwendesk.services.chat.chats import ChatsService
from qwendesk.services.chat.exchange.service import ExchangeService
from qwendesk.services.chat.exchange.values import ExportFormat
from qwendesk.ui.chats.sidebar import Sidebar
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr, tr_n


class ExchangePart(QObject):
    """Lives as long as the sidebar."""

    def __init__(self, sidebar: Sidebar, report: Callable[[str, str], None], chats: ChatsService, tasks: Tasks) -> None:
        """`report` shows an error: title and sentence."""
        super().__init__(sidebar)
        self._sidebar, self._report, self._tasks = sidebar, report, tasks
        self._service = ExchangeService(chats)
        sidebar.export_asked.connect(self.ask_export)
        sidebar.import_asked.connect(self.ask_import)

    def ask_export(self, kind: str, chat_ids: tuple[str, ...]) -> None:
        """Where to; then it is written."""
        wanted = cast(ExportFormat, kind)
        name = self._service.file_name(wanted, chat_ids)
        dialog = self._dialog(tr("Export chats"), "chats.export_dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(Path(name).suffix[1:])
        dialog.selectFile(name)
        dialog.fileSelected.connect(
            lambda path: self._tasks.start(self._export(Path(path), wanted, chat_ids), self._sidebar)
        )
        dialog.open()

    def ask_import(self) -> None:
        dialog = self._dialog(tr("Import chats"), "chats.import_dialog")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("Exports of QwenDesk or ChatGPT (*.json *.zip)"), tr("All files (*)")])
        dialog.fileSelected.connect(lambda path: self._tasks.start(self._import(Path(path)), self._sidebar))
        dialog.open()

    async def _export(self, path: Path, kind: ExportFormat, chat_ids: tuple[str, ...]) -> None:
        try:
            count = await self._service.export(path, kind, chat_ids)
        except QwenDeskError as trouble:
            self._report(trouble.title, trouble.sentence)
        else:
            self._sidebar.note(tr_n("Exported {0} chat to {1}", "Exported {0} chats to {1}", count, path.name))

    async def _import(self, path: Path) -> None:
        self._sidebar.note(tr("Importing {0}…", path.name))
        try:
            report = await self._service.import_from(path)
        except QwenDeskError as trouble:
            self._sidebar.note("")
            self._report(trouble.title, trouble.sentence)
        else:
            self._sidebar.note(report.sentence)

    def _dialog(self, title: str, name: str) -> QFileDialog:
        dialog = QFileDialog(self._sidebar.window(), title)
        dialog.setObjectName(name)
        dialog.finished.connect(dialog.deleteLater)
        return dialog
