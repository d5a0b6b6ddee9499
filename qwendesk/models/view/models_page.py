"""The Models page: its tabs, and the alerts above them."""

from typing import Final

from PySide6.QtCore import Qt, Signal

from qwendesk.core.translation import tr
from qwendesk.widgets.tabbed_page import TabbedPage
from qwendesk.widgets.text_labels import ElidedLabel

ORDER: Final = ("pc", "mine", "hub", "downloads")
"""Tabs by key, left to right: For this PC, My models, Hugging Face, Downloads."""


class ModelsPage(TabbedPage):
    """The Models page."""

    files_help_asked = Signal()
    """Asks to show the guide page about the states of files."""

    def __init__(self) -> None:
        # In a narrow window this label is shortened, so that the tabs keep their width.
        machine = ElidedLabel("models.machine", kind="dim")
        machine.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        super().__init__("models", tr("Models"), tr("Sections of the Models page"), ORDER, machine)
        self._machine = machine

    def show_download_count(self, count: int) -> None:
        """Show the number of unfinished downloads on their tab: "Downloads · 1"."""
        self.set_tab_title("downloads", tr("Downloads · {0}", count) if count else tr("Downloads"))

    def show_machine(self, text: str) -> None:
        """Show this PC at the right: "RTX 3090, 24 GB (1 GB reserved) · 64 GB RAM"."""
        self._machine.setText(text)
        self._machine.setToolTip(text)
