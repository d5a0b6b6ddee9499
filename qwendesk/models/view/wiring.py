"""Builds the widgets of this feature and connects them to its services.

The app imports nothing else from this package.
"""

from contextlib import AsyncExitStack

import msgspec

from qwendesk.core.translation import tr
from qwendesk.models.library_watch import LibraryWatch
from qwendesk.models.services import ModelServices
from qwendesk.models.view.alerts import Alerts
from qwendesk.models.view.downloads_tab import DownloadsTab
from qwendesk.models.view.first_start import FirstStart
from qwendesk.models.view.folder_watcher import build_library_watch
from qwendesk.models.view.folders_section import FoldersSection
from qwendesk.models.view.for_this_pc import ForThisPc
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.models_page import ModelsPage
from qwendesk.models.view.my_models import MyModels
from qwendesk.models.view.no_model_strip import NoModelStrip
from qwendesk.models.view.offer_texts import pc_text
from qwendesk.models.view.search_tab import SearchTab
from qwendesk.models.view.token_section import TokenSection
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.tasks import window_tasks


class ModelsView(msgspec.Struct):
    """The widgets of this feature."""

    services: ModelServices
    page: ModelsPage
    my_models: MyModels
    downloads_tab: DownloadsTab
    actions: ModelActions
    first_start: FirstStart
    no_model_strip: NoModelStrip
    watch: LibraryWatch

    def make_folders_section(self) -> FoldersSection:
        """Build the card of the model folders for the settings page."""
        return FoldersSection(self.services.library)

    def make_token_section(self) -> TokenSection:
        """Build the card of the access token for the settings page."""
        return TokenSection(self.services.token, self.services.network)

    def start(self) -> None:
        """Watch the folders, resume downloads, read the catalog, and look up this PC's devices and the token."""
        self.watch.start()
        self.services.downloads.start()
        self.services.catalog.start()
        tasks = window_tasks()
        tasks.start(self.services.offers.update())
        tasks.start(self.services.token.update())


def build_models_view(services: ModelServices, closing: AsyncExitStack) -> ModelsView:
    """Build the widgets; nothing runs before `start`. Needs a running event loop."""
    actions = ModelActions(services)
    my_models = MyModels(services, actions)
    downloads_tab = DownloadsTab(services.downloads, services.network)
    first_start = FirstStart(services.first_start, services.offers)
    first_start.use_asked.connect(actions.load)
    closing.callback(_delete_unless_shown, first_start)
    return ModelsView(
        services=services,
        page=_build_page(services, actions, my_models, downloads_tab),
        my_models=my_models,
        downloads_tab=downloads_tab,
        actions=actions,
        first_start=first_start,
        no_model_strip=NoModelStrip(services.first_start),
        watch=build_library_watch(services.library, closing),
    )


def _delete_unless_shown(first_start: FirstStart) -> None:
    """Delete the first start if it was never shown; otherwise it is deleted with the chat page."""
    if first_start.parentWidget() is None:
        first_start.deleteLater()


def _build_page(
    services: ModelServices, actions: ModelActions, my_models: MyModels, downloads_tab: DownloadsTab
) -> ModelsPage:
    page = ModelsPage()
    for_this_pc = ForThisPc(services.offers, services.catalog, services.downloads, services.speeds)
    search_tab = SearchTab(services.search, services.downloads)
    page.add_tab("pc", tr("For this PC"), for_this_pc)
    page.add_tab("mine", tr("My models"), my_models, scrolls=False)
    page.add_tab("hub", tr("Hugging Face"), search_tab)
    page.add_tab("downloads", tr("Downloads"), downloads_tab)
    for tab in (for_this_pc, search_tab):
        bind_field(tab, services.list.state, lambda state: state.statuses, tab.show_statuses)
        tab.use_asked.connect(actions.load)
        tab.fix_asked.connect(lambda: page.show_tab("mine"))
    my_models.offers_asked.connect(lambda: page.show_tab("pc"))
    downloads_tab.offers_asked.connect(lambda: page.show_tab("pc"))
    downloads_tab.load_asked.connect(actions.load)
    downloads_tab.action_failed.connect(lambda _sentence: page.show_tab("downloads"))
    actions.search_asked.connect(lambda _text: page.show_tab("hub"))
    actions.search_asked.connect(search_tab.search)
    for_this_pc.repo_asked.connect(lambda _repo: page.show_tab("hub"))
    for_this_pc.repo_asked.connect(search_tab.search)
    alerts = Alerts(services.list.state, actions)
    page.set_alerts(alerts)
    page.height_changed.connect(alerts.set_page_height)
    alerts.help_asked.connect(page.files_help_asked)
    alerts.list_asked.connect(lambda: page.show_tab("mine"))
    page.tab_shown.connect(lambda tab: alerts.set_hidden(is_hidden=tab == "mine"))
    bind_field(page, services.offers.state, lambda state: state.pc, lambda pc: page.show_machine(pc_text(pc)))
    bind_field(page, services.downloads.state, lambda state: len(state.unfinished), page.show_download_count)
    return page
