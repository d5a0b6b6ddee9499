"""Every quant of one model: size, fit, quality, notes, and a button to get it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from qwendesk.services.models.ranking import Offer, QuantOffer
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.have import Have
from qwendesk.ui.models.wording import fit_details, fit_text, quality_short, quality_text, size_text


class QuantTable(QWidget):
    """Made when a card is opened. `chosen` carries the QuantOffer to download, or to use when it is here."""

    chosen = Signal(object)

    def __init__(self, keeper: ThemeKeeper, offer: Offer) -> None:
        super().__init__()
        self._offer = offer
        self._buttons: list[tuple[QuantOffer, TextButton]] = []
        self.setObjectName(f"models.quants.{offer.id}")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(4, 1)
        for column, text in enumerate((tr("Quant"), tr("Size"), tr("Fit on this PC"), tr("Quality"))):
            self._grid.addWidget(_small(text), 0, column)
        for row, quant in enumerate(offer.quants):
            self._add(keeper, 2 * row + 1, quant)

    def show_have(self, have: Have) -> None:
        for quant, button in self._buttons:
            have.show_on(button, quant.repo, quant.path)

    def _add(self, keeper: ThemeKeeper, row: int, quant: QuantOffer) -> None:
        offer = self._offer
        name = QLabel(quant.quant)
        if offer.recommended is not None and quant.quant == offer.recommended.quant:
            name.setProperty("chip", "accent")
            name.setToolTip(tr("Recommended for this PC"))
        fit, tone = fit_text(quant.fit)
        label = QLabel(fit)
        label.setProperty("chip", tone)
        label.setToolTip(fit_details(quant.fit))
        quality = QLabel(quality_short(quant))
        quality.setToolTip("\n".join(quality_text(each) for each in quant.quality) or tr("Nobody measured it yet."))
        button = TextButton(keeper, tr("Download"), kind="quiet")
        text = tr("{0} {1}, {2}", offer.id, quant.quant, size_text(offer, quant))
        describe(button, f"models.get.{offer.id}.{quant.quant}", text)
        button.clicked.connect(lambda: self.chosen.emit(quant))
        self._buttons.append((quant, button))
        cells = (name, QLabel(size_text(offer, quant)), label, quality)
        for column, cell in enumerate(cells):
            self._grid.addWidget(cell, row, column, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._grid.addWidget(button, row, 5)
        notes = self._notes(quant)
        if notes.text():
            self._grid.addWidget(notes, row + 1, 0, 1, 5)

    def _notes(self, quant: QuantOffer) -> QLabel:
        """Below its row: a flag first, then each note with who says so."""
        lines = [tr("{0} ({1})", note.text, note.source) for note in quant.notes]
        if quant.flag and not any(note.instead for note in quant.notes):
            lines.insert(0, quant.flag)
        label = _small(" ".join(lines))
        label.setWordWrap(True)
        if quant.flag:
            label.setProperty("kind", "notice")
        return label


def _small(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", "small")
    return label
