"""The Server page: models for other programs, and models of other servers."""

from typing import Final

from PySide6.QtWidgets import QWidget

from qwendesk.commands.outgrown import NextStep
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engines.view.next_step_card import NextStepCard
from qwendesk.remote.view.engines_tab import EnginesTab
from qwendesk.server.view.serve_tab import ServeTab
from qwendesk.widgets.bind import bind
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tabbed_page import TabbedPage

# Tabs by key, left to right: This PC serves, Other engines.
ORDER: Final = ("serve", "engines")


class ServerPage(TabbedPage):
    """The Server page."""

    def __init__(
        self, serve: ServeTab, engines: EnginesTab, next_step: Observed[NextStep | None], navigation: Navigation
    ) -> None:
        """`next_step` is what suits the user better now, if anything. vLLM may be."""
        super().__init__("server", tr("Server"), tr("Sections of the Server page"), ORDER, QWidget())
        self.setObjectName("server.page")
        card = NextStepCard()
        card.command_asked.connect(navigation.vllm_command_asked)
        bind(card, next_step, card.show_step)
        self.set_alerts(card)
        self.add_tab("serve", tr("This PC serves"), serve)
        self.add_tab("engines", tr("Other engines"), engines)
