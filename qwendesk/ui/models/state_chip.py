"""The chip that says in one word how a model file is."""

from collections.abc import Mapping
from typing import Final

from PySide6.QtWidgets import QLabel, QSizePolicy

from qwendesk.services.models.states import ModelState, StateKind
from qwendesk.ui.kit.buttons import restyle
from qwendesk.ui.kit.text import mark, tr

_WORDS: Final[Mapping[StateKind, str]] = {
    "checking": mark("Looking…"),
    "verified": mark("Verified"),
    "not_verified": mark("Not verified"),
    "outdated": mark("Outdated"),
    "corrupt": mark("Corrupt"),
    "missing_shard": mark("Missing shard"),
    "broken_template": mark("Broken template"),
    "not_recommended": mark("Not recommended"),
}


class StateChip(QLabel):
    """Shows a ModelState; what decided it is in the tooltip."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setProperty("chip", "plain")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_state(self, state: ModelState) -> None:
        restyle(self, "chip", state.tone)
        text = tr(_WORDS[state.kind])
        self.setText(text)
        self.setAccessibleName(tr("State: {0}", text))
        self.setToolTip(state.evidence)
