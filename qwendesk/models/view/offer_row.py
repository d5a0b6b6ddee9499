"""A row of the table For this PC: a model, its speed, chat length, fit and size, and a button; details below."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QSizePolicy, QWidget

from qwendesk.core.everyday_units import pages_text, speed_level, speed_word
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes, show_rate, show_tokens
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.offers import Offers
from qwendesk.models.purposes import Choice
from qwendesk.models.ranking import Offer, QuantOffer
from qwendesk.models.view.file_button import show_file_status
from qwendesk.models.view.offer_details import OfferDetails
from qwendesk.models.view.offer_texts import fit_details, fit_place, good_at_text, size_text
from qwendesk.widgets.buttons import IconButton, describe
from qwendesk.widgets.kit import LIST_PADDING, STRETCH, IconLabel, button, column, label, paragraph, row
from qwendesk.widgets.layouts import FlowLayout, widget_with
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Qt's limit of a width, for none: PySide has no name for it.
QWIDGETSIZE_MAX: Final = (1 << 24) - 1
# Widths in pixels at 100% text size: of the columns after the name, and of those in a narrow table.
_WIDE: Final = (122, 104, 120, 76, 108, 32)
_NARROW: Final = (116, 0, 116, 0, 104, 32)
# Below these widths of the table it has fewer columns, and its cells are below the name.
NARROW_BELOW, STACKED_BELOW = 880, 600
_GAP, _LEAST_HEIGHT, _BUTTON_PADDING = 12, 56, 32
_BARS, _BAR_WIDTH, _BAR_GAP, _BAR_STEP = 4, 4, 2, 4


class RowState(msgspec.Struct, frozen=True, kw_only=True):
    """What a row shows beside its offer, and what changes while the page is open."""

    statuses: FileStatuses = FileStatuses()
    loaded: str = ""
    """Path of the loaded model; "" if none is loaded."""
    percents: Mapping[tuple[str, str], int] = {}
    """How much of a running download is done, by repository and path."""


class OfferRow(QFrame):
    """Shows one Offer. `chosen` carries the QuantOffer whose button was clicked."""

    chosen = Signal(object)
    chat_asked = Signal()
    repo_asked = Signal(str)
    """The repository of another uploader whose files are asked for."""

    def __init__(self, offer: Offer, offers: Offers, speeds: Mapping[str, float]) -> None:
        """`speeds` are those that were measured on this PC, in tokens per second, by the name of the file."""
        super().__init__()
        self._offer, self._offers, self._speeds, self._state = offer, offers, speeds, RowState()
        # The smallest file, if none fits.
        self._quant = offer.recommended or (offer.quants[-1] if offer.quants else None)
        self._details: OfferDetails | None = None
        self._mode = ""
        self.setObjectName(f"models.card.{offer.id}")
        self.setProperty("kind", "tablerow")
        self.setAccessibleName(offer.id)
        # The columns follow the width that there is; they must not ask for more.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._make_cells()
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_GAP)
        self._grid.setVerticalSpacing(8)
        self._column = column(self._grid, spacing=8, margins=(LIST_PADDING, 8, 12, 8))
        self.setLayout(self._column)
        app_theme().follow(self, self._fit_columns)
        self.show_width(NARROW_BELOW)
        self._show_quant()

    @property
    def offer(self) -> Offer:
        return self._offer

    @property
    def choice(self) -> Choice | None:
        """The choice of this model for the purpose; None if it doesn't fit."""
        choices = self._offers.choices.get(self._offers.purpose, ())
        return next((each for each in choices if each.offer.id == self._offer.id), None)

    @property
    def is_open(self) -> bool:
        """Whether the details are shown."""
        return self._details is not None and self._details.isVisibleTo(self)

    def show_state(self, state: RowState) -> None:
        self._state = state
        if self._details is not None:
            self._details.show_statuses(state.statuses)
        self._show_button()

    def show_speeds(self, speeds: Mapping[str, float]) -> None:
        """Show speeds that were measured since."""
        if speeds != self._speeds:
            self._speeds = speeds
            self._show_quant()
            if self._details is not None:
                self._details.show_speeds(speeds)

    def show_width(self, width: int) -> None:
        """Place the cells for a table of `width` pixels."""
        scale = current_theme().text_scale
        mode = "stacked" if width < STACKED_BELOW * scale else "narrow" if width < NARROW_BELOW * scale else "wide"
        if mode == self._mode:
            return
        self._mode = mode
        while self._grid.count():
            self._grid.takeAt(0)
        is_wide, is_stacked = mode == "wide", mode == "stacked"
        self._grid.addWidget(self._words, 0, 0, 1, 4 if is_stacked else 1)
        line, first = (1, 0) if is_stacked else (0, 1)
        for place, cell in enumerate((self._speed, self._length, self._fit), first):
            self._grid.addWidget(cell, line, place, Qt.AlignmentFlag.AlignVCenter)  # its lines stay together
        self._grid.addWidget(self._size, 0, 4)
        self._grid.addWidget(self._button, 0, 5)
        self._grid.addWidget(self._open, 0, 6)
        self._length.setVisible(is_wide)
        self._size.setVisible(is_wide)
        self._fit_columns()
        self._show_quant()

    def toggle(self) -> None:
        """Open or close the details, which are created the first time."""
        if self._details is None and self._quant is not None:
            self._details = OfferDetails(self._offer, self._quant, self._offers, self._speeds)
            self._details.show_choice(self.choice)
            self._details.show_statuses(self._state.statuses)
            self._details.quant_chosen.connect(self._on_quant)
            self._details.chosen.connect(self.chosen)
            self._details.repo_asked.connect(self.repo_asked)
            self._column.addWidget(self._details)
            self._details.show()
        elif self._details is not None:
            self._details.setVisible(not self.is_open)
        self._open.themed.show("up" if self.is_open else "down")

    def _make_cells(self) -> None:
        offer = self._offer
        self._name = label(offer.id, "strong")
        self._about = paragraph(kind="small", name=f"models.about.{offer.id}")
        recommended = self._chip(tr("Recommended"), "accent", is_shown=offer.is_hero)
        self._loaded = self._chip(tr("Loaded"), "good", is_shown=False)
        licence = self._chip(tr("Own licence"), "plain", is_shown=bool(offer.model.licence.restriction))
        licence.setObjectName(f"models.licence.{offer.id}")
        licence.setToolTip(tr(offer.model.licence.restriction))
        title = FlowLayout(spacing=8)
        for widget in (self._name, recommended, self._loaded, licence):
            title.addWidget(widget)
        self._words = widget_with(column(title, self._about, spacing=2))
        self._bars, self._speed_word = SpeedBars(), label()
        self._tok_s = label(kind="small", name=f"models.speed.{offer.id}")
        self._speed = widget_with(column(row(self._bars, self._speed_word, STRETCH), self._tok_s, spacing=2))
        self._pages, self._tokens = label(name=f"models.length.{offer.id}"), label(kind="small")
        self._length = widget_with(column(self._pages, self._tokens, spacing=2))
        self._fit_icon, self._fit_word = IconLabel(), label(name=f"models.fit.{offer.id}")
        self._tight = label(name=f"models.tight.{offer.id}", chip="warn")
        self._place = label(kind="small", name=f"models.place.{offer.id}")
        words = row(self._fit_icon, self._fit_word, self._tight, STRETCH, spacing=6)
        self._fit = widget_with(column(words, self._place, spacing=2))
        self._size = label(name=f"models.size.{offer.id}")
        self._size.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._button = button(tr("Download"), f"models.download.{offer.id}", kind="primary" if offer.is_hero else "")
        self._button.clicked.connect(self._on_button)
        self._open = IconButton("down")
        tip = tr("Choose another file, and see memory, speed, licence and sources")
        describe(self._open, f"models.open.{offer.id}", tr("Details of {0}", offer.id), tip)
        self._open.clicked.connect(self.toggle)

    def _chip(self, text: str, tone: str, *, is_shown: bool) -> QLabel:
        chip = QLabel(text)
        chip.setProperty("chip", tone)
        chip.setProperty("small", "true")
        if not is_shown:
            chip.hide()  # showing it before it has a parent would open a window
        return chip

    def _fit_columns(self) -> None:
        """Set the widths of the columns, so that those of all rows are below each other."""
        theme = current_theme()
        widths = _WIDE if self._mode == "wide" else _NARROW
        cells = (self._speed, self._length, self._fit, self._size)
        for cell, width in zip(cells, widths, strict=False):
            if self._mode == "stacked":
                cell.setMinimumWidth(0)
                cell.setMaximumWidth(QWIDGETSIZE_MAX)
            else:
                cell.setFixedWidth(theme.px(width))
        self._button.setFixedWidth(_button_width(widths[4]))
        for place in range(7):
            self._grid.setColumnStretch(place, int(place == (3 if self._mode == "stacked" else 0)))
        self.setMinimumHeight(theme.px(_LEAST_HEIGHT))

    def _on_quant(self, quant: QuantOffer) -> None:
        self._quant = quant
        self._show_quant()

    def _on_button(self) -> None:
        if self._is_loaded:
            self.chat_asked.emit()
        elif self._quant is not None:
            self.chosen.emit(self._quant)

    @property
    def _is_loaded(self) -> bool:
        quant, state = self._quant, self._state
        path = state.statuses.present.get((quant.repo, quant.path)) if quant is not None else None
        return bool(path and state.loaded) and Path(path or "") == Path(state.loaded)

    def _show_quant(self) -> None:
        """Show what depends on the file."""
        quant, offer = self._quant, self._offer
        if quant is None:
            return
        fit = quant.fit
        measured = self._speeds.get(PurePosixPath(quant.path).name)
        tok_s = measured if measured is not None else quant.likely_tok_s
        about = good_at_text(offer.model, with_pictures=bool(quant.mmproj_bytes))
        size = show_bytes(quant.total_bytes)
        self._about.setText(about if self._mode == "wide" else f"{about} · {size}")
        self._about.setToolTip(tr(offer.model.purpose))
        self._bars.show_level(speed_level(tok_s) if fit.fits else 0)
        self._speed_word.setText(speed_word(tok_s) if fit.fits and tok_s else "–")
        self._tok_s.setText(tr("{0} tok/s", show_rate(tok_s)) if fit.fits and tok_s else "")
        self._pages.setText(pages_text(fit.n_ctx) if fit.fits else "–")
        self._tokens.setText(show_tokens(fit.n_ctx) if fit.fits else "")
        word, place, tone = fit_place(fit)
        is_tight = tone == "warn"
        self._fit_icon.show_icon("done" if tone == "good" else "", "text_good")
        self._fit_icon.setVisible(tone == "good")
        self._fit_word.setText(word)
        self._fit_word.setVisible(not is_tight)
        self._tight.setText(word)
        self._tight.setVisible(is_tight)
        self._place.setText(place)
        self._fit.setToolTip(fit_details(fit))
        self._size.setText(size)
        self._show_button()

    def _show_button(self) -> None:
        quant, state = self._quant, self._state
        self._loaded.setVisible(self._is_loaded)
        self._button.setVisible(quant is not None and (quant.fit.fits or self._is_here))
        if quant is None:
            return
        show_file_status(self._button, state.statuses, quant.repo, quant.path)
        if self._is_loaded:
            self._button.setText(tr("Chat"))
            describe(self._button, self._button.objectName(), tr("Chat with {0}", self._offer.id))
        elif (percent := state.percents.get((quant.repo, quant.path))) is not None:
            self._button.setText(tr("{0}%", percent))
        elif not self._is_here and self._button.isEnabled():
            text = tr("Download {0} {1}, {2}", self._offer.id, quant.quant, size_text(quant))
            describe(self._button, self._button.objectName(), text)

    @property
    def _is_here(self) -> bool:
        return self._quant is not None and (self._quant.repo, self._quant.path) in self._state.statuses.present


class SpeedBars(QWidget):
    """Four bars, of which as many are filled as the speed is fast."""

    def __init__(self) -> None:
        super().__init__()
        self._level = 0
        self.setFixedSize(QSize(_BARS * (_BAR_WIDTH + _BAR_GAP), _BARS * _BAR_STEP))
        app_theme().changed.connect(self.update)

    def show_level(self, level: int) -> None:
        """Fill `level` bars, from 0 to 4."""
        self._level = level
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for place in range(_BARS):
            painter.setBrush(theme.color("accent" if place < self._level else "meter_free"))
            height = (place + 1) * _BAR_STEP - 1
            left = place * (_BAR_WIDTH + _BAR_GAP)
            painter.drawRoundedRect(QRectF(left, self.height() - height, _BAR_WIDTH, height), 1, 1)
        painter.end()


def _button_width(least: int) -> int:
    """Return the width of the buttons of all rows, in pixels: at least `least` at 100% text size."""
    theme = current_theme()
    text = QFontMetrics(theme.font(13, QFont.Weight.DemiBold)).horizontalAdvance(tr("Download"))
    return max(theme.px(least), text + _BUTTON_PADDING)


def table_head() -> QWidget:
    """Return the row with the titles of the columns, for a wide table."""
    theme = current_theme()
    titles = (tr("Speed"), tr("Context"), tr("On this PC"), tr("Size"))
    cells = [label(title, "small") for title in titles]
    for cell, width in zip(cells, _WIDE, strict=False):
        cell.setFixedWidth(theme.px(width))
    cells[-1].setAlignment(Qt.AlignmentFlag.AlignRight)
    rest = _button_width(_WIDE[4]) + _WIDE[5] + 2 * _GAP
    line = row(label(tr("Model"), "small"), *cells, rest, spacing=_GAP, margins=(LIST_PADDING, 8, 12, 8))
    line.setStretch(0, 1)
    head = QFrame()
    head.setObjectName("models.head")
    head.setProperty("kind", "tablerow")
    head.setLayout(line)
    head.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    return head
