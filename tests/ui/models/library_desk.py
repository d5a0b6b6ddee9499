"""The Models page with the models of one made-up home folder; downloads come from a Hub on the loopback, or nobody."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from qwendesk.app.library_part import LibraryPart, build_library
from qwendesk.services.engine.service import EngineService
from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.network import NetworkService
from qwendesk.services.profiles import ProfilesService
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.models import ModelEntry
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.models_page import ModelsPage
from qwendesk.ui.models.my_models import MyModels
from tests.fakes.engine import FakeEngineClient
from tests.services.models.library import Shelf


class LibraryDesk:
    """Uses the tab as a person does."""

    def __init__(self, keeper: ThemeKeeper, shelf: Shelf, client: FakeEngineClient) -> None:
        self.shelf, self.client = shelf, client
        self.tasks = Tasks()
        self.network = NetworkService(shelf.settings)
        self.downloads = DownloadsService(self.network, shelf.models)
        self.engine = EngineBridge(EngineService(client, decide=lambda options, _devices: options), self.tasks)
        self.page = ModelsPage()
        self.part: LibraryPart = build_library(
            keeper, self.tasks, shelf.settings, ProfilesService(), shelf.models, self.network, self.downloads,
            self.engine, self.page,
        )  # fmt: skip
        self.page.add_tab("pc", "For this PC", QWidget())
        self.page.show_tab("mine")
        self.page.resize(1216, 700)

    @property
    def my_models(self) -> MyModels:
        return self.part.my_models

    async def open(self) -> None:
        """Shown, and every file looked at."""
        self.page.show()
        await self.looked()

    async def looked(self) -> None:
        await self.shelf.models.refresh()
        await self.part.services.checks.settled()
        names = [entry.model.path for entry in self.part.bridge.entries]
        await self.until(lambda: all(self.number(Path(name)) for name in names[:10]) and not self._is_stale())

    def entry(self, path: Path) -> ModelEntry:
        return next(entry for entry in self.part.bridge.entries if entry.model.path == str(path))

    def number(self, path: Path) -> int:
        """Which row on screen shows the model at `path`; 0 for none."""
        rows = self.my_models.rows
        found = next((number for number, entry in rows.items() if entry.model.path == str(path)), 0)
        return found if self.is_shown(f"models.my.{found}") else 0

    def name(self, path: Path, part: str) -> str:
        return f"models.my.{self.number(path)}.{part}"

    def find(self, name: str) -> QWidget:
        found: QWidget | None = self.page.findChild(QWidget, name)
        assert found is not None, f"nothing is called {name}"
        return found

    def text(self, name: str) -> str:
        widget = self.find(name)
        assert isinstance(widget, QLabel | QAbstractButton)
        return widget.text()

    def is_shown(self, name: str) -> bool:
        widget = self.page.findChild(QWidget, name)
        return widget is not None and widget.isVisible()

    def click(self, name: str) -> None:
        button = self.find(name)
        assert isinstance(button, QAbstractButton)
        assert button.isVisible(), f"{name} is not on screen"
        assert button.isEnabled(), f"{name} is disabled"
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def press(self, name: str, key: Qt.Key) -> None:
        QTest.keyClick(self.find(name), key)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the window live until `condition` holds; a test's time limit ends a wait for ever."""
        while not condition():  # noqa: ASYNC110  (widgets tell nobody when they change)
            await asyncio.sleep(0.002)

    async def close(self) -> None:
        self.page.hide()
        await self.tasks.close()
        await self.part.close()
        await self.downloads.close()
        self.network.close()
        await self.shelf.models.close()
        await self.engine.close()
        self.page.deleteLater()

    def _is_stale(self) -> bool:
        shown = self.my_models.rows.values()
        return any(entry not in self.part.bridge.entries for entry in shown)
