"""The draft of the next load for widgets."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from qwendesk.core.errors import BadOption
from qwendesk.services.engine.draft import Draft, LoadDraft
from qwendesk.ui.kit.tasks import Tasks


class DraftBridge(QObject):
    """How the present model is to be loaded next, for widgets."""

    changed = Signal()
    """`draft` is another one now."""
    refused = Signal(str, str)
    """Key, and why its value does not hold."""

    def __init__(self, service: LoadDraft, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service, self._tasks = service, tasks
        self._unsubscribe = service.subscribe(self._on_draft)

    @property
    def draft(self) -> Draft:
        return self._service.draft

    def change(self, key: str, value: Any, *, keep: bool = True) -> None:
        """`keep` False while a slider still moves."""
        try:
            self._service.change({key: value}, keep=keep)
        except BadOption as error:
            self.refused.emit(key, error.sentence)

    def keep(self) -> None:
        self._service.keep()

    def reset(self, key: str) -> None:
        self._service.reset(key)

    def reset_all(self) -> None:
        self._service.reset_all()

    def reload(self) -> None:
        self._tasks.start(self._service.reload())

    def ask_engine(self) -> None:
        self._tasks.start(self._service.ask_engine())

    def save_as(self, name: str) -> None:
        self._service.save_as(name)

    def use(self, name: str) -> None:
        self._service.use(name)

    def delete(self, name: str) -> None:
        self._service.delete(name)

    def export(self, file: str) -> None:
        self._service.export(Path(file))

    def take_in(self, file: str) -> None:
        self._service.take_in(Path(file))

    async def close(self) -> None:
        self._unsubscribe()
        await self._service.close()

    def _on_draft(self, _draft: Draft) -> None:
        self.changed.emit()
