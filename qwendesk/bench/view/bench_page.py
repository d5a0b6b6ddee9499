"""The Bench page: its tabs, and at the right of the title what the open tab offers."""

from typing import Final

from PySide6.QtWidgets import QHBoxLayout, QWidget

from qwendesk.bench.services import BenchServices
from qwendesk.bench.view.compare_tab import CompareTab
from qwendesk.bench.view.pc_tab import PcTab
from qwendesk.bench.view.quality_tab import QualityTab
from qwendesk.bench.view.speed_tab import SpeedTab
from qwendesk.bench.view.tune_tab import TuneTab
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tabbed_page import TabbedPage

# Tabs by key, left to right: Speed, This PC, Auto-tune, Quality, Compare.
ORDER: Final = ("speed", "pc", "tune", "quality", "compare")


class BenchPage(TabbedPage):
    """The Bench page."""

    def __init__(self, services: BenchServices, engine: Observed[EngineState], navigation: Navigation) -> None:
        """`engine` has the model that is chosen at the top of the window, which is measured."""
        corner = QWidget()
        row = QHBoxLayout(corner)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        super().__init__("bench", tr("Bench"), tr("Sections of the Bench page"), ORDER, corner)
        self.setObjectName("bench.page")
        self._corners: dict[str, QWidget] = {}
        tabs: tuple[tuple[str, str, SpeedTab | PcTab | TuneTab | QualityTab | CompareTab], ...] = (
            ("speed", tr("Speed"), SpeedTab(services, engine, navigation)),
            ("pc", tr("This PC"), PcTab(services.pc)),
            ("tune", tr("Auto-tune"), TuneTab(services.tune, engine)),
            ("quality", tr("Quality"), QualityTab(services.quality, engine)),
            ("compare", tr("Compare"), CompareTab(services, engine, navigation)),
        )
        for key, title, tab in tabs:
            self.add_tab(key, title, tab, scrolls=not isinstance(tab, PcTab))
            self._corners[key] = tab.corner
            row.addWidget(tab.corner)
        self._show_corner(self.shown_tab)
        self.tab_shown.connect(self._show_corner)

    def _show_corner(self, shown: str) -> None:
        for key, corner in self._corners.items():
            corner.setVisible(key == shown)
