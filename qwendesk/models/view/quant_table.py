"""All files of a model for comparison: their size, fit, speed and quality, and who else uploads them."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.ranking import Offer, QuantOffer
from qwendesk.models.uploaders import OtherUploader
from qwendesk.models.view.file_button import file_button, show_file_status
from qwendesk.models.view.file_table import FileLine, FileTable, fit_chip, small_label
from qwendesk.models.view.offer_texts import quality_short, quality_text, size_text
from qwendesk.models.view.speed_texts import speed_cell, speed_sources
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import ResponsivePairLayout
from qwendesk.widgets.text_layout import WrappingLabel


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
