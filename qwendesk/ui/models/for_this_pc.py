"""The tab "For this PC": one recommended model, the others by how well they fit."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout

from qwendesk.services.models.offers import Offers
from qwendesk.services.models.ranking import QuantOffer
from qwendesk.ui.bridges.offers import OffersBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.have import Have
from qwendesk.ui.models.offer_card import OfferCard
from qwendesk.ui.models.offers_files import OffersFiles


class ForThisPc(OffersFiles):
    """Emits what the person wants; shows the bridge's Offers."""

    download_asked = Signal(str, str, bool)
    """Repository, path in it, with its picture file."""

    def __init__(self, keeper: ThemeKeeper, offers: OffersBridge) -> None:
        super().__init__()
        self._keeper, self._bridge = keeper, offers
        self._cards: list[OfferCard] = []
        self._status = QLabel()
        self._status.setProperty("kind", "dim")
        self._status.setObjectName("models.pc.status")
        self._status.setWordWrap(True)
        self._pictures = TextButton(keeper, " " + tr("With pictures"), kind="pill", icon_name="picture")
        self._pictures.setCheckable(True)
        tip = tr("Download the picture file (mmproj) too, and count it in every fit")
        describe(self._pictures, "models.pictures", tr("With pictures"), tip)
        self._pictures.setChecked(True)
        self._pictures.toggled.connect(offers.choose_pictures)
        again = TextButton(keeper, " " + tr("Look again"), kind="quiet", icon_name="again")
        describe(again, "models.pc.again", tr("Look again"), tr("Ask the engine again what this PC has"))
        again.clicked.connect(offers.look_again)
        row = QHBoxLayout()
        row.addWidget(self._status, 1)
        tools = FlowLayout()
        tools.addWidget(self._pictures)
        tools.addWidget(again)
        row.addLayout(tools)
        self._problem = QLabel()
        self._problem.setProperty("kind", "error")
        self._problem.setObjectName("models.pc.problem")
        self._problem.setWordWrap(True)
        self._problem.hide()
        self._list = QVBoxLayout()
        self._list.setSpacing(12)
        Airy(keeper, self._list)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(row)
        column.addWidget(self._problem)
        column.addLayout(self._list)
        column.addStretch(1)
        offers.changed.connect(self._refresh)
        self._refresh()

    def say(self, problem: str) -> None:
        """Why a download could not be begun; "" for nothing to say."""
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))

    def show_have(self, have: Have) -> None:
        """What is on this PC or on its way."""
        if have == self._have:
            return
        self._have = have
        for card in self._cards:
            card.show_have(have)

    def _refresh(self) -> None:
        offers = self._bridge.offers
        self._status.setText(status_text(offers))
        self._status.setTextFormat(Qt.TextFormat.PlainText)
        opened = {card.offer.id for card in self._cards if card.is_open}
        for card in self._cards:
            self._list.removeWidget(card)
            card.setParent(None)
            card.deleteLater()
        self._cards = [OfferCard(self._keeper, offer, offers.speed(offer)) for offer in offers.offers]
        for card in self._cards:
            card.wanted.connect(self._on_wanted)
            card.show_have(self._have)
            self._list.addWidget(card)
            card.show()
            if card.offer.id in opened:
                card.toggle_table()

    def _on_wanted(self, quant: QuantOffer) -> None:
        if not self.take_next_step(quant.repo, quant.path):
            self.download_asked.emit(quant.repo, quant.path, self._bridge.offers.with_pictures)


def status_text(offers: Offers) -> str:
    """What was looked at, and what could not be."""
    if offers.state == "looking":
        return tr("Looking at this PC…")
    if offers.state == "failed":
        return offers.problem
    age = tr("Sizes as of {0}.", offers.catalog_date)
    if offers.pc.problem:
        return tr("The engine could not be asked: {0} Everything is counted for the CPU. {1}", offers.pc.problem, age)
    if not offers.pc.gpus:
        no_gpu = tr("The engine sees no GPU with memory of its own, so everything is counted for the CPU: slower.")
        return f"{no_gpu} {age}"
    if offers.hero is None:
        return tr("Nothing in the catalog fits into the memory of this PC. {0}", age)
    return tr("Counted for this PC. {0}", age)
