"""The Models page: its tabs, and the alerts above them."""

from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import Qt

from qwendesk.core.translation import tr
from qwendesk.models.fit import Pc
from qwendesk.models.services import ModelServices
from qwendesk.models.view.alerts import Alerts
from qwendesk.models.view.downloads_tab import DownloadsTab
from qwendesk.models.view.for_this_pc import ForThisPc
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.my_models import MyModels
from qwendesk.models.view.offer_texts import pc_text, short_pc_text
from qwendesk.models.view.search_tab import SearchTab
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tabbed_page import TabbedPage
from qwendesk.widgets.text_layout import ElidedLabel

# Tabs by key, left to right: For this PC, My models, Hugging Face, Downloads.
ORDER: Final = ("pc", "mine", "hub", "downloads")


class ModelsPage(TabbedPage):
    """The Models page. `add_tabs` adds its tabs."""

    def __init__(self, services: ModelServices, actions: ModelActions, navigation: Navigation) -> None:
        # In a narrow window this label is shortened, so that the tabs keep their width.
        self._machine = ElidedLabel("models.machine", kind="dim", by_part=True)
        self._machine.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        super().__init__("models", tr("Models"), tr("Sections of the Models page"), ORDER, self._machine)
        self._services, self._actions, self._navigation = services, actions, navigation
        alerts = Alerts(services.list.state, actions, navigation)
        self.set_alerts(alerts)
        self.height_changed.connect(alerts.set_page_height)
        self.tab_shown.connect(lambda tab: alerts.set_hidden(is_hidden=tab == "mine"))
        bind_field(self, services.offers.state, lambda state: state.pc, self._show_machine)

    def add_tabs(self) -> Iterator[None]:
        """Add the tabs. Yield after each one."""
        services, actions, navigation = self._services, self._actions, self._navigation
        self.add_tab("pc", tr("For this PC"), ForThisPc(services, actions, navigation))
        yield
        self.my_models = MyModels(services, actions, navigation)
        self.add_tab("mine", tr("My models"), self.my_models, scrolls=False)
        yield
        self._search = SearchTab(services, actions, navigation)
        self.add_tab("hub", tr("Hugging Face"), self._search)
        yield
        downloads = DownloadsTab(services.downloads, services.network, actions, navigation)
        self.add_tab("downloads", tr("Downloads"), downloads)
        bind_field(self, services.downloads.state, lambda state: len(state.unfinished), self._show_download_count)

    def search(self, text: str) -> None:
        """Search Hugging Face for these words, or open the repository of this link or name."""
        self.show_tab("hub")
        self._search.search(text)

    def _show_download_count(self, count: int) -> None:
        """Show the number of unfinished downloads on their tab: "Downloads · 1"."""
        self.set_tab_title("downloads", tr("Downloads · {0}", count) if count else tr("Downloads"))

    def _show_machine(self, pc: Pc) -> None:
        """Show this PC at the right: "RTX 3090 with 24 GB · 64 GB RAM". Its tooltip tells what is reserved."""
        self._machine.setText(short_pc_text(pc))
        self._machine.setToolTip(pc_text(pc))
