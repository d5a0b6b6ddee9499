"""The tab "For this PC": a table of the models for a purpose, the best first, and the new ones below."""

import datetime
from collections.abc import Mapping

import msgspec
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.engine.state import EngineState
from qwendesk.models.catalog_service import CatalogService, CatalogState, date_text, result_text
from qwendesk.models.downloads import DownloadsState
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.new_models import NewOffer
from qwendesk.models.offers import Offers
from qwendesk.models.purposes import Purpose
from qwendesk.models.ranking import QuantOffer
from qwendesk.models.services import ModelServices
from qwendesk.models.view.file_button import FileOffersTab
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.new_models import NewModelsList
from qwendesk.models.view.offer_row import NARROW_BELOW, STACKED_BELOW, OfferRow, RowState, table_head
from qwendesk.models.view.purpose_tiles import PurposeTiles
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.kit import GAP, LIST_PADDING, STRETCH, button, column, label, paragraph, row
from qwendesk.widgets.layouts import ResponsivePairLayout, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Models that are shown before "Show more".
_N_BEST = 4
# Least width in pixels of the sentence above the table beside the switch.
_LEAST_STATUS = 200


class ForThisPc(FileOffersTab):
    """The tab "For this PC"."""

    def __init__(self, services: ModelServices, actions: ModelActions, navigation: Navigation) -> None:
        super().__init__(services, actions, navigation, "models.pc")
        self._service, self._speeds = services.offers, services.speeds
        self._network = services.network
        self._rows: list[OfferRow] = []
        self._state, self._is_all, self._n_more = RowState(), False, 0
        self._tiles = PurposeTiles()
        self._tiles.chosen.connect(self._on_purpose)
        self._new = NewModelsList()
        self._new.download_asked.connect(self._on_new_asked)
        self._new.files_asked.connect(lambda offer: navigation.model_search_asked.emit(offer.model.repo))
        self._new.card_asked.connect(self._open_card)
        self._new.engine_asked.connect(navigation.newer_engine_asked)
        content = column(
            self._tiles,
            GAP // 2,
            self._status_row(),
            GAP // 2,
            self.problem,
            self._table(),
            GAP,
            CatalogLine(services.catalog, self),
            GAP // 2,
            self._new,
            STRETCH,
            spacing=0,
        )
        self.setLayout(content)
        app_theme().follow(self, self._show_widths)
        bind(self, self._service.state, self._show)
        bind(self, self._speeds, self._show_speeds)
        bind_field(self, services.list.state, lambda state: state.statuses, self.show_statuses)
        bind_field(self, services.engine.observed, _loaded_path, self._show_loaded)
        bind_field(self, services.downloads.state, _percents, self._show_percents)

    def show_statuses(self, statuses: FileStatuses) -> None:
        if statuses == self._statuses:
            return
        self._statuses = statuses
        self._new.show_statuses(statuses)
        self._change(statuses=statuses)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_widths()

    def _status_row(self) -> ResponsivePairLayout:
        self._status = paragraph(name="models.pc.status")
        self._again = button(tr("Refresh"), "models.pc.again", kind="link", tip=tr("Check this PC's hardware again"))
        self._again.clicked.connect(lambda: self._tasks.start(self._service.refresh()))
        self._pictures = Switch()
        tip = tr("Also download the vision file (mmproj), and include it in all estimates")
        describe(self._pictures, "models.pictures", tr("With pictures"), tip)
        self._pictures.setChecked(True)
        self._pictures.toggled.connect(lambda on: self._tasks.start(self._service.set_pictures(with_pictures=on)))
        tools = widget_with(row(self._again, label(tr("With pictures")), self._pictures))
        return ResponsivePairLayout(self._status, tools, least=_LEAST_STATUS)

    def _table(self) -> QFrame:
        self._head = table_head()
        self._list = column(self._head, spacing=0)
        self._more = TextButton(kind="link")
        describe(self._more, "models.more", tr("Show more models"))
        self._more.clicked.connect(self._toggle_all)
        self._more_row = widget_with(row(self._more, STRETCH, margins=(LIST_PADDING - 3, 8, LIST_PADDING, 8)))
        self._list.addWidget(self._more_row)
        table = QFrame()
        table.setProperty("kind", "modelcard")
        table.setObjectName("models.table")
        table.setLayout(self._list)
        self._list.setContentsMargins(1, 1, 1, 1)
        self._frame = table
        return table

    def _on_purpose(self, purpose: Purpose) -> None:
        self._service.set_purpose(purpose)

    def _toggle_all(self) -> None:
        self._is_all = not self._is_all
        self._show(self._service.state.value)

    def _show(self, offers: Offers) -> None:
        self._tiles.show_purpose(offers.purpose)
        self._status.setText(status_text(offers))
        self._again.setVisible(offers.state == "failed" or bool(offers.pc.problem) or not offers.pc.gpus)
        opened = {each.offer.id for each in self._rows if each.is_open}
        for each in self._rows:
            self._list.removeWidget(each)
            each.setParent(None)
            each.deleteLater()
        self._new.show_offers(offers.new)
        listed = offers.for_purpose
        n_best = best_of(offers)
        shown = listed if self._is_all else listed[:n_best]
        self._rows = [OfferRow(offer, offers, self._speeds.value) for offer in shown]
        for place, each in enumerate(self._rows):
            each.chosen.connect(self._on_chosen)
            each.chat_asked.connect(self._navigation.chat_asked)
            each.repo_asked.connect(self._navigation.model_search_asked)
            each.show_state(self._state)
            self._list.insertWidget(1 + place, each)
            each.show()
            if each.offer.id in opened:
                each.toggle()
        self._frame.setVisible(bool(listed))
        n_more = len(listed) - n_best
        self._more_row.setVisible(n_more > 0)
        self._n_more = n_more
        self._show_widths()

    def _show_widths(self) -> None:
        width, scale = self.width(), current_theme().text_scale
        for each in self._rows:
            each.show_width(width)
        is_wide = width >= NARROW_BELOW * scale
        self._head.setVisible(is_wide)
        self._tiles.show_notes(on=is_wide)
        more = more_text(self._n_more) if width >= STACKED_BELOW * scale else tr("Show {0} more", self._n_more)
        self._more.setText(tr("Show fewer") if self._is_all else more)
        describe(self._more, "models.more", self._more.text(), more_text(self._n_more))

    def _show_speeds(self, speeds: Mapping[str, float]) -> None:
        for each in self._rows:
            each.show_speeds(speeds)

    def _show_loaded(self, path: str) -> None:
        self._change(loaded=path)

    def _show_percents(self, percents: Mapping[tuple[str, str], int]) -> None:
        self._change(percents=percents)

    def _change(self, **changes: object) -> None:
        self._state = msgspec.structs.replace(self._state, **changes)
        for each in self._rows:
            each.show_state(self._state)

    def _on_chosen(self, quant: QuantOffer) -> None:
        self.handle_click(quant.repo, quant.path, with_mmproj=self._service.state.value.with_pictures)

    def _on_new_asked(self, offer: NewOffer) -> None:
        if offer.item is not None:
            with_mmproj = self._service.state.value.with_pictures
            self.handle_click(offer.model.repo, offer.item.path, with_mmproj=with_mmproj)

    def _open_card(self, offer: NewOffer) -> None:
        QDesktopServices.openUrl(QUrl(self._network.page_of(offer.model.card)))


def best_of(offers: Offers) -> int:
    """Return how many models are shown at first: the best for the purpose, or all if none fits."""
    n_fitting = len(offers.choices.get(offers.purpose, ()))
    return min(n_fitting, _N_BEST) or len(offers.offers)


def status_text(offers: Offers) -> str:
    """Return what the table shows, what the estimates are based on, or why there is nothing."""
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
    counts = best_of(offers), len(offers.offers)
    return {
        "fast": tr("The best {0} of {1} models for quick answers", *counts),
        "deep": tr("The best {0} of {1} models for hard questions", *counts),
        "long": tr("The best {0} of {1} models for long texts", *counts),
        "quality": tr("The best {0} of {1} models for exact answers", *counts),
    }[offers.purpose]


def more_text(n_more: int) -> str:
    """Return what the link below the table shows."""
    return tr_n(
        "Show {0} more: smaller, slower or too large for this PC",
        "Show {0} more: smaller, slower or too large for this PC",
        n_more,
    )


def _loaded_path(state: EngineState) -> str:
    return state.report.options.model if state.report is not None else ""


def _percents(state: DownloadsState) -> Mapping[tuple[str, str], int]:
    """Return how much of each running download is done, by the repository and path of its first file."""
    running = (each for each in state.unfinished if each.saved.state == "running")
    firsts = ((each, each.saved.files[0].file) for each in running)
    return {(file.repo, file.path): 100 * each.n_done // max(each.saved.n_bytes, 1) for each, file in firsts}


# Least width in pixels of the text next to the button.
_LEAST_TEXT = 240


class CatalogLine(QWidget):
    """The head of New: how old the list is, what the last check found, and a button. Hidden without a catalog."""

    def __init__(self, service: CatalogService, parent: QWidget) -> None:
        super().__init__(parent)
        self._service = service
        self._text = paragraph(kind="dim", name="models.catalog")
        self._button = TextButton(kind="link", icon_name="again", role="text_link", size=14)
        self._button.clicked.connect(self._on_click)
        words = row(label(tr("New"), "heading"), self._text, spacing=10)
        words.setStretch(1, 1)
        self.setLayout(column(ResponsivePairLayout(widget_with(words), self._button, least=_LEAST_TEXT)))
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
