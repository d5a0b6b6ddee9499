"""What is dropped or pasted: pictures as files, pictures as pixels, or text."""

from pathlib import Path

import msgspec
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage


class Intake(msgspec.Struct, frozen=True):
    """Taken out of the system's drop or clipboard at once, because it is only lent."""

    files: tuple[Path, ...] = ()
    image: QImage | None = None
    text: str = ""

    @property
    def has_pictures(self) -> bool:
        """Files count as pictures until they are looked at."""
        return bool(self.files) or self.image is not None


def offers_pictures(mime: QMimeData) -> bool:
    """Whether local files or a picture are offered; cheap, for while something is dragged."""
    return mime.hasImage() or any(url.isLocalFile() for url in mime.urls())


def take(mime: QMimeData) -> Intake:
    """Local files first; else pixels, as browsers and screenshot tools give them; else text."""
    files = tuple(Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile())
    if files:
        return Intake(files=files)
    if mime.hasImage():
        image = mime.imageData()
        if isinstance(image, QImage) and not image.isNull():
            return Intake(image=image)
    return Intake(text=mime.text())
