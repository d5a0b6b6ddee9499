"""Pasted or dropped content: files, an image, images embedded in part of a web page, or text."""

import re
import urllib.parse
from pathlib import Path

import msgspec
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from qwendesk.commands.pasted_text import LONGEST_COMMAND
from qwendesk.core.json_decoding import decode_base64

# MIME type that marks an attachment dragged from the composer.
OWN_DRAG = "application/x-qwendesk-attachment"
_ADDRESS = r"data:image/(?:png|jpe?g|webp|avif|gif|tiff|bmp)[;,]"
# An image whose address, in quotes or without, has its content. In quotes, the address may have line breaks.
_EMBEDDED_IMAGE = re.compile(
    rf"<img\b[^>]{{0,2000}}?\bsrc\s*=\s*(?:[\"']\s*({_ADDRESS}[^\"'>]+)|({_ADDRESS}[^\"'>\s]+))", re.IGNORECASE
)
_IMAGE = re.compile(r"<img\b", re.IGNORECASE)
# What is no text of an HTML page.
_NOT_WORDS = re.compile(
    r"<!--.*?-->|<(style|script|title)\b.*?</\1\s*>|<[^>]*>|&(nbsp|[#]160);", re.IGNORECASE | re.DOTALL
)
_ADDRESSES = ("data:", "http://", "https://", "file:", "blob:", "cid:")
_MAX_BYTES = 64 << 20
_MAX_IMAGES = 20


class PastedContent(msgspec.Struct, frozen=True):
    """A copy of the data of the clipboard or a drop, which Qt owns and may delete."""

    files: tuple[Path, ...] = ()
    image: QImage | None = None
    data: tuple[bytes, ...] = ()
    """Contents of image files that were embedded in HTML."""
    text: str = ""
    text_as_picture: QImage | None = None
    """Picture of `text` in the program that it is from. Office programs put text on the clipboard in both forms."""
    n_missing: int = 0
    """Number of images that the HTML names without their content. They are never downloaded."""

    @property
    def has_files(self) -> bool:
        """Whether there is anything to attach. Whether it can be attached is checked later."""
        return bool(self.files or self.data) or self.image is not None

    @property
    def is_long(self) -> bool:
        """Whether it is a text that would fill the message, so that it is better attached. An address is never."""
        return len(self.text) > LONGEST_COMMAND and len(self.text.split(maxsplit=1)) > 1


def has_files(mime: QMimeData) -> bool:
    """Return True if there are local files or an image. Fast enough to be called for every mouse move of a drag."""
    if mime.hasFormat(OWN_DRAG):
        return False
    if any(url.isLocalFile() for url in mime.urls()) or is_picture(mime):
        return True
    return is_image_page(mime) and bool(_EMBEDDED_IMAGE.search(mime.html()))


def is_picture(mime: QMimeData) -> bool:
    """Return True for a picture, False for text of which there also is a picture."""
    return mime.hasImage() and not _is_text(mime)


def read_mime(mime: QMimeData) -> PastedContent:
    """Return the first of these that is available: local files, an image, images embedded in HTML, text.

    Browsers and screenshot tools provide an image as pixels, browsers with its address. Of an image of text, as Word,
    Excel, PowerPoint and LibreOffice provide it, the text is taken.
    """
    files = tuple(Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile())
    if files:
        return PastedContent(files=files)
    image = mime.imageData() if mime.hasImage() else None
    if not isinstance(image, QImage) or image.isNull():
        image = None
    if image is not None and not _is_text(mime):
        return PastedContent(image=image)
    if is_image_page(mime):
        data = embedded_images(mime.html())
        return PastedContent(data=data, n_missing=max(0, len(_IMAGE.findall(mime.html())) - len(data)))
    return PastedContent(text=mime.text(), text_as_picture=image)


def embedded_images(html: str) -> tuple[bytes, ...]:
    """Return the contents of the images embedded in HTML as data URLs; broken ones are skipped."""
    found: list[bytes] = []
    for match in _EMBEDDED_IMAGE.finditer(html):
        address = match[1] or match[2]
        if len(address) <= _MAX_BYTES and len(found) < _MAX_IMAGES:
            head, _, content = address.partition(",")
            is_base64 = "base64" in head.lower()
            try:
                found.append(decode_base64(address) if is_base64 else urllib.parse.unquote_to_bytes(content))
            except ValueError:
                continue
    return tuple(found)


def is_image_page(mime: QMimeData) -> bool:
    """Return True for HTML with nothing but images, with their content or without; False for text with images in it."""
    return mime.hasHtml() and bool(_IMAGE.search(mime.html())) and not _is_text(mime)


def _is_text(mime: QMimeData) -> bool:
    """Return True if the plain text has words other than addresses, and the HTML is more than an image with a name."""
    if not mime.hasFormat("text/plain"):
        return False
    words = mime.text().replace("\ufffc", " ").split()
    if all(word.lower().startswith(_ADDRESSES) for word in words):
        return False
    return not (mime.hasHtml() and _IMAGE.search(mime.html()) and not _NOT_WORDS.sub(" ", mime.html()).split())
