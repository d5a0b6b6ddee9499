"""What is attached to the next question, a card each: with what it fills of the context, and what can be done."""

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QVBoxLayout, QWidget

from qwendesk.core.chats import DraftFile
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.engine.protocol import PictureCost
from qwendesk.ui.composer.intake import OWN_DRAG
from qwendesk.ui.kit import dragging
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.labels import document_text, picture_text, share_text
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.document_chip import DocumentBadge
from qwendesk.ui.thread.pictures import Picture
from qwendesk.ui.thread.thumbnails import Thumbnail

SIZES = {"original": 0, "large": 1536, "medium": 1024, "small": 512}
"""Pixels of the longer side that the model gets; 0 is the picture as it is."""
_MOVES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class Card(QFrame):
    """One attachment. Del removes it and Alt+Left/Right moves it, from any of its controls."""

    removed = Signal()
    moved = Signal(int)
    """-1 or 1."""

    def __init__(self, keeper: ThemeKeeper, path: Path, name: str, number: int) -> None:
        super().__init__()
        self.path = path
        self.number = number
        self.tokens = 0
        """0 until the engine counted them."""
        self.refusal = ""
        """Why it cannot be sent, in a sentence; empty when it can."""
        self.name = f"composer.attachment.{number}"
        self.setProperty("kind", "attachment")
        self.setObjectName(self.name)
        self.cost = QLabel()
        self.cost.setProperty("kind", "small")
        self.cost.setObjectName(f"{self.name}.cost")
        self._remove = IconButton(keeper, "close", size=14, side=26)
        describe(self._remove, f"{self.name}.remove", tr("Remove {0}", name), shortcut="Del")
        self._remove.clicked.connect(self.removed)
        dragging.DragStart(self, self._drag)

    @property
    def handle(self) -> QWidget:
        """The first control of it: what has the focus while it is moved by keys."""
        raise NotImplementedError

    @property
    def draft(self) -> str | DraftFile:
        """What brings it back after a crash."""
        return str(self.path)

    def refuse(self, title: str, sentence: str) -> None:
        self.tokens, self.refusal = 0, sentence
        self.cost.setText(title)
        self.cost.setToolTip(sentence)

    def accept_count(self, tokens: int, text: str) -> None:
        self.tokens, self.refusal = tokens, ""
        self.cost.setText(text)
        self.cost.setToolTip("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() in (QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride):
            step = _MOVES.get(Qt.Key(event.key()), 0) if event.modifiers() & Qt.KeyboardModifier.AltModifier else 0
            gone = event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and not step
            if step or gone:
                event.accept()
                if event.type() is QEvent.Type.KeyPress:
                    self.removed.emit() if gone else self.moved.emit(step)
                return True
        return super().eventFilter(watched, event)

    def _listen(self, *controls: QWidget) -> None:
        for control in controls:
            control.installEventFilter(self)
        dragging.DragStart(self.handle, self._drag)

    def _drag(self) -> None:
        mime = self._mime()
        mime.setData(OWN_DRAG, str(self.number).encode())
        dragging.run_drag(self, mime)

    def _mime(self) -> QMimeData:
        return dragging.files_mime(self.path)


class PictureCard(Card):
    """`size_chosen` when it is to be sent in another size: it has to be counted again."""

    size_chosen = Signal()
    opened = Signal(str)

    def __init__(self, keeper: ThemeKeeper, picture: Picture, number: int, longest_side: int = 0) -> None:
        super().__init__(keeper, picture.path, picture.path.name, number)
        self.picture = picture
        self.longest_side = longest_side
        self._thumbnail = Thumbnail(keeper, picture.path, QSize(60, 40))
        self._thumbnail.setObjectName(f"{self.name}.picture")
        self._thumbnail.show_image(picture)
        self._thumbnail.opened.connect(self.opened)
        self._size = TextButton(keeper, kind="size")
        self._size.setMenu(self._menu())
        self.cost.setText(f"{picture.width}×{picture.height}")
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self.cost)
        words.addWidget(self._size, 0, Qt.AlignmentFlag.AlignLeft)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 6, 5)
        row.setSpacing(10)
        row.addWidget(self._thumbnail)
        row.addLayout(words, 1)
        row.addWidget(self._remove, 0, Qt.AlignmentFlag.AlignTop)
        self._listen(self._thumbnail, self._size, self._remove)
        self._show_size()

    @property
    def handle(self) -> QWidget:
        return self._thumbnail

    def _mime(self) -> QMimeData:
        return dragging.picture_mime(self.path, self.picture.data)

    @property
    def part(self) -> ImagePart:
        """Without a hash: the file is read when it is sent."""
        return ImagePart(str(self.path), "", self.longest_side)

    @property
    def draft(self) -> str | DraftFile:
        return DraftFile(str(self.path), longest_side=self.longest_side) if self.longest_side else str(self.path)

    def show_cost(self, cost: PictureCost, n_ctx: int) -> None:
        self.accept_count(cost.tokens, picture_text(cost, n_ctx))

    def _menu(self) -> QMenu:
        menu = QMenu(self)
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
                tr("The model gets a copy of at most {0} pixels; the original is kept", side)
                if side
                else tr("The model gets the picture as it is: most detail, most tokens")
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
        words = _size_name(size)
        self._size.setText(words + " ▾")
        describe(
            self._size,
            f"{self.name}.size",
            tr("Size of {0}: {1}", self.path.name, words),
            tr("In which size the model gets the picture: fewer pixels are fewer tokens"),
        )
        if self.longest_side in self._actions:
            self._actions[self.longest_side].setChecked(True)


class DocumentCard(Card):
    """`opened` asks to see its text."""

    opened = Signal(object)

    def __init__(self, keeper: ThemeKeeper, path: Path, document: DocumentPart, number: int, pages: str = "") -> None:
        super().__init__(keeper, path, document.name, number)
        self.document = document
        self._pages = pages
        self._badge = DocumentBadge(keeper, document)
        self._badge.setObjectName(f"{self.name}.document")
        self._badge.clicked.connect(lambda: self.opened.emit(self.part))
        self.cost.setText(document_text(document))
        words = QVBoxLayout()
        words.setSpacing(1)
        self._title = QLabel()
        self._title.setText(_short(document.name))
        self._title.setToolTip(document.name)
        self._title.setProperty("kind", "filename")
        words.addWidget(self._title)
        words.addWidget(self.cost)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 6, 5)
        row.setSpacing(10)
        row.addWidget(self._badge)
        row.addLayout(words, 1)
        row.addWidget(self._remove, 0, Qt.AlignmentFlag.AlignTop)
        self._listen(self._badge, self._remove)

    @property
    def handle(self) -> QWidget:
        return self._badge

    @property
    def part(self) -> DocumentPart:
        """With its tokens, as far as they are known."""
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
    return tr("{0} · at most {1} px", _size_name(size), f"{side:,}") if side else _size_name(size)


def _short(name: str, longest: int = 34) -> str:
    return name if len(name) <= longest else name[: longest - 13] + "…" + name[-12:]
