"""What is dropped or pasted: files, pictures as pixels or as data in a piece of a web page, or text."""

import base64
import binascii
import re
import urllib.parse
from pathlib import Path

import msgspec
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

OWN_DRAG = "application/x-qwendesk-attachment"
"""Marks an attachment that is dragged within the composer or out of it."""
_DATA_PICTURE = re.compile(
    r"<img\b[^>]{0,2000}?\bsrc\s*=\s*[\"']?data:image/(?:png|jpe?g|webp|gif|bmp)(;base64)?,([^\"'>\s]+)", re.IGNORECASE
)
_WEB_PICTURE = re.compile(r"<img\b[^>]{0,2000}?\bsrc\s*=\s*[\"']?https?:", re.IGNORECASE)
_MOST_BYTES = 64 << 20
_MOST_PICTURES = 20


class Intake(msgspec.Struct, frozen=True):
    """Taken out of the system's drop or clipboard at once, because it is only lent."""

    files: tuple[Path, ...] = ()
    image: QImage | None = None
    data: tuple[bytes, ...] = ()
    """Picture files out of a web page that carried them in itself."""
    text: str = ""
    is_web_picture: bool = False
    """Only the address of a picture on the web came; nothing is fetched."""

    @property
    def has_files(self) -> bool:
        """Whatever may be attached; it is looked at later."""
        return bool(self.files or self.data) or self.image is not None


def offers_files(mime: QMimeData) -> bool:
    """Whether local files or a picture are offered; cheap, for while something is dragged."""
    if mime.hasFormat(OWN_DRAG):
        return False
    return mime.hasImage() or any(url.isLocalFile() for url in mime.urls()) or _is_page_of_pictures(mime)


def take(mime: QMimeData) -> Intake:
    """Local files first; else pixels, as browsers and screenshot tools give them; else pictures in HTML; else text."""
    files = tuple(Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile())
    if files:
        return Intake(files=files)
    if mime.hasImage():
        image = mime.imageData()
        if isinstance(image, QImage) and not image.isNull():
            return Intake(image=image)
    if _is_page_of_pictures(mime):
        return Intake(data=pictures_in(mime.html()))
    is_web = mime.hasHtml() and bool(_WEB_PICTURE.search(mime.html())) and not _words_beside_addresses(mime)
    return Intake(text=mime.text(), is_web_picture=is_web)


def pictures_in(html: str) -> tuple[bytes, ...]:
    """The pictures that a piece of a web page carries in itself; those that are no base64 are left out."""
    found: list[bytes] = []
    for match in _DATA_PICTURE.finditer(html):
        if len(match[2]) <= _MOST_BYTES and len(found) < _MOST_PICTURES:
            raw = urllib.parse.unquote_to_bytes(match[2])
            try:
                found.append(base64.b64decode(raw, validate=True) if match[1] else raw)
            except (binascii.Error, ValueError):
                continue
    return tuple(found)


def _is_page_of_pictures(mime: QMimeData) -> bool:
    """A copied picture, not a copied paragraph with one in it."""
    return mime.hasHtml() and not _words_beside_addresses(mime) and bool(_DATA_PICTURE.search(mime.html()))


def _words_beside_addresses(mime: QMimeData) -> bool:
    if not mime.hasFormat("text/plain"):
        return False
    words = mime.text().split()
    return any(not word.startswith(("data:", "http://", "https://")) for word in words if word != "\ufffc")
