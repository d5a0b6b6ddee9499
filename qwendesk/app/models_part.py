"""Builds what the Models page is made of: services, bridges, the page with its tabs; starts and ends them."""

import msgspec

from qwendesk.app.downloads_part import add_downloads_tab
from qwendesk.app.have_part import join_have
from qwendesk.app.hub_part import add_search_tab
from qwendesk.app.library_part import LibraryPart, build_library
from qwendesk.core.errors import QwenDeskError
from qwendesk.services.engine.service import EngineService
from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.network import NetworkService
from qwendesk.services.models.offers import OffersService
from qwendesk.services.models.service import ModelsService
from qwendesk.services.profiles import ProfilesService
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.downloads import DownloadsBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.offers import OffersBridge
from qwendesk.ui.bridges.search import SearchBridge
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.downloads_tab import DownloadsTab
from qwendesk.ui.models.for_this_pc import ForThisPc
from qwendesk.ui.models.models_page import ModelsPage
from qwendesk.ui.models.wording import pc_text


class ModelsPart(msgspec.Struct):
    """The Models page with what stands behind it."""

    page: ModelsPage
    models: ModelsService
    network: NetworkService
    downloads: DownloadsService
    offers_service: OffersService
    offers: OffersBridge
    for_this_pc: ForThisPc
    fetching: DownloadsBridge
    downloads_tab: DownloadsTab
    library: LibraryPart
    search: SearchBridge

    def start(self) -> None:
        """Begin to look at the disk and at this PC. The app does this once its window is shown."""
        self.models.watch()
        self.downloads.start()
        self.offers.look()

    async def close(self) -> None:
        """End everything; nothing runs afterwards."""
        self.offers.close()
        self.search.close()
        self.fetching.close()
        await self.library.close()
        await self.downloads.close()
        self.network.close()
        await self.models.close()


def build_models(
    keeper: ThemeKeeper,
    tasks: Tasks,
    settings: SettingsService,
    profiles: ProfilesService,
    engine_service: EngineService,
    engine: EngineBridge,
) -> ModelsPart:
    """Services, bridges and the page, joined; nothing runs yet. Needs a running event loop."""
    models = ModelsService()
    network = NetworkService(settings)
    downloads = DownloadsService(network, models)
    offers_service = OffersService(engine_service, settings)
    offers = OffersBridge(offers_service, tasks, settings)
    page = ModelsPage()
    for_this_pc = ForThisPc(keeper, offers)
    page.add_tab("pc", tr("For this PC"), for_this_pc)
    offers.changed.connect(lambda: page.show_machine(pc_text(offers.offers.pc)))
    fetching, downloads_tab = add_downloads_tab(keeper, tasks, page, engine, downloads, network)
    library = build_library(keeper, tasks, settings, profiles, models, network, downloads, engine, page)
    search = add_search_tab(keeper, tasks, page, engine, models, network, downloads, offers_service, library.bridge)
    _connect_downloads(for_this_pc, downloads, tasks)
    join_have(for_this_pc, models, downloads, library.bridge, engine, page, tasks)
    engine_service.options_for = library.services.loading.options_for
    library.bridge.search_asked.connect(lambda words: _look_for(words, page, search))
    return ModelsPart(
        page, models, network, downloads, offers_service, offers, for_this_pc, fetching, downloads_tab, library, search
    )


def _look_for(words: str, page: ModelsPage, search: SearchBridge) -> None:
    """A repository, or what a search finds."""
    page.show_tab("hub")
    if "/" in words:
        search.open(words)
    else:
        search.close_repo()
        search.search(words, "downloads")


def _connect_downloads(tab: ForThisPc, downloads: DownloadsService, tasks: Tasks) -> None:
    async def add(repo: str, path: str, with_mmproj: bool) -> None:
        """The queue takes it, or the tab says why not."""
        try:
            await downloads.add(repo, path, with_mmproj=with_mmproj)
            tab.say("")
        except QwenDeskError as trouble:
            tab.say(trouble.sentence)

    tab.download_asked.connect(lambda *what: tasks.start(add(*what)))
