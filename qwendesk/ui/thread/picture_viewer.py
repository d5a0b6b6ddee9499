"""The pictures of a chat in a window of their own, one at a time."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QImage, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.services.chat.held import HeldPictures
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.dragging import picture_mime
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.picture_canvas import PictureCanvas
from qwendesk.ui.thread.pictures import load_full

_LONGEST_SIDE = 4096
"""Larger pictures are drawn from a copy of this size: one of 60 megapixels would fill 240 MB."""


class PictureViewer(QDialog):
    """Shows pictures until Esc is pressed or a place beside them is clicked. Does not block the window."""

    shown = Signal(str)
    """The path of the picture that is there now."""

    def __init__(
        self,
        keeper: ThemeKeeper,
        paths: Sequence[Path],
        index: int,
        tasks: Tasks,
        parent: QWidget,
        held: HeldPictures | None = None,
    ) -> None:
        super().__init__(parent)
        self._held = held or HeldPictures()
        self._keeper, self._tasks = keeper, tasks
        self._paths, self._index = tuple(paths), index
        self._image: QImage | None = None
        self.setObjectName("picture.viewer")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(parent.window().size() * 0.85)
        self.canvas = PictureCanvas(keeper)
        self.canvas.left.connect(self.close)
        self.canvas.zoomed.connect(self._show_zoom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._bar())
        column.addWidget(self.canvas, 1)
        keys = (
            ("Esc", self.close), ("Ctrl+C", self.copy), ("Ctrl+S", self.ask_where), ("PgUp", self.show_before),
            ("PgDown", self.show_next), ("Ctrl++", lambda: self.canvas.zoom_by(1)),
            ("Ctrl+-", lambda: self.canvas.zoom_by(-1)), ("Ctrl+0", self.canvas.fit),
        )  # fmt: skip
        for key, run in keys:
            QShortcut(QKeySequence(key), self, run)
        self.canvas.setFocus()
        self._show(index)

    def has_picture(self) -> bool:
        """Whether the picture is there, rather than a sentence."""
        return self.canvas.has_picture

    @property
    def path(self) -> Path:
        return self._paths[self._index]

    def show_before(self) -> None:
        self._show(self._index - 1)

    def show_next(self) -> None:
        self._show(self._index + 1)

    def copy(self) -> None:
        """As pixels and as a file, for whatever is pasted into."""
        if self._image is not None:
            mime = picture_mime(self.path, self._held.get(self.path))
            mime.setImageData(self._image)
            QGuiApplication.clipboard().setMimeData(mime)

    def ask_where(self) -> None:
        dialog = QFileDialog(self, tr("Save the picture"))
        dialog.setObjectName("picture.save_dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(self.path.suffix[1:])
        dialog.selectFile(_short(self.path.name))
        source = self.path
        dialog.fileSelected.connect(
            lambda target: self._tasks.start(_save(source, Path(target), self._held.get(source)))
        )
        dialog.open()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrows that a picture within the window has no use for."""
        if event.key() == Qt.Key.Key_Left:
            self.show_before()
        elif event.key() == Qt.Key.Key_Right:
            self.show_next()
        else:
            super().keyPressEvent(event)

    def _show(self, index: int) -> None:
        if not 0 <= index < len(self._paths):
            return
        self._index = index
        self._image = None
        self.setWindowTitle(self.path.name)
        self.setAccessibleName(tr("Picture {0}", self.path.name))
        self.canvas.setAccessibleName(tr("Picture {0}", self.path.name))
        self.canvas.say(tr("Opening {0}…", self.path.name))
        self._before.setEnabled(index > 0)
        self._next.setEnabled(index + 1 < len(self._paths))
        several = len(self._paths) > 1
        for button in (self._before, self._next):
            button.setVisible(several)
        self._place.setText(tr("{0} of {1}", index + 1, len(self._paths)) if several else "")
        self._tasks.start(self._load(self.path), self)

    async def _load(self, path: Path) -> None:
        try:
            image, width, height = await asyncio.to_thread(load_full, path, _LONGEST_SIDE, self._held.get(path))
        except BadRequest as error:
            if path == self.path:
                self.canvas.say(error.sentence)
            return
        if path == self.path:
            self._image = image
            self.canvas.show_image(image, width, height)
            self.shown.emit(str(path))

    def _show_zoom(self) -> None:
        percent = round(100 * self.canvas.scale * self.devicePixelRatioF())
        self._zoom.setText(tr("{0}%", percent) if self.canvas.has_picture else "")

    def _bar(self) -> QHBoxLayout:
        keeper = self._keeper
        self._before = IconButton(keeper, "left")
        describe(self._before, "picture.before", tr("Picture before"), shortcut="PgUp")
        self._before.clicked.connect(self.show_before)
        self._next = IconButton(keeper, "right")
        describe(self._next, "picture.next", tr("Next picture"), shortcut="PgDown")
        self._next.clicked.connect(self.show_next)
        self._place, self._zoom = QLabel(), QLabel()
        for label in (self._place, self._zoom):
            label.setProperty("kind", "small")
        self._zoom.setObjectName("picture.zoom")
        fit = TextButton(keeper, tr("Fit"), kind="quiet")
        describe(fit, "picture.fit", tr("Fit"), tr("As large as the window lets it be"), "0")
        fit.clicked.connect(self.canvas.fit)
        own = TextButton(keeper, tr("1:1"), kind="quiet")
        describe(own, "picture.own", tr("1:1"), tr("One pixel of the picture is one of the screen"), "1")
        own.clicked.connect(lambda: self.canvas.zoom_to(1 / self.devicePixelRatioF()))
        copy = IconButton(keeper, "copy")
        describe(copy, "picture.copy", tr("Copy the picture"), shortcut="Ctrl+C")
        copy.clicked.connect(self.copy)
        save = IconButton(keeper, "download")
        describe(save, "picture.save", tr("Save as…"), shortcut="Ctrl+S")
        save.clicked.connect(self.ask_where)
        close = IconButton(keeper, "close")
        describe(close, "picture.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(6)
        left: tuple[QWidget, ...] = (self._before, self._next, self._place)
        right: tuple[QWidget, ...] = (self._zoom, fit, own, copy, save, close)
        for widget in left:
            row.addWidget(widget)
        row.addStretch(1)
        for widget in right:
            row.addWidget(widget)
        return row


async def _save(source: Path, target: Path, data: bytes | None) -> None:
    """Raises BadRequest when it cannot be written."""
    try:
        if data is not None:
            await asyncio.to_thread(target.write_bytes, data)
        else:
            await asyncio.to_thread(shutil.copyfile, source, target)
    except shutil.SameFileError:
        return
    except OSError as error:
        sentence = tr('"{0}" cannot be saved: {1}. Choose another place.', target.name, error.strerror or error)
        raise BadRequest(tr("Picture not saved"), sentence) from error


def _short(name: str) -> str:
    """Kept pictures are named by the 64 digits of their hash."""
    stem, dot, ending = name.rpartition(".")
    return f"picture-{stem[:8]}.{ending}" if dot and len(stem) == 64 else name
