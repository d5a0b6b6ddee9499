"""The attachments in the composer: pictures and clips first, then documents, each in the order that the user chose."""

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

from qwendesk.chat.view.composer.attachment_cards import AttachmentCard, DocumentCard, PictureCard
from qwendesk.chat.view.composer.clip_card import ClipCard
from qwendesk.chat.view.composer.pasted_content import OWN_DRAG
from qwendesk.chat.view.thread.pictures.thumbnails import ImagePreview
from qwendesk.core.chats import DraftFile
from qwendesk.core.clips import ClipChoice
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.widgets.theme_keeper import current_theme

# Width in logical pixels that a card needs. If two don't fit next to each other, the cards form one column.
_CARD_WIDTH = 300
_MAX_HEIGHT = 136


class AttachmentShelf(QScrollArea):
    """Scroll area of the attachments. It grows with them up to a few rows."""

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
        self.setFixedHeight(min(_MAX_HEIGHT, self._attachments.sizeHint().height()))
        self.setVisible(bool(self._attachments.items))


class Attachments(QWidget):
    """All attachments of the message being written; hidden while there are none."""

    changed = Signal()
    opened = Signal(str, object)
    """Path of a picture that the user wants to see, and its ClipFrame if it is a frame of a clip."""
    clip_asked = Signal(object)
    """A ClipCard whose frames the user wants to choose."""
    document_opened = Signal(object)
    resized = Signal()
    """The height of the widget changed."""
    recount = Signal(object)
    """A card whose tokens must be counted again."""
    reread = Signal(object, str)
    """A DocumentCard, and the encoding in which its file is to be read."""
    unfolded = Signal(str)
    """A pasted text that the user wants in the message itself. Its card is gone."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[AttachmentCard] = []
        self._card_count = 0
        self._columns = 2
        self._drop_index: int | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 4)
        self._grid.setSpacing(8)
        self.setAcceptDrops(True)
        # So that it can get narrower than two columns of cards, which then become one.
        self.setMinimumWidth(1)
        self.hide()

    @property
    def items(self) -> tuple[AttachmentCard, ...]:
        return tuple(self._items)

    @property
    def paths(self) -> list[Path]:
        return [item.path for item in self._items]

    @property
    def pictures(self) -> list[ImagePart]:
        """The pictures and the frames of clips, in order."""
        images: list[ImagePart] = []
        for item in self._items:
            if isinstance(item, PictureCard):
                images.append(item.part)
            elif isinstance(item, ClipCard):
                images += item.parts
        return images

    @property
    def documents(self) -> list[DocumentPart]:
        return [item.part for item in self._items if isinstance(item, DocumentCard)]

    @property
    def drafts(self) -> list[str | DraftFile]:
        return [item.draft for item in self._items]

    def add_picture(self, picture: ImagePreview, image: ImagePart) -> PictureCard | None:
        """Add a card and return it; None if the same file is already attached."""
        if any(isinstance(item, PictureCard) and item.path == picture.path for item in self._items):
            return None
        self._card_count += 1
        card = PictureCard(picture, self._card_count, image)
        card.opened.connect(lambda path: self.opened.emit(path, None))
        card.size_chosen.connect(lambda: self.recount.emit(card))
        card.size_chosen.connect(self.changed)
        self._insert(card)
        return card

    def add_clip(self, path: Path, choice: ClipChoice) -> ClipCard | None:
        """Add the card of a clip that is yet to be read, and return it; None if the same file is already attached."""
        if any(isinstance(item, ClipCard) and item.path == path for item in self._items):
            return None
        self._card_count += 1
        card = ClipCard(path, self._card_count, choice)
        card.opened.connect(self.opened)
        card.asked.connect(lambda: self.clip_asked.emit(card))
        self._insert(card)
        return card

    def show_frames(self, card: ClipCard, parts: tuple[ImagePart, ...], preview: ImagePreview, n_ctx: int) -> None:
        """Give a clip that was read its frames, which are yet to be counted."""
        card.show_frames(parts, preview, n_ctx)
        self.recount.emit(card)
        self.changed.emit()

    def remove(self, card: AttachmentCard) -> None:
        """Remove a card and focus the next one, so that pressing Del repeatedly works."""
        place = self._items.index(card)
        focus: QWidget | None = self.window().focusWidget()
        had_focus = focus is not None and card.isAncestorOf(focus)
        self._items.remove(card)
        _discard(card)
        self._on_changed()
        if had_focus and self._items:
            self._items[min(place, len(self._items) - 1)].handle.setFocus()
        elif had_focus and (parent := self.parentWidget()) is not None:
            parent.setFocus()

    def add_document(self, file: DraftFile, document: DocumentPart) -> DocumentCard | None:
        """Add a card and return it; None if the same text of the same file is already attached."""
        known = [(item.file.path, item.document) for item in self._items if isinstance(item, DocumentCard)]
        if (file.path, document) in known:
            return None
        self._card_count += 1
        card = DocumentCard(file, document, self._card_count)
        card.opened.connect(self.document_opened)
        card.encoding_chosen.connect(lambda encoding: self.reread.emit(card, encoding))
        card.unfolded.connect(lambda: self._unfold(card))
        self._insert(card)
        return card

    def replace_document(self, card: DocumentCard, file: DraftFile, document: DocumentPart) -> None:
        """Show another text of the same file on its card."""
        card.show_document(file, document)
        self.recount.emit(card)
        self.changed.emit()

    def clear(self) -> None:
        for item in self._items:
            _discard(item)
        self._items.clear()
        self._on_changed()

    def move_card(self, card: AttachmentCard, index: int) -> None:
        """Move a card to this index, or as close to it as the cards of its kind allow."""
        kind = [item for item in self._items if isinstance(item, DocumentCard) == isinstance(card, DocumentCard)]
        first = self._items.index(kind[0])
        place = max(first, min(index, first + len(kind) - 1))
        if place != self._items.index(card):
            self._items.remove(card)
            self._items.insert(place, card)
            self._on_changed()
            card.handle.setFocus()

    def index_at(self, point: QPoint) -> int:
        """Return the index of the card that is closest to `point`."""

        def distance(index: int) -> int:
            return (self._items[index].geometry().center() - point).manhattanLength()

        return min(range(len(self._items)), key=distance)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self._dragged(event) is not None:
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        if self._dragged(event) is not None:
            self._mark_drop(self.index_at(event.position().toPoint()))
            event.acceptProposedAction()

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self._mark_drop(None)

    def dropEvent(self, event: QDropEvent) -> None:
        card = self._dragged(event)
        self._mark_drop(None)
        if card is not None:
            self.move_card(card, self.index_at(event.position().toPoint()))
            event.acceptProposedAction()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._drop_index is not None and self._drop_index < len(self._items):
            painter = QPainter(self)
            painter.setPen(QPen(current_theme().color("drop_border"), 2))
            painter.drawRoundedRect(self._items[self._drop_index].geometry().adjusted(-3, -3, 3, 3), 12, 12)
            painter.end()

    def _mark_drop(self, index: int | None) -> None:
        if index != self._drop_index:
            self._drop_index = index
            self.update()

    def _dragged(self, event: QDropEvent) -> AttachmentCard | None:
        """Return the card that is being dragged; None if it is something else."""
        number = bytes(event.mimeData().data(OWN_DRAG).data())
        return next((item for item in self._items if str(item.number).encode() == number), None)

    def _insert(self, card: AttachmentCard) -> None:
        card.removed.connect(lambda: self.remove(card))
        card.moved.connect(lambda step: self.move_card(card, self._items.index(card) + step))
        n_seen = sum(not isinstance(item, DocumentCard) for item in self._items)
        self._items.insert(len(self._items) if isinstance(card, DocumentCard) else n_seen, card)
        self._on_changed()

    def _unfold(self, card: DocumentCard) -> None:
        self.remove(card)
        self.unfolded.emit(card.file.text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        columns = 2 if event.size().width() >= 2 * _CARD_WIDTH else 1
        if columns != self._columns:
            self._columns = columns
            self._arrange()

    def _on_changed(self) -> None:
        self._arrange()
        self.changed.emit()

    def _arrange(self) -> None:
        for item in self._items:
            self._grid.removeWidget(item)
        before: QWidget | None = None
        place = 0
        for item in self._items:
            # The card of a clip has a row of its own, because it says more.
            n_columns = self._columns if isinstance(item, ClipCard) else 1
            place += -place % n_columns
            self._grid.addWidget(item, place // self._columns, place % self._columns, 1, n_columns)
            place += n_columns
            item.show()
            if before is not None:
                _tab_after(before, item)
            before = item
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, self._columns - 1)
        self.setVisible(bool(self._items))
        self.resized.emit()


def _discard(card: AttachmentCard) -> None:
    card.withdraw()
    card.hide()
    card.deleteLater()


def _tab_after(before: AttachmentCard | QWidget, card: AttachmentCard) -> None:
    """Let Tab go from one card to the next in the order in which they are shown."""
    chain = [widget for owner in (before, card) for widget in owner.findChildren(QWidget) if widget.focusPolicy()]
    for first, second in itertools.pairwise(chain):
        QWidget.setTabOrder(first, second)
