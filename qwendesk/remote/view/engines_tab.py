"""The tab Other engines of the Server page: servers with models that the window can use."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.remote.service import RemoteState, UntrustedServer
from qwendesk.remote.view.add_server_card import AddServerCard
from qwendesk.remote.view.server_card import ServerCard
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog


class EnginesTab(QWidget):
    """Shows a RemoteState, and emits what the user wants of the servers."""

    load_asked = Signal(str)
    named = Signal(str, str)
    """The address of a server, and what the user calls it now."""
    refresh_asked = Signal(str)
    """The address of a server."""
    removal_asked = Signal(str)
    """The address of a server, after the user has confirmed it."""
    trusted = Signal()
    """The certificate that was shown is the right one."""
    distrusted = Signal()
    shown = Signal()

    def __init__(self) -> None:
        super().__init__()
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
        super().showEvent(event)
        self.shown.emit()

    def _make_card(self, address: str) -> ServerCard:
        self._n_made += 1
        card = ServerCard(self._n_made)
        card.load_asked.connect(self.load_asked)
        card.refresh_asked.connect(lambda: self.refresh_asked.emit(address))
        card.named.connect(lambda name: self.named.emit(address, name))
        card.removal_asked.connect(lambda: self._ask_to_remove(address))
        card.show_in_use(self._in_use)
        self._list.addWidget(card)
        return card

    def _ask_to_remove(self, address: str) -> None:
        QuestionDialog(
            self.window(),
            "engines.question",
            tr("Remove this server?"),
            tr("{0} is removed from the list, and its key from the keyring. Your chats stay.", address),
            (
                DialogButton("yes", tr("Remove"), lambda: self.removal_asked.emit(address)),
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
                DialogButton("trust", tr("They match: trust it"), self.trusted.emit),
                DialogButton("cancel", tr("Cancel"), self.distrusted.emit),
            ),
            default="cancel",
        ).open()
