"""The row in which the user says what a model is for: four tiles, of which one is chosen."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QRadioButton, QSizePolicy, QWidget

from qwendesk.core.translation import tr
from qwendesk.models.purpose_texts import PURPOSE_NOTES, PURPOSE_TITLES
from qwendesk.models.purposes import Purpose
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.layouts import EqualColumnsLayout
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_ICONS: Final[Mapping[Purpose, str]] = MappingProxyType(
    {"fast": "speed", "deep": "thought", "long": "book", "quality": "star"}
)
# Heights of a tile with and without its second line, in pixels at 100% text size; least width of one.
_HIGH, _LOW, _LEAST = 56, 40, 170
_ICON, _EDGE, _TEXT, _RADIUS = 18, 14, 44, 10


class PurposeTiles(QWidget):
    """The tiles. `chosen` carries the purpose that the user chose; the arrow keys move between them."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("models.purposes")
        self.setAccessibleName(tr("What counts most"))
        self._layout = EqualColumnsLayout(least=_LEAST, spacing=8)
        self.setLayout(self._layout)
        self._tiles = {purpose: self._tile(purpose) for purpose in PURPOSE_TITLES}
        for tile in self._tiles.values():
            self._layout.addWidget(tile)
        app_theme().follow(self, self._fit)
        self._fit()

    def show_purpose(self, purpose: Purpose) -> None:
        self._tiles[purpose].setChecked(True)

    def show_notes(self, *, on: bool) -> None:
        """Show or hide the second lines."""
        for tile in self._tiles.values():
            tile.show_note(on=on)

    def _fit(self) -> None:
        """Take two rows where a title would be cut."""
        self._layout.set_least(max(_LEAST, *(tile.least_width for tile in self._tiles.values())))

    def _tile(self, purpose: Purpose) -> "PurposeTile":
        title, note = tr(PURPOSE_TITLES[purpose]), tr(PURPOSE_NOTES[purpose])
        tile = PurposeTile(_ICONS[purpose], title, note)
        describe(tile, f"models.purpose.{purpose}", f"{title}: {note}", tr("Recommend a model for: {0}", title))
        tile.toggled.connect(lambda on: self.chosen.emit(purpose) if on else None)
        return tile


class PurposeTile(QRadioButton):
    """A radio button that looks like a tile with an icon, a title and a note."""

    def __init__(self, icon_name: str, title: str, note: str) -> None:
        super().__init__()
        self._icon_name, self._title, self._note, self._has_note = icon_name, title, note, True
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        app_theme().changed.connect(self.updateGeometry)

    def show_note(self, *, on: bool) -> None:
        if on != self._has_note:
            self._has_note = on
            self.updateGeometry()
            self.update()

    @property
    def least_width(self) -> int:
        """The width in pixels that the title needs."""
        title = QFontMetrics(current_theme().font(13, QFont.Weight.DemiBold)).horizontalAdvance(self._title)
        return _TEXT + title + 8

    def sizeHint(self) -> QSize:
        return QSize(_LEAST, current_theme().px(_HIGH if self._has_note else _LOW))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme, on = current_theme(), self.isChecked()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        hovered = "pill_on_hover" if on else "card_hover"
        ground = hovered if self.underMouse() else "pill_on" if on else "field"
        edge = "focus" if self.hasFocus() else "pill_on_border" if on else "border"
        painter.setPen(QPen(QColor(theme[edge]), 2 if self.hasFocus() else 1))
        painter.setBrush(QColor(theme[ground]))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), _RADIUS, _RADIUS)
        is_mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        painter.setLayoutDirection(self.layoutDirection())
        icon = pixmap(self._icon_name, theme["accent" if on else "text_dim"], _ICON, self.devicePixelRatioF())
        left = self.width() - _EDGE - _ICON if is_mirrored else _EDGE
        painter.drawPixmap(left, (self.height() - _ICON) // 2, icon)
        room = QRectF(_TEXT, 0, self.width() - _TEXT - 8, self.height())
        if is_mirrored:
            room.moveLeft(8)
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading
        half = room.height() / 2
        lines = [(self._title, theme.font(13, QFont.Weight.DemiBold), "text", room)]
        if self._has_note:
            upper, lower = QRectF(room), QRectF(room)
            upper.setBottom(room.top() + half + 1)
            lower.setTop(room.top() + half)
            lines = [
                (self._title, theme.font(13, QFont.Weight.DemiBold), "text", upper.adjusted(0, 8, 0, 0)),
                (self._note, theme.font(12), "text_dim", lower.adjusted(0, 0, 0, -8)),
            ]
        for text, font, role, place in lines:
            painter.setFont(font)
            painter.setPen(QColor(theme[role]))
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(place.width()))
            painter.drawText(place, int(align), shown)
        painter.end()
