"""The part New of For this PC: the models that came after the catalog, each with what it needs and whether it runs."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.new_models import NewOffer
from qwendesk.models.view.file_button import show_file_status
from qwendesk.models.view.file_table import fit_chip, small_label
from qwendesk.models.view.offer_texts import new_facts_text, new_model_texts, no_fit_text
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, ResponsivePairLayout, horizontal_group, widget_with
from qwendesk.widgets.text_layout import WrappingLabel

# Least width in pixels of the name with its facts, and of the text next to the buttons.
_LEAST_NAME, _LEAST_TEXT = 480, 360
# Longest name in characters.
_LONGEST_NAME = 40


class NewModelsList(QWidget):
    """Hidden while nothing is new. The signals carry a NewOffer."""

    download_asked = Signal(object)
    files_asked = Signal(object)
    card_asked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._offers: tuple[NewOffer, ...] = ()
        self._cards: list[NewModelCard] = []
        self._statuses = FileStatuses()
        self.setObjectName("models.new")
        title = QLabel(tr("New"))
        title.setProperty("kind", "heading")
        self.setAccessibleName(tr("New models"))
        about = small_label(tr("Models that came after this catalog, as the last check for updates found them."))
        about.setWordWrap(True)
        self._list = QVBoxLayout(self)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(12)
        DensitySpacing(self._list)
        self._list.addWidget(title)
        self._list.addWidget(about)
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
        for card in self._cards:
            card.download_asked.connect(self.download_asked)
            card.files_asked.connect(self.files_asked)
            card.card_asked.connect(self.card_asked)
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

    def __init__(self, offer: NewOffer) -> None:
        super().__init__()
        self._offer, model = offer, offer.model
        self._download: TextButton | None = None
        self.setObjectName(f"models.new.{model.repo}")
        self.setProperty("kind", "modelcard")
        self.setAccessibleName(tr("New: {0}", model.name))
        text = QLabel("\n".join(new_model_texts(offer)))
        text.setObjectName(f"models.new.text.{model.repo}")
        text.setProperty("kind", "dim")
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 14, 18, 14)
        column.setSpacing(8)
        DensitySpacing(column)
        column.addLayout(ResponsivePairLayout(self._title(), self._fit(), least=_LEAST_NAME))
        column.addLayout(ResponsivePairLayout(text, self._buttons(), least=_LEAST_TEXT))

    def show_statuses(self, statuses: FileStatuses) -> None:
        item = self._offer.item
        if self._download is not None and item is not None:
            show_file_status(self._download, statuses, self._offer.model.repo, item.path)

    def _title(self) -> QWidget:
        chip = QLabel(tr("New files") if self._offer.known else tr("New"))
        chip.setProperty("chip", "accent")
        name = WrappingLabel(_title_of(self._offer.model.name))
        name.setProperty("kind", "heading")
        facts = WrappingLabel(new_facts_text(self._offer))
        facts.setProperty("kind", "dim")
        title = FlowLayout()
        for widget in (chip, name, facts):
            if isinstance(widget, WrappingLabel):
                widget.setTextFormat(Qt.TextFormat.PlainText)
            title.addWidget(widget)
        return widget_with(title)

    def _fit(self) -> QLabel:
        item = self._offer.item
        if item is not None and item.fit is not None:
            fit = fit_chip(item.fit)
        else:
            fit = WrappingLabel(no_fit_text(self._offer.model))
            fit.setProperty("chip", "warn")
        fit.setObjectName(f"models.new.fit.{self._offer.model.repo}")
        return fit

    def _buttons(self) -> QWidget:
        offer, model = self._offer, self._offer.model
        card = TextButton(tr("Model card"), kind="link")
        tip = tr("Open it in the browser")
        describe(card, f"models.new.page.{model.repo}", tr("Model card of {0}", model.name), tip)
        card.clicked.connect(lambda: self.card_asked.emit(offer))
        files = TextButton(tr("See files"), kind="link")
        tip = tr("See its files and whether they fit")
        describe(files, f"models.new.open.{model.repo}", tr("See the files of {0}", model.repo), tip)
        files.clicked.connect(lambda: self.files_asked.emit(offer))
        item = offer.item
        if item is None or item.fit is None or not item.fit.fits:
            return horizontal_group(card, files)
        self._download = TextButton(tr("Download"))
        text = tr("Download {0} {1}, {2}", model.name, item.quant, show_bytes(item.n_bytes + item.mmproj_bytes))
        describe(self._download, f"models.new.download.{model.repo}", text)
        self._download.clicked.connect(lambda: self.download_asked.emit(offer))
        return horizontal_group(card, files, self._download)


def _title_of(name: str) -> str:
    """Return the name, shortened so that it fits a narrow window in one piece."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
