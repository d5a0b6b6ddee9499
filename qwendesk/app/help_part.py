"""Builds the guide's window the first time somebody asks for it, and joins it to what offers help."""

import msgspec

from qwendesk.app.meters_part import MetersPart
from qwendesk.app.models_part import ModelsPart
from qwendesk.app.start_part import StartPart
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.paths import guide_folder
from qwendesk.services.guide import read_guide
from qwendesk.services.models.unused import unused_gpus
from qwendesk.ui.frame.actions import install
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.help.help_window import HelpWindow
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class HelpPart(msgspec.Struct):
    """`shown` is None until the guide was opened once."""

    keeper: ThemeKeeper
    window: MainWindow
    shown: HelpWindow | None = None

    def open(self, page: str = "", section: str = "") -> None:
        """Show the guide at a page and a section."""
        if self.shown is None:
            try:
                guide = read_guide(guide_folder())
            except QwenDeskError as error:
                self.window.report(error.title, error.sentence)
                return
            self.shown = HelpWindow(self.keeper, guide, self.window)
        self.shown.open(page, section)

    def close(self) -> None:
        """It must not outlive the window it belongs to."""
        if self.shown is not None:
            self.shown.close()


def build_help(
    keeper: ThemeKeeper, window: MainWindow, models: ModelsPart, first: StartPart, meters: MetersPart
) -> HelpPart:
    """The command and the places that offer help are joined to the guide afterwards; no page is read yet."""
    part = HelpPart(keeper, window)
    install(window, {"guide": part.open})
    meters.banner.help_asked.connect(lambda: part.open("spill"))
    models.page.files_help_asked.connect(lambda: part.open("flagged-files", "what-the-states-mean"))
    first.view.engine_help_asked.connect(lambda: part.open("engine", "my-graphics-card-is-not-used"))

    def show_unused() -> None:
        first.view.show_unused_gpus(unused_gpus(first.bridge.start.offers, meters.bridge.meters.snapshot))

    first.bridge.changed.connect(show_unused)
    meters.bridge.changed.connect(show_unused)
    return part
