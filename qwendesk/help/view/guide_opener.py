"""Opens the user guide."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.paths import guide_folder
from qwendesk.core.translation import installed_language
from qwendesk.widgets.navigation import Navigation

if TYPE_CHECKING:
    from qwendesk.help.view.help_window import HelpWindow


class GuideOpener(QObject):
    """Builds the help window when it is first opened; until then `shown` is None."""

    def __init__(self, window: QWidget, navigation: Navigation) -> None:
        super().__init__(window)
        self._navigation = navigation
        self._window = window
        navigation.help_asked.connect(self.open)
        self.shown: HelpWindow | None = None

    def open(self, page: str = "", section: str = "") -> None:
        """Show a page and a section of the guide; see `HelpWindow.open`."""
        if self.shown is None:
            # Imported only now, because most starts open no guide.
            from qwendesk.help.guide import read_guide  # noqa: PLC0415
            from qwendesk.help.view.help_window import HelpWindow  # noqa: PLC0415

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
