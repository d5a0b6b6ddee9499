"""The pictures of the next question: small, with what each fills of the context."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QWidget

from qwendesk.core.failures import EngineDeath
from qwendesk.engine.protocol import PictureCost, RequestFailed
from qwendesk.ui.kit.buttons import IconButton, describe
from qwendesk.ui.kit.labels import picture_text
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.pictures import Picture
from qwendesk.ui.thread.thumbnails import Thumbnail

Measure = Callable[[Path], Awaitable[PictureCost | RequestFailed | EngineDeath]]
_IN_A_ROW = 2


class Attachment(QFrame):
    """One picture with its cost and a button that removes it."""

    removed = Signal()
    opened = Signal(str)

    def __init__(self, keeper: ThemeKeeper, picture: Picture, number: int) -> None:
        super().__init__()
        self.picture = picture
        self.refusal = ""
        """Why it cannot be sent, in a sentence; empty when it can."""
        self.setProperty("kind", "attachment")
        self.setObjectName(f"composer.attachment.{number}")
        thumbnail = Thumbnail(keeper, picture.path, QSize(60, 40))
        thumbnail.setObjectName(f"composer.attachment.{number}.picture")
        thumbnail.show_image(picture)
        thumbnail.opened.connect(self.opened)
        self.cost = QLabel(f"{picture.width}×{picture.height}")
        self.cost.setProperty("kind", "small")
        self.cost.setObjectName(f"composer.attachment.{number}.cost")
        remove = IconButton(keeper, "close", size=14, side=26)
        describe(remove, f"composer.attachment.{number}.remove", tr("Remove {0}", picture.path.name))
        remove.clicked.connect(self.removed)
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 5, 5, 5)
        row.setSpacing(10)
        row.addWidget(thumbnail)
        row.addWidget(self.cost, 1)
        row.addWidget(remove)

    async def measure(self, ask: Measure, n_ctx: int) -> None:
        """Ask the engine what the picture fills, and say it."""
        answer = await ask(self.picture.path)
        if isinstance(answer, PictureCost):
            self.refusal = ""
            self.cost.setText(picture_text(answer, n_ctx))
        elif isinstance(answer, RequestFailed):
            self.refusal = answer.sentence
            self.cost.setText(answer.title)
            self.cost.setToolTip(answer.sentence)


class Attachments(QWidget):
    """All pictures of the next question; hidden while there is none."""

    changed = Signal()
    opened = Signal(str)

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._items: list[Attachment] = []
        self._made = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 4)
        self._grid.setSpacing(8)
        self.hide()

    @property
    def items(self) -> tuple[Attachment, ...]:
        return tuple(self._items)

    @property
    def paths(self) -> list[Path]:
        return [item.picture.path for item in self._items]

    def add(self, picture: Picture) -> Attachment | None:
        """None when the same file is attached already."""
        if picture.path in self.paths:
            return None
        self._made += 1
        item = Attachment(self._keeper, picture, self._made)
        item.removed.connect(lambda: self._remove(item))
        item.opened.connect(self.opened)
        self._items.append(item)
        self._arrange()
        return item

    def clear(self) -> None:
        for item in self._items:
            item.hide()
            item.deleteLater()
        self._items.clear()
        self._arrange()

    def _remove(self, item: Attachment) -> None:
        self._items.remove(item)
        item.hide()
        item.deleteLater()
        self._arrange()

    def _arrange(self) -> None:
        for index, item in enumerate(self._items):
            self._grid.addWidget(item, index // _IN_A_ROW, index % _IN_A_ROW)
            item.show()
        for column in range(_IN_A_ROW):
            self._grid.setColumnStretch(column, 1)
        self.setVisible(bool(self._items))
        self.changed.emit()
