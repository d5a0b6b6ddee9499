"""The tab "For this PC": one recommended model, then the others by how well they fit."""

import datetime
from collections.abc import Mapping

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import join_sentences, tr
from qwendesk.models.catalog_service import CatalogService, CatalogState, date_text, result_text
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.new_models import NewOffer
from qwendesk.models.offers import Offers
from qwendesk.models.purpose_texts import PURPOSE_TITLES
from qwendesk.models.purposes import Purpose
from qwendesk.models.ranking import QuantOffer
from qwendesk.models.services import ModelServices
from qwendesk.models.view.file_button import FileOffersTab
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.new_models import NewModelsList
from qwendesk.models.view.offer_card import OfferCard
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, ResponsivePairLayout, horizontal_group, widget_with
from qwendesk.widgets.navigation import Navigation

# Least width in pixels of the purposes next to the buttons.
_LEAST_PURPOSES = 420


class ForThisPc(FileOffersTab):
    """The tab "For this PC"."""

    def __init__(self, services: ModelServices, actions: ModelActions, navigation: Navigation) -> None:
        super().__init__(services, actions, navigation, "models.pc")
        self._service, self._speeds = service, speeds = services.offers, services.speeds
        self._network = services.network
        self._cards: list[OfferCard] = []
        self._status = QLabel()
        self._status.setProperty("kind", "dim")
        self._status.setObjectName("models.pc.status")
        self._status.setWordWrap(True)
        self._pictures = TextButton(tr("With pictures"), kind="pill", icon_name="picture")
        self._pictures.setCheckable(True)
        tip = tr("Also download the vision file (mmproj), and include it in all estimates")
        describe(self._pictures, "models.pictures", tr("With pictures"), tip)
        self._pictures.setChecked(True)
        self._pictures.toggled.connect(lambda on: self._tasks.start(service.set_pictures(with_pictures=on)))
        self._purposes = {purpose: self._purpose_button(purpose) for purpose in PURPOSE_TITLES}
        purposes_row = FlowLayout(spacing=6)
        for button in self._purposes.values():
            purposes_row.addWidget(button)
        purposes = widget_with(purposes_row)
        purposes.setObjectName("models.purposes")
        purposes.setAccessibleName(tr("What counts most"))
        again = TextButton(tr("Refresh"), icon_name="again")
        describe(again, "models.pc.again", tr("Refresh"), tr("Check this PC's hardware again"))
        again.clicked.connect(lambda: self._tasks.start(service.refresh()))
        tools = horizontal_group(self._pictures, again)
        self._new = NewModelsList()
        self._new.download_asked.connect(self._on_new_asked)
        self._new.files_asked.connect(lambda offer: navigation.model_search_asked.emit(offer.model.repo))
        self._new.card_asked.connect(self._open_card)
        self._list = QVBoxLayout()
        self._list.setSpacing(12)
        self._list.addWidget(self._new)
        DensitySpacing(self._list)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(ResponsivePairLayout(purposes, tools, least=_LEAST_PURPOSES))
        column.addWidget(self._status)
        column.addWidget(CatalogLine(services.catalog))
        column.addWidget(self.problem)
        column.addLayout(self._list)
        column.addStretch(1)
        bind(self, service.state, self._show)
        bind(self, speeds, self._show_speeds)
        bind_field(self, services.list.state, lambda state: state.statuses, self.show_statuses)

    def show_statuses(self, statuses: FileStatuses) -> None:
        if statuses == self._statuses:
            return
        self._statuses = statuses
        self._new.show_statuses(statuses)
        for card in self._cards:
            card.show_statuses(statuses)

    def _purpose_button(self, purpose: Purpose) -> TextButton:
        title = tr(PURPOSE_TITLES[purpose])
        button = TextButton(title, kind="tab")
        button.setCheckable(True)
        describe(button, f"models.purpose.{purpose}", title, tr("Recommend a model for: {0}", title))
        button.clicked.connect(lambda: self._choose_purpose(purpose))
        return button

    def _choose_purpose(self, purpose: Purpose) -> None:
        self._service.set_purpose(purpose)
        self._check_purpose(purpose)

    def _check_purpose(self, chosen: Purpose) -> None:
        # Not an exclusive QButtonGroup, because the Tab key reaches only its checked button.
        for purpose, button in self._purposes.items():
            button.setChecked(purpose == chosen)

    def _show(self, offers: Offers) -> None:
        self._check_purpose(offers.purpose)
        self._status.setText(status_text(offers))
        self._status.setTextFormat(Qt.TextFormat.PlainText)
        opened = {card.offer.id for card in self._cards if card.is_open}
        for card in self._cards:
            self._list.removeWidget(card)
            card.setParent(None)
            card.deleteLater()
        self._new.show_offers(offers.new)
        self._cards = [OfferCard(offer, offers, self._speeds.value) for offer in offers.for_purpose]
        for card in self._cards:
            card.chosen.connect(self._on_chosen)
            card.repo_asked.connect(self._navigation.model_search_asked)
            card.show_statuses(self._statuses)
            # What is new comes after the first one, which is recommended.
            self._list.insertWidget(self._list.count() if card is not self._cards[0] else 0, card)
            card.show()
            if card.offer.id in opened:
                card.toggle_table()

    def _show_speeds(self, speeds: Mapping[str, float]) -> None:
        for card in self._cards:
            card.show_speeds(speeds)

    def _on_chosen(self, quant: QuantOffer) -> None:
        self.handle_click(quant.repo, quant.path, with_mmproj=self._service.state.value.with_pictures)

    def _on_new_asked(self, offer: NewOffer) -> None:
        if offer.item is not None:
            with_mmproj = self._service.state.value.with_pictures
            self.handle_click(offer.model.repo, offer.item.path, with_mmproj=with_mmproj)

    def _open_card(self, offer: NewOffer) -> None:
        QDesktopServices.openUrl(QUrl(self._network.page_of(offer.model.card)))


def status_text(offers: Offers) -> str:
    """Return what the estimates are based on, or why there are none."""
    if offers.state == "looking":
        return tr("Checking this PC…")
    if offers.state == "failed":
        return offers.problem
    if offers.pc.problem:
        return tr("{0} Estimates assume CPU only.", offers.pc.problem)
    if not offers.pc.gpus:
        return tr("No usable GPU found; estimates assume CPU only.")
    if offers.hero is None:
        return tr("No model in the catalog fits in this PC's memory.")
    return tr("Estimated for this PC.")


# Least width in pixels of the text next to the button.
_LEAST_TEXT = 240


class CatalogLine(QWidget):
    """Hidden while there is no catalog."""

    def __init__(self, service: CatalogService) -> None:
        super().__init__()
        self._service = service
        self._text = QLabel()
        self._text.setObjectName("models.catalog")
        self._text.setProperty("kind", "dim")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._button = TextButton()
        self._button.clicked.connect(self._on_click)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(ResponsivePairLayout(self._text, self._button, least=_LEAST_TEXT))
        bind(self, service.state, self._show)

    def showEvent(self, event: QShowEvent) -> None:
        """Tell the days anew: the page may have been hidden overnight."""
        super().showEvent(event)
        self._show(self._service.state.value)

    def _show(self, state: CatalogState) -> None:
        self.setVisible(state.catalog is not None)
        if state.catalog is None:
            return
        date = date_text(state.catalog.date, state.last, datetime.datetime.now().astimezone().date())
        self._text.setText(join_sentences(date, result_text(state)))
        if state.progress is None:
            text, tip = (
                tr("Check for updates"),
                tr("Ask Hugging Face which models and files are new, and which were replaced or removed"),
            )
        else:
            text, tip = tr("Cancel"), tr("Stop checking. What was found is kept.")
        self._button.setText(text)
        describe(self._button, "models.catalog.look_up", text, tip)
        self._button.setEnabled(state.progress is not None or not state.is_offline)

    def _on_click(self) -> None:
        if self._service.state.value.progress is None:
            self._service.look_up()
        else:
            self._service.cancel()
