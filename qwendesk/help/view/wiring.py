"""Opens the user guide. Of the help feature's widgets, the app imports only this module and crash_notices."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.paths import guide_folder
from qwendesk.core.translation import installed_language
from qwendesk.help.guide import read_guide
from qwendesk.help.view.help_window import HelpWindow
from qwendesk.widgets.navigation import Navigation


class GuideOpener(QObject):
    """Builds the help window when it is first opened; until then `shown` is None."""

    def __init__(self, window: QWidget, navigation: Navigation) -> None:
        super().__init__(window)
        self._navigation = navigation
        self._window = window
        self.shown: HelpWindow | None = None

    def open(self, page: str = "", section: str = "") -> None:
        """Show a page and a section of the guide; see `HelpWindow.open`."""
        if self.shown is None:
            try:
                guide = read_guide(guide_folder(), installed_language())
            except QwenDeskError as error:
                self._navigation.error_found.emit(error.title, error.sentence)
                return
            self.shown = HelpWindow(guide, self._window)
        self.shown.open(page, section)

    def open_graphics_help(self) -> None:
        """Show what to do if the GPU is not used."""
        self.open("engine", "my-graphics-card-is-not-used")

    def close(self) -> None:
        """Close the guide, which must not outlive the main window."""
        if self.shown is not None:
            self.shown.close()
