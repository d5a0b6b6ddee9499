"""Builds the tab Hugging Face: search, one repository, and downloads from there."""

from qwendesk.app.have_part import join_have
from qwendesk.core.errors import QwenDeskError
from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.network import NetworkService
from qwendesk.services.models.offers import OffersService
from qwendesk.services.models.search import SearchService
from qwendesk.services.models.service import ModelsService
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.models import ModelsBridge
from qwendesk.ui.bridges.search import SearchBridge
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.models_page import ModelsPage
from qwendesk.ui.models.search_tab import SearchTab


def add_search_tab(
    keeper: ThemeKeeper,
    tasks: Tasks,
    page: ModelsPage,
    engine: EngineBridge,
    models: ModelsService,
    network: NetworkService,
    downloads: DownloadsService,
    offers: OffersService,
    library: ModelsBridge,
) -> SearchBridge:
    """The tab, joined to what it asks. The bridge is to be closed with the page."""
    bridge = SearchBridge(SearchService(network, lambda: offers.offers.pc), tasks)
    tab = SearchTab(keeper, bridge)

    async def add(repo: str, path: str) -> None:
        """The queue takes it, or the tab says why not."""
        try:
            await downloads.add(repo, path)
            tab.say("")
        except QwenDeskError as trouble:
            tab.say(trouble.sentence)

    tab.download_asked.connect(lambda repo, path: tasks.start(add(repo, path)))
    join_have(tab, models, downloads, library, engine, page, tasks)
    page.add_tab("hub", tr("Hugging Face"), tab)
    return bridge
