"""Builds the tab Other engines and connects it to the servers. Of this feature's widgets, the app imports only this."""

from PySide6.QtCore import QObject

from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.engine.state import EngineState
from qwendesk.remote.service import RemoteService
from qwendesk.remote.view.engines_tab import EnginesTab
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks


class RemoteView(QObject):
    """The servers in the window. The tab is built when it is first shown."""

    def __init__(self, service: RemoteService, engine: Observed[EngineState], navigation: Navigation) -> None:
        super().__init__()
        self._navigation = navigation
        self._service, self._engine, self._tasks = service, engine, window_tasks()

    def make_tab(self) -> EnginesTab:
        """Build the tab."""
        service, start = self._service, self._tasks.start
        tab = EnginesTab()

        async def add(address: str, key: str) -> None:
            if await service.add(address, key):
                tab.add_card.clear()

        async def trust() -> None:
            if await service.trust():
                tab.add_card.clear()

        tab.load_asked.connect(lambda model: self._navigation.load_asked.emit(LoadOptions(model=model)))
        tab.refresh_asked.connect(lambda address: start(service.refresh(address)))
        tab.named.connect(lambda address, name: start(service.rename(address, name)))
        tab.removal_asked.connect(lambda address: start(service.remove(address)))
        tab.trusted.connect(lambda: start(trust()))
        tab.distrusted.connect(service.distrust)
        tab.add_card.add_asked.connect(lambda address, key: start(add(address, key)))
        tab.add_card.search_asked.connect(service.search)
        tab.add_card.stop_asked.connect(service.stop_search)
        tab.shown.connect(self._on_shown)
        bind(tab, service.state, tab.show_state)
        bind_field(tab, self._engine, _model_in_use, tab.show_in_use)
        return tab

    def _on_shown(self) -> None:
        """Ask the servers for their models, and look for others on this PC unless that was done before."""
        if not self._tasks.can_start:
            return
        self._tasks.start(self._service.refresh_all())
        state = self._service.state.value
        if not state.has_searched and not state.searching:
            self._service.search("pc")


def _model_in_use(state: EngineState) -> str:
    report = state.report
    return report.options.model if report is not None and is_served(report.options.model) else ""
