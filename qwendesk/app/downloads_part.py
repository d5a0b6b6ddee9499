"""Joins the downloads to the window: their tab, their title, and what the tab asks for."""

from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.network import NetworkService
from qwendesk.ui.bridges.downloads import DownloadsBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.download_texts import badge_text
from qwendesk.ui.models.downloads_tab import DownloadsTab
from qwendesk.ui.models.models_page import ModelsPage


def add_downloads_tab(
    keeper: ThemeKeeper,
    tasks: Tasks,
    page: ModelsPage,
    engine: EngineBridge,
    service: DownloadsService,
    network: NetworkService,
) -> tuple[DownloadsBridge, DownloadsTab]:
    """The tab, joined to what it shows. Its bridge is closed before the service."""
    bridge = DownloadsBridge(service, network, tasks)
    tab = DownloadsTab(keeper, bridge)
    tab.load_asked.connect(engine.load_model)
    tab.offers_asked.connect(lambda: page.show_tab("pc"))
    page.add_tab("downloads", tr("Downloads"), tab)

    def show_count() -> None:
        count = badge_text(bridge.state.items)
        page.set_title("downloads", tr("Downloads · {0}", count) if count else tr("Downloads"))

    bridge.changed.connect(show_count)
    bridge.refused.connect(lambda _refusal: page.show_tab("downloads"))
    return bridge, tab
