"""CallPictures: the pictures in the result of a tool, which open at full size."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

from qwendesk.chat.view.thread.call_intents import CallIntents
from qwendesk.chat.view.thread.thumbnails import Thumbnail
from qwendesk.core.messages import ImagePart
from qwendesk.widgets.drag_and_drop import make_draggable
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.tasks import window_tasks

_LARGEST = QSize(180, 140)


class CallPictures(QWidget):
    """Hidden while there are none."""

    def __init__(self, name: str, intents: CallIntents) -> None:
        super().__init__()
        self._name, self._intents = name, intents
        self._shown: Sequence[ImagePart] = ()
        self._row = FlowLayout(self)
        self.hide()

    def show_images(self, images: Sequence[ImagePart]) -> None:
        """Show these pictures. A call gets them once, when it is done."""
        if images == self._shown:
            return
        self._shown = images
        previews = self._intents.previews
        for number, image in enumerate(images, 1):
            path = Path(image.path)
            if image.data:  # of an incognito chat: there is no file
                previews.incognito_images.keep(image)
            thumbnail = Thumbnail(path, _LARGEST)
            thumbnail.setObjectName(f"{self._name}.{number}")
            thumbnail.opened.connect(self._intents.picture_opened)
            make_draggable(thumbnail, partial(previews.mime, path))
            self._row.addWidget(thumbnail)
            window_tasks().start(thumbnail.fill(previews), thumbnail)
        self.show()
