"""A card for one model: what it is for, the quant for this PC, whether it fits, and a button to get it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.services.models.ranking import Offer, QuantOffer, Speed
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.have import Have
from qwendesk.ui.models.quant_table import QuantTable
from qwendesk.ui.models.wording import (
    fit_details,
    fit_text,
    model_facts_text,
    quality_text,
    reason_text,
    size_text,
    speed_text,
)


class OfferCard(QFrame):
    """`models.card.ID`. `wanted` carries the QuantOffer to download, or to use when it is on this PC."""

    wanted = Signal(object)

    def __init__(self, keeper: ThemeKeeper, offer: Offer, speed: Speed | None) -> None:
        super().__init__()
        self._keeper, self._offer, self._speed = keeper, offer, speed
        self._have = Have()
        self._table: QuantTable | None = None
        self.setObjectName(f"models.card.{offer.id}")
        self.setProperty("kind", "hero" if offer.is_hero else "modelcard")
        self.setAccessibleName(offer.id)
        self._why = QLabel()
        self._why.setProperty("kind", "dim")
        self._why.setObjectName(f"models.reasons.{offer.id}")
        self._why.setWordWrap(True)
        self._why.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._why.hide()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(18, 14, 18, 14)
        self._column.setSpacing(8)
        Airy(keeper, self._column)
        self._column.addLayout(self._first_row())
        self._column.addLayout(self._second_row())
        self._column.addWidget(self._why)

    @property
    def offer(self) -> Offer:
        return self._offer

    @property
    def is_open(self) -> bool:
        """Whether the table of quants is shown."""
        return self._table is not None and self._table.isVisibleTo(self)

    def show_have(self, have: Have) -> None:
        self._have = have
        quant = self._offer.recommended
        if quant is not None:
            have.show_on(self._get, quant.repo, quant.path)
        if self._table is not None:
            self._table.show_have(have)

    def toggle_table(self) -> None:
        """Open or close the table of all quants; it is made the first time."""
        if self._table is None:
            self._table = QuantTable(self._keeper, self._offer)
            self._table.chosen.connect(self.wanted)
            self._table.show_have(self._have)
            self._column.addWidget(self._table)
            self._table.show()
        else:
            self._table.setVisible(not self._table.isVisibleTo(self))

    def toggle_why(self) -> None:
        if not self._why.text():
            self._why.setText("\n".join(self._reasons()))
        self._why.setVisible(not self._why.isVisibleTo(self))

    def _first_row(self) -> QHBoxLayout:
        offer = self._offer
        row = QHBoxLayout()
        row.setSpacing(8)
        if offer.is_hero:
            chip = QLabel(tr("Recommended"))
            chip.setProperty("chip", "accent")
            row.addWidget(chip)
        name = QLabel(offer.id)
        name.setProperty("kind", "heading")
        facts = QLabel(model_facts_text(offer.model, with_pictures=bool(offer.mmproj_bytes)))
        facts.setProperty("kind", "dim")
        row.addWidget(name)
        row.addWidget(facts)
        row.addStretch(1)
        fit = self._shown_fit()
        if fit is not None:
            text, tone = fit_text(fit.fit)
            chip = QLabel(text)
            chip.setProperty("chip", tone)
            chip.setObjectName(f"models.fit.{offer.id}")
            chip.setToolTip(fit_details(fit.fit))
            row.addWidget(chip)
        return row

    def _shown_fit(self) -> QuantOffer | None:
        """Of the recommended quant, or of the smallest to show by how much it is too large."""
        return self._offer.recommended or (self._offer.quants[-1] if self._offer.quants else None)

    def _second_row(self) -> QHBoxLayout:
        offer, quant = self._offer, self._offer.recommended
        row = QHBoxLayout()
        row.setSpacing(8)
        text = f"{quant.quant} · {size_text(offer, quant)}" if quant is not None else tr("All quants")
        quants = TextButton(self._keeper, text, icon_name="down")
        quants.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        tip = tr("Show every quant with size, fit, quality and notes")
        describe(quants, f"models.open.{offer.id}", tr("{0}: {1}", offer.id, text), tip)
        quants.clicked.connect(self.toggle_table)
        about = QLabel(" ".join(each for each in (offer.model.purpose, speed_text(self._speed)) if each))
        about.setProperty("kind", "dim")
        about.setWordWrap(True)
        why = TextButton(self._keeper, tr("Why?"), kind="link")
        describe(
            why, f"models.why.{offer.id}", tr("Why this quant of {0}", offer.id), tr("Reason, quality and sources")
        )
        why.clicked.connect(self.toggle_why)
        row.addWidget(quants)
        row.addWidget(about, 1)
        row.addWidget(why)
        if quant is not None:
            row.addWidget(self._get_button(quant))
        return row

    def _get_button(self, quant: QuantOffer) -> QWidget:
        offer = self._offer
        self._get = TextButton(self._keeper, tr("Download"), kind="primary" if offer.is_hero else "")
        text = tr("Download {0} {1}, {2}", offer.id, quant.quant, size_text(offer, quant))
        describe(self._get, f"models.download.{offer.id}", text)
        self._get.clicked.connect(lambda: self.wanted.emit(quant))
        return self._get

    def _reasons(self) -> list[str]:
        offer, quant = self._offer, self._offer.recommended
        lines = [reason_text(offer)]
        if self._speed is not None:
            lines.append(tr("Speed: {0} Not measured on this PC.", self._speed.source + "."))
        if quant is None:
            return lines
        lines += [quality_text(each) for each in quant.quality]
        lines += [tr("{0} ({1})", note.text, note.source) for note in quant.notes]
        if not quant.quality:
            lines.append(tr("Nobody has published quality numbers of this quant of this model yet."))
        lines.append(tr("From {0}.", quant.repo))
        return lines
