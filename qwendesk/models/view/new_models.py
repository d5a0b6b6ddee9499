"""The part New of For this PC: the models that came after the catalog, each with what it needs and whether it runs."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from qwendesk.core.number_format import show_date
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.new_models import NewOffer
from qwendesk.models.view.file_button import show_file_status
from qwendesk.models.view.file_table import fit_chip
from qwendesk.models.view.offer_texts import new_facts_text, new_model_texts, new_summary_text, no_fit_text
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.kit import LIST_PADDING, button, column, label, paragraph, row
from qwendesk.widgets.layouts import FlowLayout, ResponsivePairLayout, widget_with

# Least width in pixels of the name with its facts, and of the text next to the buttons.
_LEAST_NAME, _LEAST_TEXT = 280, 360
# Longest name in characters.
_LONGEST_NAME = 40


class NewModelsList(QFrame):
    """Hidden while nothing is new. The signals carry a NewOffer."""

    download_asked = Signal(object)
    files_asked = Signal(object)
    card_asked = Signal(object)
    engine_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._offers: tuple[NewOffer, ...] = ()
        self._cards: list[NewModelCard] = []
        self._statuses = FileStatuses()
        self.setObjectName("models.new")
        self.setProperty("kind", "modelcard")
        self.setAccessibleName(tr("New models"))
        self._list = column(spacing=0, margins=(1, 1, 1, 1))
        self.setLayout(self._list)
        self.hide()

    def show_offers(self, offers: tuple[NewOffer, ...]) -> None:
        self.setVisible(bool(offers))
        if offers == self._offers:
            return
        self._offers = offers
        for card in self._cards:
            self._list.removeWidget(card)
            card.setParent(None)
            card.deleteLater()
        self._cards = [NewModelCard(offer) for offer in offers]
        for card in self._cards[-1:]:
            card.setProperty("last", "true")
        for card in self._cards:
            card.download_asked.connect(self.download_asked)
            card.files_asked.connect(self.files_asked)
            card.card_asked.connect(self.card_asked)
            card.engine_asked.connect(self.engine_asked)
            card.show_statuses(self._statuses)
            self._list.addWidget(card)

    def show_statuses(self, statuses: FileStatuses) -> None:
        self._statuses = statuses
        for card in self._cards:
            card.show_statuses(statuses)


class NewModelCard(QFrame):
    """Shows one NewOffer. The signals carry it."""

    download_asked = Signal(object)
    files_asked = Signal(object)
    card_asked = Signal(object)
    engine_asked = Signal()

    def __init__(self, offer: NewOffer) -> None:
        super().__init__()
        self._offer, model = offer, offer.model
        self._download: TextButton | None = None
        self.setObjectName(f"models.new.{model.repo}")
        self.setProperty("kind", "tablerow")
        self.setAccessibleName(tr("New: {0}", model.name))
        self._details = self._make_details()
        self._details.hide()
        head = ResponsivePairLayout(self._words(), self._buttons(), least=_LEAST_NAME, spacing=12)
        self.setLayout(column(head, self._details, margins=(LIST_PADDING, 8, 12, 8)))

    def show_statuses(self, statuses: FileStatuses) -> None:
        item = self._offer.item
        if self._download is not None and item is not None:
            show_file_status(self._download, statuses, self._offer.model.repo, item.path)

    def _words(self) -> QWidget:
        """Return the name with a chip, and below it whether the model fits."""
        model = self._offer.model
        title = FlowLayout()
        name = label(_title_of(model.name), "strong", wraps=True)
        found = tr("New files") if self._offer.known else tr("Found {0}", show_date(model.created))
        is_unknown = self._offer.item is None and (model.facts is not None or bool(model.errors))
        chip = label(tr("Not supported by this engine yet") if is_unknown else found, chip="plain")
        for widget in (name, chip):
            title.addWidget(widget)
        summary = label(new_summary_text(self._offer), "dim", name=f"models.new.summary.{model.repo}", wraps=True)
        return widget_with(column(title, summary, spacing=2))

    def _buttons(self) -> QWidget:
        offer, model = self._offer, self._offer.model
        files = button(
            tr("Look at it"), f"models.new.open.{model.repo}",
            said=tr("See the files of {0}", model.repo), tip=tr("See its files and whether they fit"),
        )  # fmt: skip
        files.clicked.connect(lambda: self.files_asked.emit(offer))
        self._open = IconButton("down")
        tip = tr("Licence, model card and the file for this PC")
        describe(self._open, f"models.new.details.{model.repo}", tr("Details of {0}", model.name), tip)
        self._open.clicked.connect(self.toggle)
        if not offer.needs_engine:
            return widget_with(row(files, self._open))
        engine = button(
            tr("Get a newer engine…"), f"models.new.engine.{model.repo}",
            said=tr("Get an engine for {0}", model.name), tip=tr("See on the Engine page which one can load it"),
        )  # fmt: skip
        engine.clicked.connect(self.engine_asked)
        return widget_with(row(engine, files, self._open))

    def toggle(self) -> None:
        """Open or close the details."""
        self._details.setVisible(not self._details.isVisibleTo(self))
        self._open.themed.show("up" if self._details.isVisibleTo(self) else "down")

    def _make_details(self) -> QFrame:
        model = self._offer.model
        facts = label(new_facts_text(self._offer), "dim", wraps=True)
        text = paragraph("\n".join(new_model_texts(self._offer)), name=f"models.new.text.{model.repo}", selectable=True)
        inside = column(
            ResponsivePairLayout(facts, self._fit(), least=_LEAST_NAME),
            ResponsivePairLayout(text, self._links(), least=_LEAST_TEXT),
            margins=(LIST_PADDING, 12, LIST_PADDING, 12),
        )
        details = QFrame()
        details.setProperty("kind", "details")
        details.setLayout(inside)
        return details

    def _fit(self) -> QLabel:
        item, name = self._offer.item, f"models.new.fit.{self._offer.model.repo}"
        if item is None or item.fit is None:
            return label(no_fit_text(self._offer.model), name=name, chip="plain")
        fit = fit_chip(item.fit)
        fit.setObjectName(name)
        return fit

    def _links(self) -> QWidget:
        offer, model = self._offer, self._offer.model
        card = button(
            tr("Model card"), f"models.new.page.{model.repo}", kind="link",
            said=tr("Model card of {0}", model.name), tip=tr("Open it in the browser"),
        )  # fmt: skip
        card.clicked.connect(lambda: self.card_asked.emit(offer))
        item = offer.item
        if item is None or item.fit is None or not item.fit.fits:
            return widget_with(row(card))
        size = show_bytes(item.n_bytes + item.mmproj_bytes)
        said = tr("Download {0} {1}, {2}", model.name, item.quant, size)
        self._download = button(tr("Download"), f"models.new.download.{model.repo}", said=said)
        self._download.clicked.connect(lambda: self.download_asked.emit(offer))
        return widget_with(row(card, self._download))


def _title_of(name: str) -> str:
    """Return the name, shortened so that it fits a narrow window in one piece."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
