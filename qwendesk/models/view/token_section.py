"""The access token on the settings page: saving, testing and deleting it. It is never shown."""

from typing import Final

from qwendesk.core.translation import mark, tr
from qwendesk.hub.access_tokens import TokenPlace
from qwendesk.models.network import NetworkService, TokenService, TokenState
from qwendesk.widgets.bind import bind, follow
from qwendesk.widgets.rows.titled_card import SecretCard
from qwendesk.widgets.tasks import window_tasks

_WORDS = "access token hugging face gated login account keyring password key"
_PLACES: Final[dict[TokenPlace, str]] = {
    "environment": mark("The HF_TOKEN environment variable has a token for {0}, which is used instead of a saved one."),
    "keyring": mark("A token for {0} is saved in your system's keyring."),
    "file": mark(
        "A token for {0} is saved in a file that only you can read, because your system has no usable keyring."
    ),
    "nowhere": mark("No token for {0}. Only gated and private repositories need one."),
}


class TokenSection(SecretCard):
    """Shows where the token is saved, and changes it."""

    def __init__(self, service: TokenService, network: NetworkService) -> None:
        super().__init__(
            "settings.token",
            tr("Access token"),
            _WORDS,
            placeholder=tr("Paste your token"),
            tip=tr("Create a token in your Hugging Face settings"),
        )
        self._service, self._tasks = service, window_tasks()
        self._test = self.add_button("test", tr("Test"), tr("Check whether Hugging Face accepts the token"))
        self.saved.connect(lambda token: self._tasks.start(service.save(token)))
        self.deleted.connect(lambda: self._tasks.start(service.delete()))
        self._test.clicked.connect(lambda: self._tasks.start(service.test()))
        bind(self, service.state, self._show)
        follow(self, network.subscribe_host, self._on_host)
        if service.state.value.host != network.connection.host:  # it changed before this card was built
            self._on_host(network.connection.host)

    def _on_host(self, _host: str) -> None:
        self._tasks.start(self._service.update())

    def _show(self, state: TokenState) -> None:
        self.show_place(tr(_PLACES[state.place], state.host), can_delete=state.place in ("keyring", "file"))
        self._test.setEnabled(state.place != "nowhere")
        test = state.test
        self.show_result(test.sentence if test else "", is_good=test is not None and test.is_good)
