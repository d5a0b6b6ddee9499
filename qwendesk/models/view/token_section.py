"""The access token on the settings page: saving, testing and deleting it. It is never shown."""

from typing import Final

from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.core.translation import mark, tr
from qwendesk.hub.access_tokens import TokenPlace
from qwendesk.models.network import NetworkService, TokenService, TokenState, TokenTest
from qwendesk.widgets.bind import bind, follow
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.rows.titled_card import TitledCard
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


class TokenSection(TitledCard):
    """Shows where the token is saved, and changes it."""

    def __init__(self, service: TokenService, network: NetworkService) -> None:
        super().__init__("settings.token", tr("Access token"), _WORDS)
        self._service, self._tasks = service, window_tasks()
        self._place = _label("settings.token.place", "small")
        self._result = _label("settings.token.result", "small")
        self._field = QLineEdit()
        self._field.setEchoMode(QLineEdit.EchoMode.Password)
        self._field.setPlaceholderText(tr("Paste your token"))
        describe(
            self._field, "settings.token.field", tr("Access token"), tr("Create a token in your Hugging Face settings")
        )
        self._save = self._button("save", tr("Save"), tr("Save this token"))
        self._test = self._button("test", tr("Test"), tr("Check whether Hugging Face accepts the token"))
        self._delete = self._button("delete", tr("Delete"), tr("Delete the saved token"))
        self.setFocusProxy(self._field)  # so that users who are sent to this card can type at once
        box = QWidget()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._field, 1)
        for button in (self._save, self._test, self._delete):
            row.addWidget(button)
        column = QVBoxLayout(box)
        column.setContentsMargins(16, 8, 16, 8)
        column.setSpacing(8)
        column.addWidget(self._place)
        column.addLayout(row)
        column.addWidget(self._result)
        self.add(box)
        self._field.textChanged.connect(lambda text: self._save.setEnabled(bool(text.strip())))
        self._field.returnPressed.connect(self._on_save)
        self._save.clicked.connect(self._on_save)
        self._test.clicked.connect(lambda: self._tasks.start(service.test()))
        self._delete.clicked.connect(lambda: self._tasks.start(service.delete()))
        self._save.setEnabled(False)
        bind(self, service.state, self._show)
        follow(self, network.subscribe_host, self._on_host)
        if service.state.value.host != network.connection.host:  # it changed before this card was built
            self._on_host(network.connection.host)

    def _on_host(self, _host: str) -> None:
        self._tasks.start(self._service.update())

    def _on_save(self) -> None:
        token = self._field.text().strip()
        if token:
            self._field.clear()
            self._tasks.start(self._service.save(token))

    def _show(self, state: TokenState) -> None:
        self._place.setText(tr(_PLACES[state.place], state.host))
        self._test.setEnabled(state.place != "nowhere")
        self._delete.setEnabled(state.place in ("keyring", "file"))
        self._show_test(state.test)

    def _show_test(self, test: TokenTest | None) -> None:
        self._result.setVisible(test is not None)
        if test is not None:
            self._result.setText(test.sentence)
            restyle(self._result, "kind", "good" if test.is_good else "error")

    def _button(self, name: str, text: str, tip: str) -> TextButton:
        button = TextButton(text)
        describe(button, f"settings.token.{name}", text, tip)
        return button


def _label(name: str, kind: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    return label
