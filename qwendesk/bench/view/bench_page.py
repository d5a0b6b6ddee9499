"""The Bench page: its tabs, and at the right of the title what the open tab offers."""

from typing import Final

from PySide6.QtWidgets import QHBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.tabbed_page import TabbedPage

ORDER: Final = ("speed", "tune", "quality", "compare")
"""Tabs by key, left to right: Speed, Auto-tune, Quality, Compare."""


class BenchPage(TabbedPage):
    """The Bench page."""

    def __init__(self) -> None:
        corner = QWidget()
        row = QHBoxLayout(corner)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        super().__init__("bench", tr("Bench"), tr("Sections of the Bench page"), ORDER, corner)
        self.setObjectName("bench.page")
        self._corner_row = row
        self._corners: dict[str, QWidget] = {}
        self.tab_shown.connect(self._show_corner)

    def add_bench_tab(self, key: str, title: str, widget: QWidget, corner: QWidget) -> None:
        """Add a tab at its place in ORDER, with the buttons that are shown beside the tabs while it is open."""
        self.add_tab(key, title, widget)
        if corner is not None:
            self._corners[key] = corner
            self._corner_row.addWidget(corner)
        self._show_corner(self.shown_tab)

    def _show_corner(self, shown: str) -> None:
        for key, corner in self._corners.items():
            corner.setVisible(key == shown)
