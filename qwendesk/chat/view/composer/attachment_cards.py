"""The cards of the attachments in the composer: a picture with its size, a document with its encoding."""

from pathlib import Path

import msgspec
from PySide6.QtCore import QEvent, QMimeData, QObject, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.chat.view.composer.pasted_content import OWN_DRAG
from qwendesk.chat.view.thread.document_chip import DocumentBadge
from qwendesk.chat.view.thread.pictures.thumbnails import ImagePreview, Thumbnail
from qwendesk.core.chats import DraftFile
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.core.number_format import show_count
from qwendesk.core.text_decoding import ENCODINGS
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import PictureCost
from qwendesk.widgets import drag_and_drop
from qwendesk.widgets.buttons import ChevronButton, IconButton, TextButton, describe
from qwendesk.widgets.display_texts import document_text, encoding_text, picture_text, share_text
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.text_layout import ElidedLabel

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
        self.cost = ElidedLabel(f"{self.name}.cost", kind="small")
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

    def withdraw(self) -> None:
        """End what is still done for this card, because it is removed."""

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
        self.cost.setToolTip(text)

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
    encoding_chosen = Signal(str)
    """A name of ENCODINGS, in which the file is to be read again."""
    unfolded = Signal()
    """The user wants this pasted text in the message itself."""

    def __init__(self, file: DraftFile, document: DocumentPart, number: int) -> None:
        super().__init__(Path(file.path), document.name, number)
        self.file, self.document = file, document
        self._badge = DocumentBadge(document)
        self._badge.setObjectName(f"{self.name}.document")
        self._badge.clicked.connect(lambda: self.opened.emit(self.part))
        self._title = QLabel()
        self._title.setText(_short_name(document.name))
        self._title.setToolTip(document.name)
        self._title.setProperty("kind", "filename")
        labels = QVBoxLayout()
        labels.setSpacing(1)
        labels.addWidget(self._title)
        labels.addWidget(self.cost)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 6, 5)
        row.setSpacing(10)
        row.addWidget(self._badge)
        row.addLayout(labels, 1)
        row.addWidget(self._remove, 0, Qt.AlignmentFlag.AlignTop)
        self._watch_controls(self._badge, self._remove)
        self._encoding: ChevronButton | None = None
        if file.text:
            labels.addWidget(self._unfold_button(), 0, Qt.AlignmentFlag.AlignLeft)
        elif document.encoding:
            self._encoding = ChevronButton(kind="size")
            self._encoding.setMenu(self._encodings())
            self._watch_controls(self._encoding)
            labels.addWidget(self._encoding, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_document(file, document)

    @property
    def handle(self) -> QWidget:
        return self._badge

    @property
    def part(self) -> DocumentPart:
        """The document to send, with its size in tokens if that is known."""
        return msgspec.structs.replace(self.document, tokens=self.tokens)

    @property
    def draft(self) -> str | DraftFile:
        return self.file if self.file != DraftFile(self.file.path) else self.file.path

    def show_document(self, file: DraftFile, document: DocumentPart) -> None:
        """Show this text of the same file, which has not been counted yet."""
        self.file, self.document, self.tokens = file, document, 0
        self.cost.setText(document_text(document))
        if self._encoding is not None:
            text = encoding_text(document)
            self._encoding.setText(text)
            name = tr("Encoding of {0}: {1}", document.name, text)
            tip = tr(
                "The file doesn't say how its characters are encoded. If the text looks wrong, choose another encoding."
            )
            describe(self._encoding, f"{self.name}.encoding", name, tip)

    def show_count(self, tokens: int, n_ctx: int) -> None:
        parts = (document_text(self.document), share_text(tokens, n_ctx))
        self.accept_count(tokens, " → ".join(part for part in parts if part))

    def _mime(self) -> QMimeData:
        if not self.file.text:
            return super()._mime()
        mime = QMimeData()
        mime.setText(self.file.text)
        return mime

    def _unfold_button(self) -> TextButton:
        unfold = TextButton(tr("Insert as text"), kind="size")
        describe(unfold, f"{self.name}.unfold", tr("Insert as text"), tr("Put this text into the message itself"))
        unfold.clicked.connect(self.unfolded)
        self._watch_controls(unfold)
        return unfold

    def _encodings(self) -> Menu:
        menu = Menu(self)
        group = QActionGroup(menu)
        for encoding, (language, name) in ENCODINGS.items():
            action = menu.addAction(tr("{0} ({1})", tr(language), name))
            action.setObjectName(f"{self.name}.encoding.{encoding}")
            action.setCheckable(True)
            action.setChecked(encoding == self.document.encoding)
            action.triggered.connect(lambda _checked=False, encoding=encoding: self.encoding_chosen.emit(encoding))
            group.addAction(action)
        return menu


def _size_name(size: str) -> str:
    names = {"original": tr("Original"), "large": tr("Large"), "medium": tr("Medium"), "small": tr("Small")}
    return names[size]


def _size_label(size: str, side: int) -> str:
    return tr("{0} · at most {1} px", _size_name(size), show_count(side)) if side else _size_name(size)


# Characters of a name that are shown.
_MOST_NAME = 34


def _short_name(name: str) -> str:
    return name if len(name) <= _MOST_NAME else name[: _MOST_NAME - 13] + "…" + name[-12:]
