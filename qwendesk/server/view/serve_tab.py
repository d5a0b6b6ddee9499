"""The tab This PC serves of the Server page: the server, the programs that use it, and their requests."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.server.setups.service import SetupState
from qwendesk.server.view.address_card import AddressCard
from qwendesk.server.view.programs_card import ProgramsCard
from qwendesk.server.view.requests_card import RequestsCard
from qwendesk.widgets.layouts import EqualColumnsLayout

_NARROWEST_CARD = 420


class ServeTab(QWidget):
    shown = Signal()

    def __init__(self, states: Sequence[SetupState]) -> None:
        super().__init__()
        self.setObjectName("serve.tab")
        self.address, self.requests = AddressCard(), RequestsCard()
        self.programs = ProgramsCard(states)
        cards = EqualColumnsLayout(least=_NARROWEST_CARD)
        cards.addWidget(self.address)
        cards.addWidget(self.programs)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addLayout(cards)
        column.addWidget(self.requests)
        column.addStretch(1)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()
