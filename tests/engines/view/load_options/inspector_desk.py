"""The inspector on a made-up PC, for tests."""

from pathlib import Path

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QLineEdit, QMenu, QSlider, QWidget

from qwendesk.app.parts import build
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Load
from qwendesk.engines.load_decision import decide
from qwendesk.engines.view.load_options.options_sheet import OptionsSheet
from qwendesk.widgets.rows.setting_row import SettingRow
from tests.fakes.engine import FakeEngineClient
from tests.window_desk import Desk


class InspectorDesk(Desk):
    """The window on a PC with one 24 GB card, or with none, where the planner decides."""

    def __init__(self, *, has_gpu: bool = True) -> None:
        client = FakeEngineClient()
        card = DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)
        client.devices = (card, *client.devices) if has_gpu else client.devices
        super().__init__(build(client, decide=decide), client)
        self.window.show()
        self.window.activateWindow()

    @property
    def loads(self) -> list[Load]:
        return [request for request in self.client.requests if isinstance(request, Load)]

    async def load(self, model: Path) -> None:
        before = self.parts.engine.state.report
        self.parts.window.load_model(str(model))
        await self.until(lambda: self.parts.engine.state.report is not before)
        await self.until(lambda: self.parts.services.pending_load.pending.plan is not None)

    def toggle(self) -> None:
        """What Ctrl+. does; an offscreen window is not always the active one, which a shortcut needs."""
        action = self.window.findChild(QAction, "action.inspector")
        assert action is not None
        assert action.shortcut().toString() == "Ctrl+."
        action.trigger()

    async def open(self, model: Path) -> None:
        await self.load(model)
        self.toggle()
        await self.until(lambda: self.is_shown("inspector.load"))

    def slide(self, name: str, stop: int) -> None:
        self.find(name, QSlider).setValue(stop)

    def choices(self, key: str) -> dict[str, QAction]:
        """Open the menu of a control of the Load tab, and return what it offers, by its words."""
        self.click(f"inspector.load.{key}")
        menu = self.find(f"inspector.load.{key}", QWidget).parentWidget().findChild(QMenu)
        assert menu is not None
        menu.close()
        return {action.text(): action for action in menu.actions() if action.text()}

    async def sheet_built(self) -> None:
        """Wait until the sheet shows all options."""
        await self.until(lambda: self.is_shown("options") and self.find("options", OptionsSheet).is_complete)

    async def open_sheet(self, query: str = "") -> None:
        """Show all options, and search for `query`."""
        self.click("inspector.load.all")
        await self.sheet_built()
        self.find("options.search", QLineEdit).setText(query)

    def shown_options(self) -> set[str]:
        """The keys of the options that the sheet shows."""
        rows = self.find("options", QDialog).findChildren(SettingRow)
        return {row.entry.key for row in rows if not row.isHidden()}

    async def estimated(self, amount_before: str) -> None:
        await self.until(lambda: self.text_of("inspector.memory.0.amount") != amount_before)
