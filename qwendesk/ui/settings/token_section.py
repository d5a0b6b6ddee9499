"""The access token on the settings page: typed once, masked, tested, forgotten."""

from typing import Final

from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.hub.token import TokenPlace
from qwendesk.services.models.network import TokenTest
from qwendesk.ui.bridges.places import TokenBridge
from qwendesk.ui.kit.buttons import TextButton, describe, restyle
from qwendesk.ui.kit.text import mark, tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.section import Section

WORDS = "access token hugging face gated login account keyring password key"
_PLACES: Final[dict[TokenPlace, str]] = {
    "environment": mark("A token for {0} comes from HF_TOKEN in the environment, which goes before a saved one."),
    "keyring": mark("A token for {0} is kept in this system's keyring."),
    "file": mark("A token for {0} is kept in a file that only you can read; this system has no usable keyring."),
    "nowhere": mark("No token for {0}. Only gated and private repositories need one."),
}


class TokenSection(Section):
    """Follows a TokenBridge."""

    def __init__(self, keeper: ThemeKeeper, bridge: TokenBridge) -> None:
        super().__init__("settings.token", tr("Access token"))
        self._bridge = bridge
        self._place = _label("settings.token.place", "small")
        self._result = _label("settings.token.result", "small")
        self._field = QLineEdit()
        self._field.setEchoMode(QLineEdit.EchoMode.Password)
        self._field.setPlaceholderText(tr("Paste a token of yours"))
        describe(self._field, "settings.token.field", tr("Access token"), tr("Made on the Hub's settings page"))
        self._save = self._button(keeper, "save", tr("Save"), tr("Keep this token"))
        self._test = self._button(keeper, "test", tr("Test"), tr("Ask the Hub whose token it is"))
        self._delete = self._button(keeper, "delete", tr("Delete"), tr("Forget the token"))
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
        self._result.hide()
        self._field.textChanged.connect(lambda text: self._save.setEnabled(bool(text.strip())))
        self._field.returnPressed.connect(self._on_save)
        self._save.clicked.connect(self._on_save)
        self._test.clicked.connect(bridge.test)
        self._delete.clicked.connect(self._on_delete)
        self._save.setEnabled(False)
        bridge.placed.connect(self._on_placed)
        bridge.tested.connect(self._on_tested)
        self._on_placed("nowhere")

    def matches(self, query: str) -> bool:
        return all(word in WORDS for word in query.lower().split())

    def start_typing(self) -> None:
        self._field.setFocus()

    def _on_save(self) -> None:
        token = self._field.text().strip()
        if token:
            self._field.clear()
            self._result.hide()
            self._bridge.save(token)

    def _on_delete(self) -> None:
        self._result.hide()
        self._bridge.delete()

    def _on_placed(self, place: TokenPlace) -> None:
        self._place.setText(tr(_PLACES[place], self._bridge.host))
        self._test.setEnabled(place != "nowhere")
        self._delete.setEnabled(place in ("keyring", "file"))

    def _on_tested(self, test: TokenTest) -> None:
        self._result.setText(test.sentence)
        restyle(self._result, "kind", "good" if test.is_good else "error")
        self._result.show()

    def _button(self, keeper: ThemeKeeper, name: str, text: str, tip: str) -> TextButton:
        button = TextButton(keeper, text)
        describe(button, f"settings.token.{name}", text, tip)
        return button


def _label(name: str, kind: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    return label
