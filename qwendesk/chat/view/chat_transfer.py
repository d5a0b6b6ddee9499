"""The dialogs for exporting and importing chats, and the messages about the result."""

from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject, Signal

from qwendesk.chat.exchange.service import ExchangeService
from qwendesk.chat.exchange.values import ExportFormat
from qwendesk.chat.view.sidebar.sidebar import Sidebar
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.file_dialogs import ask_for_file, ask_where_to_save
from qwendesk.widgets.tasks import window_tasks


class ChatTransfer(QObject):
    """Exports and imports chats for the sidebar and the commands."""

    failed = Signal(str, str)
    """Title and sentence."""

    def __init__(self, service: ExchangeService, sidebar: Sidebar) -> None:
        super().__init__(sidebar)
        self._service, self._sidebar, self._tasks = service, sidebar, window_tasks()
        sidebar.export_asked.connect(self.ask_export)
        sidebar.import_asked.connect(self.ask_import)

    def ask_export(self, kind: str, chat_ids: tuple[str, ...]) -> None:
        """Ask for a file, then write these chats to it. If there are no ids, export all chats."""
        wanted = cast(ExportFormat, kind)
        name = self._service.file_name(wanted, chat_ids)

        def export(path: str) -> None:
            self._tasks.start(self._export(Path(path), wanted, chat_ids), self._sidebar)

        ask_where_to_save(self._sidebar.window(), "chats.export_dialog", tr("Export chats"), name, export)

    def ask_import(self) -> None:
        filters = [tr("QwenDesk or ChatGPT exports (*.json *.zip)"), tr("All files (*)")]

        def import_from(path: str) -> None:
            self._tasks.start(self._import(Path(path)), self._sidebar)

        ask_for_file(self._sidebar.window(), "chats.import_dialog", tr("Import chats"), filters, import_from)

    async def _export(self, path: Path, kind: ExportFormat, chat_ids: tuple[str, ...]) -> None:
        try:
            count = await self._service.export(path, kind, chat_ids)
        except QwenDeskError as error:
            self.failed.emit(error.title, error.sentence)
        else:
            self._sidebar.show_message(tr_n("Exported {0} chat to {1}", "Exported {0} chats to {1}", count, path.name))

    async def _import(self, path: Path) -> None:
        self._sidebar.show_message(tr("Importing {0}…", path.name))
        try:
            report = await self._service.import_from(path)
        except QwenDeskError as error:
            self._sidebar.show_message("")
            self.failed.emit(error.title, error.sentence)
        else:
            self._sidebar.show_message(report.sentence)
