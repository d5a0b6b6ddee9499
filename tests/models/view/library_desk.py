"""The Models page with the models of one made-up home folder; downloads come from a Hub on the loopback, or nobody."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import Measurements
from qwendesk.models.model_list import ModelEntry
from qwendesk.models.services import ModelFiles, ModelServices
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.models_page import ModelsPage
from qwendesk.models.view.my_models import MyModels
from qwendesk.settings.profiles import ProfilesService
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import Tasks
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.models.library import ModelHome


class LibraryDesk:
    """Uses the tab through its controls, as a user does."""

    def __init__(self, model_home: ModelHome, client: FakeEngineClient) -> None:
        self.model_home, self.client = model_home, client
        self.tasks, self.closing = Tasks(), AsyncExitStack()
        self.engine = EngineService(client, decide=decide_by_default)
        files = ModelFiles(model_home.settings, ProfilesService(), model_home.models)
        self.services = ModelServices(files, self.engine, Measurements())
        self.closing.push_async_callback(files.close)
        self.closing.push_async_callback(self.services.close)
        navigation = Navigation()
        navigation.load_asked.connect(lambda options: self.tasks.start(self.engine.load(options)))
        self.actions = ModelActions(self.services, navigation)
        self.page = ModelsPage(self.services, self.actions, navigation)
        for _ in self.page.add_tabs():
            pass
        self.page.show_tab("mine")
        self.page.resize(1216, 700)

    @property
    def my_models(self) -> MyModels:
        return self.page.my_models

    async def open(self) -> None:
        """Show the page and wait until every file is checked."""
        self.page.show()
        await self.wait_for_checks()

    async def wait_for_checks(self) -> None:
        await self.model_home.models.refresh()
        await self.services.checks.wait_until_settled()
        names = [entry.model.path for entry in self.services.list.state.value.entries]
        await self.until(lambda: all(self.number(Path(name)) for name in names[:10]) and not self._is_stale())

    def entry(self, path: Path) -> ModelEntry:
        return next(entry for entry in self.services.list.state.value.entries if entry.model.path == str(path))

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
        await self.closing.aclose()
        await self.engine.close()
        self.page.deleteLater()

    def _is_stale(self) -> bool:
        shown = self.my_models.rows.values()
        return any(entry not in self.services.list.state.value.entries for entry in shown)
