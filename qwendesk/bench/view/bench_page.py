"""The Bench page: its tabs, and at the right of the title what the open tab offers."""

from typing import Final

from PySide6.QtWidgets import QHBoxLayout, QWidget

from qwendesk.bench.services import BenchServices
from qwendesk.bench.view.compare_tab import CompareTab
from qwendesk.bench.view.quality_tab import QualityTab
from qwendesk.bench.view.speed_tab import SpeedTab
from qwendesk.bench.view.tune_tab import TuneTab
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tabbed_page import TabbedPage

# Tabs by key, left to right: Speed, Auto-tune, Quality, Compare.
ORDER: Final = ("speed", "tune", "quality", "compare")


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
        speed, tune = SpeedTab(services, engine, navigation), TuneTab(services.tune, engine)
        quality, compare = QualityTab(services.quality, engine), CompareTab(services, engine, navigation)
        for key, title, tab, buttons in (
            ("speed", tr("Speed"), speed, speed.corner),
            ("tune", tr("Auto-tune"), tune, tune.corner),
            ("quality", tr("Quality"), quality, quality.corner),
            ("compare", tr("Compare"), compare, compare.corner),
        ):
            self.add_tab(key, title, tab)
            self._corners[key] = buttons
            row.addWidget(buttons)
        self._show_corner(self.shown_tab)
        self.tab_shown.connect(self._show_corner)

    def _show_corner(self, shown: str) -> None:
        for key, corner in self._corners.items():
            corner.setVisible(key == shown)
