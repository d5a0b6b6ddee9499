"""A card for one model: its purpose, its quants and who uploads them, whether it fits, and a button to download it."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.offers import Offers
from qwendesk.models.purpose_texts import benchmark_texts
from qwendesk.models.purposes import Choice
from qwendesk.models.ranking import Offer, QuantOffer
from qwendesk.models.uploaders import OtherUploader
from qwendesk.models.view.file_button import file_button, show_file_status
from qwendesk.models.view.file_table import FileLine, FileTable, fit_chip, small_label
from qwendesk.models.view.offer_texts import (
    about_text,
    advice_text,
    licence_text,
    model_facts_text,
    other_engines_texts,
    quality_short,
    quality_text,
    reason_text,
    size_text,
)
from qwendesk.models.view.speed_texts import speed_cell, speed_sources
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe
from qwendesk.widgets.layouts import (
    DensitySpacing,
    FlowLayout,
    ResponsivePairLayout,
    horizontal_group,
    widget_with,
)
from qwendesk.widgets.text_layout import WrappingLabel

# Least width in pixels of the name with its facts, of the text about the model, and of the list of quants with that
# text. In a narrower card the widgets on the right are below them.
_LEAST_NAME, _LEAST_TEXT, _LEAST_OFFER = 480, 360, 420


class OfferCard(QFrame):
    """Shows one Offer. `chosen` carries the QuantOffer whose button was clicked."""

    chosen = Signal(object)
    repo_asked = Signal(str)
    """The repository of another uploader whose files are asked for."""

    def __init__(self, offer: Offer, offers: Offers, speeds: Mapping[str, float]) -> None:
        """`speeds` are those that were measured on this PC, in tokens per second, by the name of the file."""
        super().__init__()
        self._offer, self._offers, self._speeds = offer, offers, speeds
        self._choice = offers.choice if offer.is_hero else None
        self._statuses = FileStatuses()
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
        DensitySpacing(self._column)
        self._column.addLayout(self._first_row())
        self._column.addLayout(self._second_row())
        if self._choice is not None:
            self._column.insertWidget(1, self._make_advice(self._choice))
        if offer.model.licence.restriction:
            self._column.addWidget(self._make_note("licence", licence_text(offer.model.licence)))
        if offer.other_speeds:
            self._column.addWidget(self._make_note("engines", "\n".join(other_engines_texts(offer))))
        self._column.addWidget(self._why)

    @property
    def offer(self) -> Offer:
        return self._offer

    @property
    def is_open(self) -> bool:
        """Whether the table of quants is shown."""
        return self._table is not None and self._table.isVisibleTo(self)

    def show_statuses(self, statuses: FileStatuses) -> None:
        self._statuses = statuses
        quant = self._offer.recommended
        if quant is not None:
            show_file_status(self._download_button, statuses, quant.repo, quant.path)
        if self._table is not None:
            self._table.show_statuses(statuses)

    def show_speeds(self, speeds: Mapping[str, float]) -> None:
        """Show speeds that were measured since."""
        if speeds == self._speeds:
            return
        self._speeds = speeds
        self._about.setText(self._about_text())
        self._why.setText("\n".join(self._reasons()))
        if self._table is not None:
            self._table.show_speeds(speeds)

    def toggle_table(self) -> None:
        """Open or close the table of all quants, which is created the first time."""
        if self._table is None:
            others = self._offers.others.get(self._offer.id, ())
            self._table = QuantTable(self._offer, self._speeds, others)
            self._table.chosen.connect(self.chosen)
            self._table.repo_asked.connect(self.repo_asked)
            self._table.show_statuses(self._statuses)
            self._column.addWidget(self._table)
            self._table.show()
        else:
            self._table.setVisible(not self._table.isVisibleTo(self))

    def toggle_why(self) -> None:
        if not self._why.text():
            self._why.setText("\n".join(self._reasons()))
        self._why.setVisible(not self._why.isVisibleTo(self))

    @property
    def _measured(self) -> float | None:
        """The speed of the recommended quant on this PC."""
        quant = self._offer.recommended
        return self._speeds.get(PurePosixPath(quant.path).name) if quant is not None else None

    def _about_text(self) -> str:
        return about_text(self._offer, self._offers, self._measured)

    def _first_row(self) -> ResponsivePairLayout:
        offer = self._offer
        title = FlowLayout()
        if offer.is_hero:
            chip = QLabel(tr("Recommended"))
            chip.setProperty("chip", "accent")
            title.addWidget(chip)
        name = QLabel(offer.id)
        name.setProperty("kind", "heading")
        facts = WrappingLabel(model_facts_text(offer.model, with_pictures=offer.has_pictures))
        facts.setProperty("kind", "dim")
        title.addWidget(name)
        title.addWidget(facts)
        shown = self._shown_fit()
        fit = fit_chip(shown.fit) if shown is not None else QLabel()
        fit.setObjectName(f"models.fit.{offer.id}")
        return ResponsivePairLayout(widget_with(title), fit, least=_LEAST_NAME)

    def _make_advice(self, choice: Choice) -> QLabel:
        """Return why this model is recommended for the chosen purpose, and what speaks against it."""
        advice = QLabel(advice_text(choice))
        advice.setObjectName(f"models.advice.{choice.offer.id}")
        advice.setTextFormat(Qt.TextFormat.PlainText)
        advice.setWordWrap(True)
        return advice

    def _make_note(self, name: str, text: str) -> QLabel:
        """Return what is to be read before a download: a restriction of the licence, or a faster program."""
        note = small_label(text)
        note.setObjectName(f"models.{name}.{self._offer.id}")
        note.setTextFormat(Qt.TextFormat.PlainText)
        note.setWordWrap(True)
        return note

    def _shown_fit(self) -> QuantOffer | None:
        """Return the quant whose fit is shown: the recommended one, or the smallest if all are too large."""
        return self._offer.recommended or (self._offer.quants[-1] if self._offer.quants else None)

    def _second_row(self) -> ResponsivePairLayout:
        offer, quant = self._offer, self._offer.recommended
        text = f"{quant.quant} · {size_text(quant)}" if quant is not None else tr("All quants")
        quants = ChevronButton(text)
        tip = tr("Show all quants with size, fit and quality")
        describe(quants, f"models.open.{offer.id}", tr("{0}: {1}", offer.id, text), tip)
        quants.clicked.connect(self.toggle_table)
        self._about = QLabel(self._about_text())
        self._about.setObjectName(f"models.about.{offer.id}")
        self._about.setProperty("kind", "dim")
        self._about.setWordWrap(True)
        why = TextButton(tr("Why?"), kind="link")
        describe(
            why,
            f"models.why.{offer.id}",
            tr("Why this quant of {0}", offer.id),
            tr("Show the reason, quality and sources"),
        )
        why.clicked.connect(self.toggle_why)
        words = widget_with(ResponsivePairLayout(quants, self._about, least=_LEAST_TEXT, second_grows=True))
        buttons = horizontal_group(why, *((self._make_download_button(quant),) if quant is not None else ()))
        return ResponsivePairLayout(words, buttons, least=_LEAST_OFFER)

    def _make_download_button(self, quant: QuantOffer) -> QWidget:
        offer = self._offer
        self._download_button = TextButton(tr("Download"), kind="primary" if offer.is_hero else "")
        text = tr("Download {0} {1}, {2}", offer.id, quant.quant, size_text(quant))
        describe(self._download_button, f"models.download.{offer.id}", text)
        self._download_button.clicked.connect(lambda: self.chosen.emit(quant))
        return self._download_button

    def _reasons(self) -> list[str]:
        offer, quant = self._offer, self._offer.recommended
        # The quant for a purpose needn't be the one that is recommended in general.
        lines = [] if self._offers.purpose != "fast" and offer.is_hero else [reason_text(offer)]
        if quant is None:
            return lines
        lines += speed_sources(quant, self._measured)
        lines += benchmark_texts(offer)
        lines += [quality_text(each, offer) for each in quant.quality]
        lines += [tr("{0} ({1})", tr(note.text), tr(note.source)) for note in quant.notes]
        if not quant.quality:
            lines.append(tr("No quality measurements for this quant yet."))
        lines.append(tr("Source: {0}.", quant.repo))
        return lines


class QuantTable(QWidget):
    """Shows all quants of an offer, the fastest on this PC first. `chosen` carries the QuantOffer that was clicked."""

    chosen = Signal(object)
    repo_asked = Signal(str)
    """The repository of another uploader whose files are asked for."""

    def __init__(self, offer: Offer, speeds: Mapping[str, float], others: Sequence[OtherUploader]) -> None:
        """`speeds` are those that were measured on this PC, in tokens per second, by the name of the file."""
        super().__init__()
        self._offer, self._speeds = offer, speeds
        self._speed_labels: list[tuple[QuantOffer, QLabel]] = []
        self._buttons: list[tuple[QuantOffer, TextButton]] = []
        headings = tr("Quant"), tr("Size"), tr("Fits this PC"), tr("Speed"), tr("Quality")
        lines = [self._line(quant) for quant in sorted(offer.quants, key=lambda quant: quant.fit.rank)]
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(FileTable(f"models.quants.{offer.id}", lines, headings))
        if others:
            uploaders = OtherUploaders(offer.id, others)
            uploaders.asked.connect(self.repo_asked)
            column.addWidget(uploaders)

    def show_statuses(self, statuses: FileStatuses) -> None:
        for quant, button in self._buttons:
            show_file_status(button, statuses, quant.repo, quant.path)

    def show_speeds(self, speeds: Mapping[str, float]) -> None:
        """Show speeds that were measured since."""
        self._speeds = speeds
        for quant, label in self._speed_labels:
            self._show_speed(quant, label)

    def _show_speed(self, quant: QuantOffer, label: QLabel) -> None:
        measured = self._speeds.get(PurePosixPath(quant.path).name)
        label.setText(speed_cell(quant, measured))
        label.setToolTip("\n".join(speed_sources(quant, measured)))

    def _line(self, quant: QuantOffer) -> FileLine:
        offer = self._offer
        name = QLabel(quant.quant)
        if offer.recommended is not None and quant.quant == offer.recommended.quant:
            name.setProperty("chip", "accent")
            name.setToolTip(tr("Recommended for this PC"))
        speed = QLabel()
        self._speed_labels.append((quant, speed))
        self._show_speed(quant, speed)
        quality = QLabel(quality_short(quant, offer))
        quality.setToolTip("\n".join(quality_text(each, offer) for each in quant.quality) or tr("No measurements yet."))
        button = file_button()
        text = tr("{0} {1}, {2}", offer.id, quant.quant, size_text(quant))
        describe(button, f"models.get.{offer.id}.{quant.quant}", text)
        button.clicked.connect(lambda: self.chosen.emit(quant))
        self._buttons.append((quant, button))
        return FileLine(
            name=name,
            size=WrappingLabel(size_text(quant)),
            fit=fit_chip(quant.fit),
            speed=speed,
            detail=quality,
            button=button,
            notes=_notes(quant),
            fits=quant.fit.kind != "too_large",
        )


def _notes(quant: QuantOffer) -> tuple[QLabel, ...]:
    """Return the label below the row, if there is one: why the quant is flagged, then each note with its source."""
    lines = [tr("{0} ({1})", tr(note.text), tr(note.source)) for note in quant.notes]
    if quant.flag and not any(note.instead for note in quant.notes):
        lines.insert(0, quant.flag)
    if not lines:
        return ()
    label = small_label(join_sentences(*lines))
    label.setWordWrap(True)
    if quant.flag:
        label.setProperty("kind", "notice")
    return (label,)


# Least width in pixels of the text beside its link.
_LEAST_DIFFERENCE = 320


class OtherUploaders(QWidget):
    """Shows the other uploaders of a model. `asked` carries the repository whose files are asked for."""

    asked = Signal(str)

    def __init__(self, model: str, others: Sequence[OtherUploader]) -> None:
        super().__init__()
        self.setObjectName(f"models.others.{model}")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(2)
        column.addWidget(small_label(tr("The same model from other uploaders")))
        for each in others:
            column.addLayout(self._row(each))

    def _row(self, other: OtherUploader) -> ResponsivePairLayout:
        files = tr_n("{0} file", "{0} files", other.n_files)
        text = QLabel(join_sentences(tr("{0}, {1}.", other.uploader, files), *other.sentences))
        text.setObjectName(f"models.other.{other.repo}")
        text.setProperty("kind", "small")
        text.setWordWrap(True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        link = TextButton(tr("See files"), kind="link")
        tip = tr("See its files and whether they fit")
        describe(link, f"models.other.open.{other.repo}", tr("See the files of {0}", other.repo), tip)
        link.clicked.connect(lambda: self.asked.emit(other.repo))
        return ResponsivePairLayout(text, link, least=_LEAST_DIFFERENCE, spacing=8)
