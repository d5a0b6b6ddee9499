"""Builds the models on this PC: their checks, fixes and moves, the tab "My models", and the alerts above the tabs."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.hub.queue_state import DownloadItem
from qwendesk.services.models.checks import ChecksService
from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.fixes import FixesService
from qwendesk.services.models.loading import Loading
from qwendesk.services.models.moves import MovesService
from qwendesk.services.models.network import NetworkService
from qwendesk.services.models.service import ModelsService
from qwendesk.services.models.templates import TemplatesService
from qwendesk.services.profiles import ProfilesService
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.models import ModelsBridge, ModelsServices
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.alerts import Alerts
from qwendesk.ui.models.models_page import ModelsPage
from qwendesk.ui.models.my_models import MyModels


class LibraryPart(msgspec.Struct):
    """The list of models with what stands behind it. The caller closes the library and the downloads themselves."""

    bridge: ModelsBridge
    my_models: MyModels
    services: ModelsServices
    unsubscribe: Callable[[], None]

    async def close(self) -> None:
        """End checks and moves; nothing runs afterwards."""
        self.unsubscribe()
        self.bridge.close()
        await self.services.moves.close()
        await self.services.checks.close()


def build_library(
    keeper: ThemeKeeper,
    tasks: Tasks,
    settings: SettingsService,
    profiles: ProfilesService,
    models: ModelsService,
    network: NetworkService,
    downloads: DownloadsService,
    engine: EngineBridge,
    page: ModelsPage,
) -> LibraryPart:
    """Joins the tab and the alerts to `page`. Needs a running event loop; nothing runs before the first scan."""
    checks = ChecksService(models, settings, network.hub)
    templates = TemplatesService(network.hub)
    fixes = FixesService(models, templates, downloads)
    loading = Loading(models, templates, profiles, checks.catalog)
    services = ModelsServices(models, checks, fixes, MovesService(models, checks), templates, downloads, loading)
    bridge = ModelsBridge(services, tasks)
    my_models = MyModels(keeper, bridge, engine)
    alerts = Alerts(keeper, bridge)
    page.add_tab("mine", tr("My models"), my_models, scrolls=False)
    page.set_alerts(alerts)
    alerts.help_asked.connect(page.files_help_asked)
    alerts.list_asked.connect(lambda: page.show_tab("mine"))
    page.tab_shown.connect(lambda tab: alerts.be_quiet(wanted=tab == "mine"))
    my_models.offers_asked.connect(lambda: page.show_tab("pc"))
    bridge.load_asked.connect(engine.load)

    def on_finished(item: DownloadItem) -> None:
        # Hashed while it came: it need not be read once more to count as verified.
        hashes = [(Path(each.target), each.file.sha256 or "") for each in item.kept.files]
        tasks.start(checks.remember(hashes))

    return LibraryPart(bridge, my_models, services, downloads.subscribe_finished(on_finished))
