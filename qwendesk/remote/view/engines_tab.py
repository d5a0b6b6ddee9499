"""The tab Other engines of the Server page: servers with models that the window can use."""

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.remote.service import RemoteService, RemoteState, UntrustedServer
from qwendesk.remote.view.server_card import AddServerCard, ServerCard
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.tasks import window_tasks


class EnginesTab(QWidget):
    """Shows the servers, and changes the list of them."""

    def __init__(self, service: RemoteService, engine: Observed[EngineState], navigation: Navigation) -> None:
        super().__init__()
        self._service, self._navigation, self._tasks = service, navigation, window_tasks()
        self.setObjectName("engines.tab")
        self._cards: dict[str, ServerCard] = {}
        self._n_made = 0
        self._in_use = ""
        self._asked_about: UntrustedServer | None = None
        lead = QLabel(
            tr(
                "Use models that run on llama-server, LM Studio, Ollama, vLLM, SGLang or another QwenDesk, on this PC "
                "or elsewhere. They answer your chats like models on this PC. What you write is sent to that server."
            )
        )
        lead.setProperty("kind", "lead")
        lead.setWordWrap(True)
        self.add_card = AddServerCard()
        self._list = QVBoxLayout()
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(12)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(16)
        column.addWidget(lead)
        column.addLayout(self._list)
        column.addWidget(self.add_card)
        column.addStretch(1)
        self.add_card.add_asked.connect(lambda address, key: self._tasks.start(self._add(address, key)))
        self.add_card.search_asked.connect(service.search)
        self.add_card.stop_asked.connect(service.stop_search)
        bind(self, service.state, self.show_state)
        bind_field(self, engine, _model_in_use, self.show_in_use)

    async def _add(self, address: str, key: str) -> None:
        if await self._service.add(address, key):
            self.add_card.clear()

    def _trust(self) -> None:
        """Trust the certificate that was shown."""

        async def trust() -> None:
            if await self._service.trust():
                self.add_card.clear()

        self._tasks.start(trust())

    def show_state(self, state: RemoteState) -> None:
        self.add_card.show_state(state)
        addresses = {each.server.address for each in state.servers}
        for address in [each for each in self._cards if each not in addresses]:
            card = self._cards.pop(address)
            self._list.removeWidget(card)
            card.hide()
            card.deleteLater()
        for listed in state.servers:
            if listed.server.address not in self._cards:
                self._cards[listed.server.address] = self._make_card(listed.server.address)
            self._cards[listed.server.address].show_server(listed)
        if state.untrusted is not None and state.untrusted is not self._asked_about:
            self._ask_about_certificate(state.untrusted)
        self._asked_about = state.untrusted

    def show_in_use(self, model: str) -> None:
        """Mark the model that the window uses, by its text in `LoadOptions.model`; "" if it is none of these."""
        self._in_use = model
        for card in self._cards.values():
            card.show_in_use(model)

    def showEvent(self, event: QShowEvent) -> None:
        """Ask the servers for their models, and look for others on this PC unless that was done before."""
        super().showEvent(event)
        if not self._tasks.can_start:
            return
        self._tasks.start(self._service.refresh_all())
        state = self._service.state.value
        if not state.has_searched and not state.searching:
            self._service.search("pc")

    def _make_card(self, address: str) -> ServerCard:
        self._n_made += 1
        card = ServerCard(self._n_made)
        service, start = self._service, self._tasks.start
        card.load_asked.connect(lambda model: self._navigation.load_asked.emit(LoadOptions(model=model)))
        card.refresh_asked.connect(lambda: start(service.refresh(address)))
        card.named.connect(lambda name: start(service.rename(address, name)))
        card.removal_asked.connect(lambda: self._ask_to_remove(address))
        card.show_in_use(self._in_use)
        self._list.addWidget(card)
        return card

    def _ask_to_remove(self, address: str) -> None:
        def remove() -> None:
            self._tasks.start(self._service.remove(address))

        QuestionDialog(
            self.window(),
            "engines.question",
            tr("Remove this server?"),
            tr("{0} is removed from the list, and its key from the keyring. Your chats stay.", address),
            (
                DialogButton("yes", tr("Remove"), remove),
                DialogButton("no", tr("Cancel")),
            ),
            default="no",
        ).open()

    def _ask_about_certificate(self, untrusted: UntrustedServer) -> None:
        QuestionDialog(
            self.window(),
            "engines.certificate",
            tr("Is this your server?"),
            tr(
                "Your system doesn't know the certificate of {0}. Compare its fingerprint with the one that the server "
                "shows. If they differ, somebody else may be reading along.\n\n{1}",
                untrusted.server.address,
                untrusted.fingerprint,
            ),
            (
                DialogButton("trust", tr("They match: trust it"), self._trust),
                DialogButton("cancel", tr("Cancel"), self._service.distrust),
            ),
            default="cancel",
        ).open()


def _model_in_use(state: EngineState) -> str:
    report = state.report
    return report.options.model if report is not None and is_served(report.options.model) else ""
