"""The row of what is attached to the next question: pictures first, then documents, each in the order people want."""

import itertools
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QWidget

from qwendesk.core.chats import DraftFile
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.ui.composer.cards import Card, DocumentCard, PictureCard
from qwendesk.ui.composer.intake import OWN_DRAG
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.pictures import Picture

_CARD_WIDTH = 300
"""Logical pixels that a card needs for its words; where two do not fit they stand below each other."""
_MOST_HEIGHT = 136


class AttachmentShelf(QScrollArea):
    """As tall as the attachments in it, up to a few rows; more than that scrolls."""

    def __init__(self, attachments: "Attachments") -> None:
        super().__init__()
        self._attachments = attachments
        self.setObjectName("composer.attachments")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setProperty("kind", "shelf")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(attachments)
        self.viewport().setAutoFillBackground(False)
        attachments.setAutoFillBackground(False)
        attachments.resized.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(min(_MOST_HEIGHT, self._attachments.sizeHint().height()))
        self.setVisible(bool(self._attachments.items))


class Attachments(QWidget):
    """All attachments of the next question; hidden while there is none."""

    changed = Signal()
    opened = Signal(str)
    """The path of a picture."""
    document_opened = Signal(object)
    resized = Signal()
    """It needs more or less room."""
    recount = Signal(object)
    """A card whose size is another now."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._items: list[Card] = []
        self._made = 0
        self._columns = 2
        self._drop_at: int | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 4)
        self._grid.setSpacing(8)
        self.setAcceptDrops(True)
        # Narrower than its cards in two columns: then they stand in one.
        self.setMinimumWidth(1)
        self.hide()

    @property
    def items(self) -> tuple[Card, ...]:
        return tuple(self._items)

    @property
    def paths(self) -> list[Path]:
        return [item.path for item in self._items]

    @property
    def pictures(self) -> list[ImagePart]:
        return [item.part for item in self._items if isinstance(item, PictureCard)]

    @property
    def documents(self) -> list[DocumentPart]:
        return [item.part for item in self._items if isinstance(item, DocumentCard)]

    @property
    def drafts(self) -> list[str | DraftFile]:
        return [item.draft for item in self._items]

    def add_picture(self, picture: Picture, longest_side: int = 0) -> PictureCard | None:
        """None when the same file is attached already."""
        if any(isinstance(item, PictureCard) and item.path == picture.path for item in self._items):
            return None
        self._made += 1
        card = PictureCard(self._keeper, picture, self._made, longest_side)
        card.opened.connect(self.opened)
        card.size_chosen.connect(lambda: self.recount.emit(card))
        card.size_chosen.connect(self.changed)
        self._insert(card)
        return card

    def add_document(self, path: Path, document: DocumentPart, pages: str = "") -> DocumentCard | None:
        """None when the same file with the same words is attached already."""
        known = [(item.path, item.document) for item in self._items if isinstance(item, DocumentCard)]
        if (path, document) in known:
            return None
        self._made += 1
        card = DocumentCard(self._keeper, path, document, self._made, pages)
        card.opened.connect(self.document_opened)
        self._insert(card)
        return card

    def clear(self) -> None:
        for item in self._items:
            item.hide()
            item.deleteLater()
        self._items.clear()
        self._change()

    def move_card(self, card: Card, index: int) -> None:
        """Puts a card at this place among those of its kind; beyond either end it goes to that end."""
        kind = [item for item in self._items if isinstance(item, PictureCard) == isinstance(card, PictureCard)]
        first = self._items.index(kind[0])
        place = max(first, min(index, first + len(kind) - 1))
        if place != self._items.index(card):
            self._items.remove(card)
            self._items.insert(place, card)
            self._change()
            card.handle.setFocus()

    def place_at(self, point: QPoint) -> int:
        """The index of the card under a point of this row, or nearest to it."""

        def distance(index: int) -> int:
            return (self._items[index].geometry().center() - point).manhattanLength()

        return min(range(len(self._items)), key=distance)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self._dragged(event) is not None:
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        if self._dragged(event) is not None:
            self._mark(self.place_at(event.position().toPoint()))
            event.acceptProposedAction()

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self._mark(None)

    def dropEvent(self, event: QDropEvent) -> None:
        card = self._dragged(event)
        self._mark(None)
        if card is not None:
            self.move_card(card, self.place_at(event.position().toPoint()))
            event.acceptProposedAction()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._drop_at is not None and self._drop_at < len(self._items):
            painter = QPainter(self)
            painter.setPen(QPen(self._keeper.theme.color("drop_border"), 2))
            painter.drawRoundedRect(self._items[self._drop_at].geometry().adjusted(-3, -3, 3, 3), 12, 12)
            painter.end()

    def _mark(self, place: int | None) -> None:
        if place != self._drop_at:
            self._drop_at = place
            self.update()

    def _dragged(self, event: QDropEvent) -> Card | None:
        """The card of this row that is dragged, if it is one."""
        number = bytes(event.mimeData().data(OWN_DRAG).data())
        return next((item for item in self._items if str(item.number).encode() == number), None)

    def _insert(self, card: Card) -> None:
        card.removed.connect(lambda: self._remove(card))
        card.moved.connect(lambda step: self.move_card(card, self._items.index(card) + step))
        pictures = sum(isinstance(item, PictureCard) for item in self._items)
        self._items.insert(pictures if isinstance(card, PictureCard) else len(self._items), card)
        self._change()

    def _remove(self, card: Card) -> None:
        """The focus goes to the neighbour, so that Del, Del, Del works."""
        place = self._items.index(card)
        focus: QWidget | None = self.window().focusWidget()
        had_focus = focus is not None and card.isAncestorOf(focus)
        self._items.remove(card)
        card.hide()
        card.deleteLater()
        self._change()
        if had_focus and self._items:
            self._items[min(place, len(self._items) - 1)].handle.setFocus()
        elif had_focus and (parent := self.parentWidget()) is not None:
            parent.setFocus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        columns = 2 if event.size().width() >= 2 * _CARD_WIDTH else 1
        if columns != self._columns:
            self._columns = columns
            self._arrange()

    def _change(self) -> None:
        self._arrange()
        self.changed.emit()

    def _arrange(self) -> None:
        for item in self._items:
            self._grid.removeWidget(item)
        before: QWidget | None = None
        for index, item in enumerate(self._items):
            self._grid.addWidget(item, index // self._columns, index % self._columns)
            item.show()
            if before is not None:
                _tab_after(before, item)
            before = item
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, self._columns - 1)
        self.setVisible(bool(self._items))
        self.resized.emit()


def _tab_after(before: Card | QWidget, card: Card) -> None:
    """Tab goes through the cards in the order they are seen in."""
    chain = [widget for owner in (before, card) for widget in owner.findChildren(QWidget) if widget.focusPolicy()]
    for first, second in itertools.pairwise(chain):
        QWidget.setTabOrder(first, second)
