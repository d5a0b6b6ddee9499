"""What is kept on this PC, for widgets; and the wish to delete all of it."""

import asyncio

from PySide6.QtCore import QObject, Signal

from qwendesk.services import privacy
from qwendesk.services.privacy import Holding
from qwendesk.ui.kit.tasks import Tasks


class PrivacyBridge(QObject):
    """Nothing is deleted while the app runs: the wish is carried out when everything else has ended."""

    changed = Signal()
    """`holdings` were looked at again."""
    deletion_wanted = Signal()

    def __init__(self, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._holdings: tuple[Holding, ...] = ()
        self._wanted: bool | None = None

    @property
    def holdings(self) -> tuple[Holding, ...]:
        return self._holdings

    @property
    def is_deletion_wanted(self) -> bool:
        return self._wanted is not None

    def look(self) -> None:
        """Look again; nothing before the event loop runs, as nobody sees it then."""
        if asyncio._get_running_loop() is not None:
            self._tasks.start(self._look())

    def delete_everything(self, *, models: bool) -> None:
        """End the app, then delete; `models` those in the app's own folder too."""
        self._wanted = models
        self.deletion_wanted.emit()

    def carry_out(self, host: str) -> tuple[str, ...]:
        """After the end of everything: delete if that is wanted. Returns what could not be deleted. Blocks."""
        if self._wanted is None:
            return ()
        return privacy.delete_everything(models=self._wanted, hosts=(host,))

    async def _look(self) -> None:
        self._holdings = await asyncio.to_thread(privacy.look)
        self.changed.emit()
