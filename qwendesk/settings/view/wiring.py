"""Builds the settings page, and the object that keeps the look of the window in sync with the options.

Of the widgets of this feature, the app imports only this module and deletion_report.
"""

from collections.abc import Callable

from PySide6.QtCore import QObject

from qwendesk.settings.privacy_service import PrivacyService
from qwendesk.settings.service import SettingsService
from qwendesk.settings.view.appearance import AppearanceSync
from qwendesk.settings.view.privacy_section import PrivacySection
from qwendesk.settings.view.settings_page import SettingsPage
from qwendesk.widgets.layouts import LazyPage
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.rows.titled_card import TitledCard


class SettingsView(QObject):
    """The settings feature in the window."""

    def __init__(
        self,
        settings: SettingsService,
        privacy: PrivacyService,
        make_folders: Callable[[], TitledCard],
        make_token: Callable[[], TitledCard],
        make_search_key: Callable[[], TitledCard],
        make_mcp_servers: Callable[[], TitledCard],
        make_programs: Callable[[], TitledCard],
        make_notes: Callable[[], TitledCard],
        make_consents: Callable[[], TitledCard],
        make_updates: Callable[[], TitledCard | None],
        remarks: Callable[[], dict[str, str]],
        navigation: Navigation,
    ) -> None:
        """`make_folders`, `make_token`, `make_search_key`, `make_mcp_servers` and `make_programs` build the cards of
        the model folders, of the access token, of the key for a search service, of the MCP servers, of the programs
        that game mode has rules for; `make_notes` that of the notes about the user, and
        `make_consents` that of what tools may do without asking, and `make_updates` that of newer versions, if there
        is one.

        `remarks` returns, by key, why options that are on have no effect on this PC.
        """
        super().__init__()
        self._navigation = navigation

        def build_page() -> SettingsPage:
            page = SettingsPage(
                settings, make_folders(), make_token(), make_search_key(), make_mcp_servers(), make_programs(),
                make_notes(), make_consents(), make_updates(), PrivacySection(privacy), remarks,
            )  # fmt: skip
            page.page_asked.connect(navigation.page_asked)
            page.restart_asked.connect(navigation.restart_asked)
            return page

        self.appearance = AppearanceSync(settings)
        # Built when it is first shown, because its many rows take nearly half a second.
        self.page = LazyPage(build_page)

    def open_at(self, part: str) -> None:
        """Show one section of the settings page: "token", "folders", "games" or "privacy"."""
        self._navigation.page_asked.emit("settings")
        self.page.page().open_at(part)
