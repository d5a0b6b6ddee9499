"""The details of a model in the table For this PC: the choice of a file, what it needs here, and test results."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import join_sentences, tr, unbroken
from qwendesk.core.units import show_bytes, show_rate, show_tokens
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.offers import Offers
from qwendesk.models.purpose_texts import benchmark_texts
from qwendesk.models.purposes import Choice
from qwendesk.models.ranking import Offer, QuantOffer
from qwendesk.models.view.offer_texts import (
    advice_text,
    fit_details,
    memory_text,
    other_engines_texts,
    quality_text,
    reason_text,
    table_text,
)
from qwendesk.models.view.quant_table import QuantTable
from qwendesk.models.view.speed_texts import expected_text, short_speed_text, speed_sources
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.kit import LIST_PADDING, button, column, label, paragraph
from qwendesk.widgets.layouts import EqualColumnsLayout, widget_with

# Least width in pixels of one of the two columns, and of the titles in it.
_LEAST_COLUMN, _TITLE = 330, 92


class OfferDetails(QFrame):
    """Shows one file of an offer. `quant_chosen` carries the QuantOffer that was picked instead."""

    quant_chosen = Signal(object)
    chosen = Signal(object)
    """The QuantOffer whose button in the table of all files was clicked."""
    repo_asked = Signal(str)

    def __init__(self, offer: Offer, quant: QuantOffer, offers: Offers, speeds: Mapping[str, float]) -> None:
        """`speeds` are those that were measured on this PC, in tokens per second, by the name of the file."""
        super().__init__()
        self._offer, self._quant, self._offers, self._speeds = offer, quant, offers, speeds
        self._choice: Choice | None = None
        self._statuses = FileStatuses()
        self._results: QWidget | None = None
        self._table: QuantTable | None = None
        self.setProperty("kind", "details")
        self._file = self._picker()
        self._memory, self._length, self._speed, self._advice, self._licence = (
            paragraph(name=f"models.{each}.{offer.id}", selectable=True)
            for each in ("memory", "context", "expect", "advice", "terms")
        )
        why = button(
            tr("Test results and sources"), f"models.why.{offer.id}", kind="link",
            said=tr("Test results and sources of {0}", offer.id), tip=tr("Compare all files, with quality and sources"),
        )  # fmt: skip
        why.clicked.connect(self.toggle_results)
        left = _grid((tr("File"), self._file), (tr("Memory"), self._memory), (tr("Context length"), self._length))
        right = _grid((tr("Speed"), self._speed), (tr("Good to know"), self._advice), (tr("Licence"), self._licence))
        right.addWidget(why, 3, 1, Qt.AlignmentFlag.AlignLeft)
        columns = EqualColumnsLayout(least=_LEAST_COLUMN, spacing=24, row_spacing=8)
        columns.addWidget(widget_with(left))
        columns.addWidget(widget_with(right))
        self._column: QVBoxLayout = column(columns, spacing=12, margins=(LIST_PADDING, 12, LIST_PADDING, 12))
        self.setLayout(self._column)
        self._show()

    def show_choice(self, choice: Choice | None) -> None:
        """Show the reason for a choice, and what speaks against it, while its file is picked."""
        self._choice = choice
        self._show()

    def show_statuses(self, statuses: FileStatuses) -> None:
        self._statuses = statuses
        if self._table is not None:
            self._table.show_statuses(statuses)

    def show_speeds(self, speeds: Mapping[str, float]) -> None:
        """Show speeds that were measured since."""
        self._speeds = speeds
        if self._table is not None:
            self._table.show_speeds(speeds)
        self._show()

    def toggle_results(self) -> None:
        """Open or close the test results and the table of all files, which are created the first time."""
        if self._results is not None:
            self._results.setVisible(not self._results.isVisibleTo(self))
            return
        offer = self._offer
        self._reasons = paragraph(kind="dim", name=f"models.reasons.{offer.id}", selectable=True)
        self._table = QuantTable(offer, self._speeds, self._offers.others.get(offer.id, ()))
        self._table.chosen.connect(self.chosen)
        self._table.repo_asked.connect(self.repo_asked)
        self._table.show_statuses(self._statuses)
        self._results = widget_with(column(self._reasons, self._table, spacing=12))
        self._column.addWidget(self._results)
        self._results.show()
        self._show()

    def _picker(self) -> ComboBox:
        """Return the list of files, those that are fastest on this PC first."""
        picker = ComboBox()
        describe(picker, f"models.file.{self._offer.id}", tr("File of {0}", self._offer.id), tr("Choose another file"))
        self._quants = sorted(self._offer.quants, key=lambda quant: (quant.fit.rank, bool(quant.flag)))
        for quant in self._quants:
            text = f"{quant.quant} · {show_bytes(quant.total_bytes)}"
            if not quant.fit.fits:
                text = tr("{0} · too large", text)
            elif quant.flag:
                text = tr("{0} · not recommended", text)
            picker.addItem(text)
            picker.setItemData(picker.count() - 1, quant.flag, Qt.ItemDataRole.ToolTipRole)
        picker.setCurrentIndex(self._quants.index(self._quant))
        picker.activated.connect(self._on_picked)
        return picker

    def _on_picked(self, place: int) -> None:
        self._quant = self._quants[place]
        self._show()
        self.quant_chosen.emit(self._quant)

    @property
    def _measured(self) -> float | None:
        """The speed of the file on this PC."""
        return self._speeds.get(PurePosixPath(self._quant.path).name)

    def _show(self) -> None:
        offer, quant, measured = self._offer, self._quant, self._measured
        self._memory.setText(join_sentences(memory_text(quant.fit), table_text(quant.fit)))
        self._memory.setToolTip(fit_details(quant.fit))
        most = show_tokens(offer.model.hyperparameters.context_length)
        length = tr("{0} tokens, at most {1}", show_tokens(quant.fit.n_ctx), most)
        self._length.setText(length if quant.fit.fits else tr("at most {0}", most))
        speed = tr("{0} tok/s, measured here", show_rate(measured)) if measured is not None else short_speed_text(quant)
        self._speed.setText(unbroken(speed))
        self._speed.setToolTip(expected_text(offer, quant))
        self._advice.setText("\n".join(self._good_to_know()))
        licence = offer.model.licence
        self._licence.setText(
            join_sentences(f"{licence.name}." if licence.restriction else licence.name, tr(licence.restriction))
        )
        if self._results is not None:
            self._reasons.setText("\n".join(self._reason_lines()))

    def _good_to_know(self) -> list[str]:
        """Return why to take this file and what speaks against it, and of other engines, in lines."""
        offer, quant, choice = self._offer, self._quant, self._choice
        lines = [advice_text(choice)] if choice is not None and choice.quant == quant else []
        if not lines:
            notes = (tr(note.text) for note in quant.notes)
            lines = [join_sentences(quant.flag, *notes) or reason_text(offer)]
        return lines + other_engines_texts(offer)

    def _reason_lines(self) -> list[str]:
        offer, quant = self._offer, self._quant
        is_general = offer.recommended is not None and quant == offer.recommended and self._offers.purpose == "fast"
        lines = [reason_text(offer)] if is_general or offer.recommended is None else []
        lines += speed_sources(quant, self._measured)
        lines += benchmark_texts(offer)
        lines += [quality_text(each, offer) for each in quant.quality]
        lines += [tr("{0} ({1})", tr(note.text), tr(note.source)) for note in quant.notes]
        if not quant.quality:
            lines.append(tr("No quality measurements for this quant yet."))
        lines.append(tr("Source: {0}.", quant.repo))
        return lines


def _grid(*rows: tuple[str, QWidget]) -> QGridLayout:
    """Return a grid with a title before each value."""
    grid = QGridLayout()
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(8)
    grid.setVerticalSpacing(8)
    grid.setColumnMinimumWidth(0, _TITLE)
    grid.setColumnStretch(1, 1)
    for place, (title, value) in enumerate(rows):
        head: QLabel = label(title, "dim")
        is_text = isinstance(value, QLabel)
        grid.addWidget(head, place, 0, Qt.AlignmentFlag.AlignTop if is_text else Qt.AlignmentFlag.AlignVCenter)
        grid.addWidget(value, place, 1)
    grid.setRowStretch(len(rows) + 1, 1)
    return grid
