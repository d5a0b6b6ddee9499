"""The Server page: models for other programs, and models of other servers."""

from collections.abc import Callable
from typing import Final

from PySide6.QtWidgets import QWidget

from qwendesk.app.window.main_window import MainWindow
from qwendesk.core.translation import tr
from qwendesk.engines.view.next_step_card import NextStepCard
from qwendesk.remote.view.wiring import RemoteView
from qwendesk.server.view.wiring import ServeView
from qwendesk.services import App
from qwendesk.widgets.actions import COMMANDS, install
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.layouts import LazyPage
from qwendesk.widgets.tabbed_page import TabbedPage

ORDER: Final = ("serve", "engines")
"""Tabs by key, left to right: This PC serves, Other engines."""


def add_server_page(services: App, window: MainWindow, command_asked: Callable[[], None]) -> Callable[[], None]:
    """Add the Server page, which is built when it is first shown. Return what shows its tab of other engines.

    `command_asked` shows vLLM's command.
    """
    remote = RemoteView(services.remote, services.engine.observed)
    remote.setParent(window)
    remote.load_asked.connect(window.load_served)

    serve = ServeView(services.server_switch, services.setups, services.settings.state)
    serve.setParent(window)
    serve.failed.connect(window.report)

    def report_problem(problem: str) -> None:
        if problem and window.page != "server":
            window.report(tr("The server didn't start"), problem)

    bind_field(window, services.server_switch.observed, lambda state: state.problem, report_problem)

    def build() -> TabbedPage:
        page = TabbedPage("server", tr("Server"), tr("Sections of the Server page"), ORDER, QWidget())
        page.setObjectName("server.page")
        card = NextStepCard()
        card.command_asked.connect(command_asked)
        bind(card, services.outgrown.state, card.show_step)
        page.set_alerts(card)
        page.add_tab("serve", tr("This PC serves"), serve.make_tab())
        page.add_tab("engines", tr("Other engines"), remote.make_tab())
        return page

    def show_engines() -> None:
        window.go_to("server")
        page.page().show_tab("engines")

    page = LazyPage(build)
    window.add_page("server", "server", tr("Server"), COMMANDS["page_server"].shortcut, page)
    install(window, {"page_server": lambda: window.go_to("server")})
    return show_engines
