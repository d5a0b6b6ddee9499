"""The attachments in the composer and their cards: pictures first, then documents, each in the order that the user
chose.
"""

import itertools
from pathlib import Path

import msgspec
from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QActionGroup,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.chat.view.composer.pasted_content import OWN_DRAG
from qwendesk.chat.view.thread.document_chip import DocumentBadge
from qwendesk.chat.view.thread.pictures.thumbnails import ImagePreview, Thumbnail
from qwendesk.core.chats import DraftFile
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import PictureCost
from qwendesk.widgets import drag_and_drop
from qwendesk.widgets.buttons import ChevronButton, IconButton, describe
from qwendesk.widgets.display_texts import document_text, picture_text, share_text
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.theme_keeper import current_theme

# Length of the longer side of the image sent to the model, in pixels; 0 for the original size.
SIZES = {"original": 0, "large": 1536, "medium": 1024, "small": 512}
_MOVES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class AttachmentCard(QFrame):
    """One attachment. Del removes it and Alt+Left/Right moves it, from any of its controls."""

    removed = Signal()
    moved = Signal(int)
    """-1 (towards the beginning) or 1."""

    def __init__(self, path: Path, name: str, number: int) -> None:
        super().__init__()
        self.path = path
        self.number = number
        self.tokens = 0
        """Size in tokens; 0 until the engine has counted it."""
        self.refusal = ""
        """Why the attachment can't be sent, in a sentence; "" if it can."""
        self.name = f"composer.attachment.{number}"
        self.setProperty("kind", "attachment")
        self.setObjectName(self.name)
        self.cost = QLabel()
        self.cost.setProperty("kind", "small")
        self.cost.setObjectName(f"{self.name}.cost")
        self._remove = IconButton("close", size=14, side=26)
        describe(self._remove, f"{self.name}.remove", tr("Remove {0}", name), shortcut="Del")
        self._remove.clicked.connect(self.removed)
        drag_and_drop.DragStart(self, self._drag)

    @property
    def handle(self) -> QWidget:
        """The first control, which keeps the focus while the card is moved with the keyboard."""
        raise NotImplementedError

    @property
    def draft(self) -> str | DraftFile:
        """Return what a draft saves of this attachment."""
        return str(self.path)

    def refuse(self, title: str, sentence: str) -> None:
        self.tokens, self.refusal = 0, sentence
        self.cost.setText(title)
        self.cost.setToolTip(sentence)

    def show_uncounted(self, sentence: str) -> None:
        """Say why the size in tokens isn't known. The attachment can be sent."""
        self.tokens, self.refusal = 0, ""
        self.cost.setToolTip(sentence)

    def accept_count(self, tokens: int, text: str) -> None:
        self.tokens, self.refusal = tokens, ""
        self.cost.setText(text)
        self.cost.setToolTip("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() in (QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride):
            step = _MOVES.get(Qt.Key(event.key()), 0) if event.modifiers() & Qt.KeyboardModifier.AltModifier else 0
            is_delete = event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and not step
            if step or is_delete:
                event.accept()
                if event.type() is QEvent.Type.KeyPress:
                    self.removed.emit() if is_delete else self.moved.emit(step)
                return True
        return super().eventFilter(watched, event)

    def _watch_controls(self, *controls: QWidget) -> None:
        for control in controls:
            control.installEventFilter(self)
        drag_and_drop.DragStart(self.handle, self._drag)

    def _drag(self) -> None:
        mime = self._mime()
        mime.setData(OWN_DRAG, str(self.number).encode())
        drag_and_drop.run_drag(self, mime)

    def _mime(self) -> QMimeData:
        return drag_and_drop.files_mime(self.path)


class PictureCard(AttachmentCard):
    size_chosen = Signal()
    """The user chose another size, so the tokens must be counted again."""
    opened = Signal(str)
    """Path of an image that the user wants to see."""

    def __init__(self, picture: ImagePreview, number: int, image: ImagePart) -> None:
        super().__init__(picture.path, picture.path.name, number)
        self.picture = picture
        self._image = image
        self.longest_side = image.longest_side
        self._thumbnail = Thumbnail(picture.path, QSize(60, 40))
        self._thumbnail.setObjectName(f"{self.name}.picture")
        self._thumbnail.show_image(picture)
        self._thumbnail.opened.connect(self.opened)
        self._size = ChevronButton(kind="size")
        self._size.setMenu(self._menu())
        self.cost.setText(f"{picture.width}×{picture.height}")
        labels = QVBoxLayout()
        labels.setSpacing(0)
        labels.addWidget(self.cost)
        labels.addWidget(self._size, 0, Qt.AlignmentFlag.AlignLeft)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 6, 5)
        row.setSpacing(10)
        row.addWidget(self._thumbnail)
        row.addLayout(labels, 1)
        row.addWidget(self._remove, 0, Qt.AlignmentFlag.AlignTop)
        self._watch_controls(self._thumbnail, self._size, self._remove)
        self._show_size()

    @property
    def handle(self) -> QWidget:
        return self._thumbnail

    def _mime(self) -> QMimeData:
        return drag_and_drop.picture_mime(self.path, self.picture.data)

    @property
    def part(self) -> ImagePart:
        return msgspec.structs.replace(self._image, longest_side=self.longest_side)

    @property
    def draft(self) -> str | DraftFile:
        return DraftFile(str(self.path), longest_side=self.longest_side) if self.longest_side else str(self.path)

    def show_cost(self, cost: PictureCost, n_ctx: int) -> None:
        self.accept_count(cost.tokens, picture_text(cost, n_ctx))

    def _menu(self) -> Menu:
        menu = Menu(self)
        menu.setToolTipsVisible(True)
        group = QActionGroup(menu)
        longest = max(self.picture.width, self.picture.height)
        self._actions: dict[int, QAction] = {}
        for size, side in SIZES.items():
            action = menu.addAction(_size_label(size, side))
            action.setObjectName(f"{self.name}.size.{size}")
            action.setCheckable(True)
            action.setEnabled(not side or side < longest)
            action.setToolTip(
                tr("The model gets a copy whose longer side has at most {0} pixels", side)
                if side
                else tr("Full detail, but uses the most tokens")
            )
            action.triggered.connect(lambda _checked=False, side=side: self._choose(side))
            group.addAction(action)
            self._actions[side] = action
        return menu

    def _choose(self, side: int) -> None:
        if side != self.longest_side:
            self.longest_side = side
            self._show_size()
            self.size_chosen.emit()

    def _show_size(self) -> None:
        size = next((size for size, side in SIZES.items() if side == self.longest_side), "original")
        name = _size_name(size)
        self._size.setText(name)
        describe(
            self._size,
            f"{self.name}.size",
            tr("Size of {0}: {1}", self.path.name, name),
            tr("The size that the model gets. Smaller pictures use fewer tokens."),
        )
        if self.longest_side in self._actions:
            self._actions[self.longest_side].setChecked(True)


class DocumentCard(AttachmentCard):
    opened = Signal(object)
    """A DocumentPart whose text the user wants to see."""

    def __init__(self, path: Path, document: DocumentPart, number: int, pages: str) -> None:
        super().__init__(path, document.name, number)
        self.document = document
        self._pages = pages
        self._badge = DocumentBadge(document)
        self._badge.setObjectName(f"{self.name}.document")
        self._badge.clicked.connect(lambda: self.opened.emit(self.part))
        self.cost.setText(document_text(document))
        labels = QVBoxLayout()
        labels.setSpacing(1)
        self._title = QLabel()
        self._title.setText(_short_name(document.name))
        self._title.setToolTip(document.name)
        self._title.setProperty("kind", "filename")
        labels.addWidget(self._title)
        labels.addWidget(self.cost)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 6, 5)
        row.setSpacing(10)
        row.addWidget(self._badge)
        row.addLayout(labels, 1)
        row.addWidget(self._remove, 0, Qt.AlignmentFlag.AlignTop)
        self._watch_controls(self._badge, self._remove)

    @property
    def handle(self) -> QWidget:
        return self._badge

    @property
    def part(self) -> DocumentPart:
        """The document to send, with its size in tokens if that is known."""
        document = self.document
        return DocumentPart(document.name, document.text, document.language, document.pages, self.tokens)

    @property
    def draft(self) -> str | DraftFile:
        return DraftFile(str(self.path), pages=self._pages) if self._pages else str(self.path)

    def show_count(self, tokens: int, n_ctx: int) -> None:
        parts = (document_text(self.document), share_text(tokens, n_ctx))
        self.accept_count(tokens, " → ".join(part for part in parts if part))


def _size_name(size: str) -> str:
    names = {"original": tr("Original"), "large": tr("Large"), "medium": tr("Medium"), "small": tr("Small")}
    return names[size]


def _size_label(size: str, side: int) -> str:
    return tr("{0} · at most {1} px", _size_name(size), show_count(side)) if side else _size_name(size)


# Characters of a name that are shown.
_MOST_NAME = 34


def _short_name(name: str) -> str:
    return name if len(name) <= _MOST_NAME else name[: _MOST_NAME - 13] + "…" + name[-12:]


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
    opened = Signal(str)
    """Path of a picture that the user wants to see."""
    document_opened = Signal(object)
    resized = Signal()
    """The height of the widget changed."""
    recount = Signal(object)
    """A card whose tokens must be counted again."""

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
        return [item.part for item in self._items if isinstance(item, PictureCard)]

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
        card.opened.connect(self.opened)
        card.size_chosen.connect(lambda: self.recount.emit(card))
        card.size_chosen.connect(self.changed)
        self._insert(card)
        return card

    def add_document(self, path: Path, document: DocumentPart, pages: str = "") -> DocumentCard | None:
        """Add a card and return it; None if the same text of the same file is already attached."""
        known = [(item.path, item.document) for item in self._items if isinstance(item, DocumentCard)]
        if (path, document) in known:
            return None
        self._card_count += 1
        card = DocumentCard(path, document, self._card_count, pages)
        card.opened.connect(self.document_opened)
        self._insert(card)
        return card

    def clear(self) -> None:
        for item in self._items:
            item.hide()
            item.deleteLater()
        self._items.clear()
        self._on_changed()

    def move_card(self, card: AttachmentCard, index: int) -> None:
        """Move a card to this index, or as close to it as the cards of its kind allow."""
        kind = [item for item in self._items if isinstance(item, PictureCard) == isinstance(card, PictureCard)]
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
        card.removed.connect(lambda: self._remove(card))
        card.moved.connect(lambda step: self.move_card(card, self._items.index(card) + step))
        pictures = sum(isinstance(item, PictureCard) for item in self._items)
        self._items.insert(pictures if isinstance(card, PictureCard) else len(self._items), card)
        self._on_changed()

    def _remove(self, card: AttachmentCard) -> None:
        """Remove a card and focus the next one, so that pressing Del repeatedly works."""
        place = self._items.index(card)
        focus: QWidget | None = self.window().focusWidget()
        had_focus = focus is not None and card.isAncestorOf(focus)
        self._items.remove(card)
        card.hide()
        card.deleteLater()
        self._on_changed()
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

    def _on_changed(self) -> None:
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


def _tab_after(before: AttachmentCard | QWidget, card: AttachmentCard) -> None:
    """Let Tab go from one card to the next in the order in which they are shown."""
    chain = [widget for owner in (before, card) for widget in owner.findChildren(QWidget) if widget.focusPolicy()]
    for first, second in itertools.pairwise(chain):
        QWidget.setTabOrder(first, second)
