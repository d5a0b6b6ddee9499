"""The frames of a clip as small pictures with the time below each."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache, Thumbnail
from qwendesk.core.clips import show_time
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ClipFrame, ImagePart
from qwendesk.core.translation import join_list, tr, tr_n
from qwendesk.core.units import show_duration
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.drag_and_drop import make_draggable
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel

# Largest size of a frame, and the space between two, in logical pixels.
FRAME_SIZE = QSize(96, 64)
_GAP = 8
_MAX_ROWS = 2


def frame_name(clip: str, time_s: float) -> str:
    """Return the name of a frame, "walk.mp4, 0:03"."""
    return join_list((clip, show_time(time_s)))


class FrameThumbnail(QWidget):
    """A frame with its time below it, which is also the name of its picture."""

    def __init__(self, path: Path, clip: str, time_s: float) -> None:
        super().__init__()
        self.picture = Thumbnail(path, FRAME_SIZE, frame_name(clip, time_s))
        time = QLabel(show_time(time_s))
        time.setProperty("kind", "small")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.picture, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(time, 0, Qt.AlignmentFlag.AlignHCenter)


class ClipStrip(QWidget):
    """The clip of a question: its name and length, and as many of its frames as fit in two rows."""

    opened = Signal(str, object)
    """Path and ClipFrame of the frame that the user wants to see."""

    def __init__(self, frames: Sequence[ImagePart], clip: ClipFrame, name: str, previews: PreviewCache) -> None:
        super().__init__()
        self._frames, self._clip, self._previews = tuple(frames), clip, previews
        self._name = name
        self._cell, self._shape = FRAME_SIZE.width(), QSize(FRAME_SIZE.width(), FRAME_SIZE.width() * 9 // 16)
        self._widest = 0
        self._shown: list[FrameThumbnail] = []
        self.setObjectName(name)
        title = tr("{0} · {1}", clip.clip, show_duration(clip.clip_s)) if clip.clip_s else clip.clip
        self.setAccessibleName(tr("Clip {0}", title))
        self._title = ElidedLabel(f"{name}.title", kind="small")
        self._title.setText(title)
        self._title.setToolTip(title)
        self._more = TextButton(kind="quiet")
        self._more.clicked.connect(self._open_rest)
        self._more.hide()
        self._grid = QGridLayout()
        self._grid.setSpacing(_GAP)
        row = QHBoxLayout()
        row.addLayout(self._grid)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._title)
        column.addLayout(row)
        window_tasks().start(self._fit_cell(), self)

    def fit_width(self, widest: int) -> int:
        """Arrange the frames in at most `widest` logical pixels, and return how many are used."""
        self._widest = widest
        in_row = max(1, (widest + _GAP) // (self._cell + _GAP))
        n_shown = len(self._frames) if len(self._frames) <= _MAX_ROWS * in_row else _MAX_ROWS * in_row - 1
        while len(self._shown) > n_shown:
            extra = self._shown.pop()
            self._grid.removeWidget(extra)
            extra.hide()
            extra.deleteLater()
        while len(self._shown) < n_shown:
            self._shown.append(self._thumbnail(len(self._shown)))
        rest = len(self._frames) - n_shown
        text = tr_n("+ {0} more", "+ {0} more", rest)
        self._more.setText(text)
        describe(self._more, f"{self._name}.more", text, tr("View the other frames of {0}", self._clip.clip))
        self._more.setVisible(rest > 0)
        cells: list[QWidget] = [*self._shown, *([self._more] if rest else [])]
        for index, cell in enumerate(cells):
            self._grid.addWidget(cell, index // in_row, index % in_row, Qt.AlignmentFlag.AlignTop)
            cell.setFixedWidth(self._cell)
        self._more.setFixedHeight(FRAME_SIZE.height())
        width = min(len(cells), in_row) * (self._cell + _GAP) - _GAP
        width = max(width, min(widest, self._title.sizeHint().width()))
        self.setFixedWidth(width)
        return width

    def _thumbnail(self, index: int) -> FrameThumbnail:
        image = self._frames[index]
        frame = image.frame or self._clip
        path = Path(image.path)
        thumbnail = FrameThumbnail(path, frame.clip, frame.time_s)
        picture = thumbnail.picture
        picture.setObjectName(f"{self._name}.frame.{index + 1}")
        picture.setFixedSize(self._shape)  # so that nothing moves when it is there
        picture.opened.connect(lambda path: self.opened.emit(path, frame))
        make_draggable(picture, partial(self._previews.mime, path))
        window_tasks().start(picture.fill(self._previews), picture)
        return thumbnail

    async def _fit_cell(self) -> None:
        """Make room for the shape of the frames, which the first one tells."""
        try:
            first = await self._previews.load_preview(Path(self._frames[0].path))
        except BadRequest:
            return
        shape = QSize(first.width, first.height).scaled(FRAME_SIZE, Qt.AspectRatioMode.KeepAspectRatio)
        self._shape = shape.expandedTo(QSize(48, 48))
        # The thumbnail of a narrow frame is a bit wider, and "+ 18 more" must fit too.
        self._cell = max(self._shape.width(), FRAME_SIZE.height())
        for thumbnail in self._shown:
            thumbnail.picture.setFixedSize(self._shape)
        self.fit_width(self._widest)

    def _open_rest(self) -> None:
        image = self._frames[len(self._shown)]
        self.opened.emit(image.path, image.frame)
