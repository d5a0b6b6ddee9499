"""The Server page: models for other programs, and models of other servers."""

from collections.abc import Callable
from typing import Final

from PySide6.QtWidgets import QWidget

from qwendesk.commands.outgrown import NextStep
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engines.view.next_step_card import NextStepCard
from qwendesk.remote.view.wiring import RemoteView
from qwendesk.server.view.wiring import ServeView
from qwendesk.widgets.bind import bind
from qwendesk.widgets.tabbed_page import TabbedPage

ORDER: Final = ("serve", "engines")
"""Tabs by key, left to right: This PC serves, Other engines."""


def build_server_page(
    serve: ServeView, remote: RemoteView, next_step: Observed[NextStep | None], show_command: Callable[[], None]
) -> TabbedPage:
    """Return the page. `show_command` shows vLLM's command, which may be the next step."""
    page = TabbedPage("server", tr("Server"), tr("Sections of the Server page"), ORDER, QWidget())
    page.setObjectName("server.page")
    card = NextStepCard()
    card.command_asked.connect(show_command)
    bind(card, next_step, card.show_step)
    page.set_alerts(card)
    page.add_tab("serve", tr("This PC serves"), serve.make_tab())
    page.add_tab("engines", tr("Other engines"), remote.make_tab())
    return page
