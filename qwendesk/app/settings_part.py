"""Builds the settings page and what follows the options: the look of the window, offline downloads."""

import msgspec

from qwendesk.app.models_part import ModelsPart
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.places import FoldersBridge, TokenBridge
from qwendesk.ui.bridges.settings import Look, SettingsBridge
from qwendesk.ui.frame.actions import COMMANDS, install
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.download_texts import badge_text
from qwendesk.ui.settings.settings_page import SettingsPage


class SettingsPart(msgspec.Struct):
    """The settings page with what stands behind it."""

    page: SettingsPage
    bridge: SettingsBridge
    folders: FoldersBridge
    token: TokenBridge
    look: Look

    def start(self) -> None:
        """Find out where the token is."""
        self.token.look()

    def close(self) -> None:
        """No news any more."""
        self.look.close()
        for bridge in (self.bridge, self.folders, self.token):
            bridge.close()


def build_settings(
    keeper: ThemeKeeper, tasks: Tasks, service: SettingsService, models: ModelsPart, window: MainWindow
) -> SettingsPart:
    """The page at the bottom of the rail, joined to the options and to the Models page."""
    bridge = SettingsBridge(service)
    folders, token = FoldersBridge(models.models, tasks), TokenBridge(models.network, tasks)
    page = SettingsPage(keeper, bridge, folders, token)
    window.add_page("settings", "settings", tr("Settings"), COMMANDS["page_settings"].shortcut, page)
    install(window, {"page_settings": lambda: window.go_to("settings")})
    page.page_asked.connect(window.show_page)
    _connect_downloads(models, bridge, page, window)
    return SettingsPart(page, bridge, folders, token, Look(keeper, bridge))


def _connect_downloads(models: ModelsPart, bridge: SettingsBridge, page: SettingsPage, window: MainWindow) -> None:
    tab, fetching = models.downloads_tab, models.fetching

    def open_settings(part: str) -> None:
        window.show_page("settings")
        page.open_at(part)

    def open_downloads() -> None:
        window.show_page("models")
        models.page.show_tab("downloads")

    def show_count() -> None:
        count = badge_text(fetching.state.items)
        window.rail.set_badge("models", count, tr("Models, downloads: {0}", count))

    install(window, {"downloads": open_downloads})
    tab.settings_asked.connect(open_settings)
    tab.online_asked.connect(lambda: bridge.change("offline", False))
    fetching.changed.connect(show_count)
