"""Message parts made from image files, images in the size that is sent to the engine, and those of incognito chats.

A file is hashed once, when it is attached. The part contains the hash, and a `file_stamp` that shows whether the file
has changed. An incognito chat sends bytes instead of files for its pasted images and for every smaller copy.
"""

import asyncio
import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp, is_utf8, write_whole
from qwendesk.core.links import real_path
from qwendesk.core.messages import ImagePart, Message
from qwendesk.core.paths import cache_folder
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB, show_bytes
from qwendesk.decoding.images import decode_image, hash_image, open_image

_FOLDER = Path("(in memory)")
"""This folder is never created. The paths are only names of images."""


class IncognitoImages:
    """Bytes of image files, each stored under a path that serves as its name. Thread-safe."""

    def __init__(self) -> None:
        self._files: dict[Path, bytes] = {}
        self._scaled: dict[tuple[str, int], ImagePart] = {}

    def add(self, data: bytes, name: str) -> ImagePart:
        """Store the content of an image file, and return a part for it whose path ends in `name`."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = _FOLDER / sha256[:16] / name
        self._files[path] = data
        return ImagePart(str(path), sha256)

    def keep(self, image: ImagePart) -> None:
        """Store a part with its bytes under its own path."""
        self._files[Path(image.path)] = image.data

    def get(self, path: Path) -> bytes | None:
        """Return the image stored under this path; None if the path is that of a file."""
        return self._files.get(path)

    def scaled(self, sha256: str, longest_side: int) -> ImagePart | None:
        """Return the stored copy of this size, with its bytes; None if there is none."""
        return self._scaled.get((sha256, longest_side))

    def add_scaled(self, sha256: str, longest_side: int, path: str, data: bytes) -> ImagePart:
        """Store a smaller copy of the image with this hash, and return it as a part with its bytes."""
        copy = ImagePart(path, hashlib.sha256(data).hexdigest(), data=data)
        self._scaled[(sha256, longest_side)] = copy
        return copy

    def clear(self) -> None:
        self._files.clear()
        self._scaled.clear()


MAX_BYTES_IN_REQUEST = 40 * MIB
"""Limit of all images that one request contains as bytes. Encoded as text they must fit into a line of 64 MiB."""


def image_part(path: Path, longest_side: int = 0) -> ImagePart:
    """Return the part for an image file. Reads and hashes the whole file; blocks.

    Raises BadRequest if it can't be read or is too large. Whether it is an image at all is checked by the engine.
    """
    real = str(real_path(path))
    if not is_utf8(real):
        sentence = tr("The path of this picture isn't valid UTF-8. Rename the file or its folder, then try again.")
        raise BadRequest(tr("Picture not readable"), sentence)
    with open_image(path) as file:
        stamp = file_stamp(os.fstat(file.fileno()))
        digest = hash_image(path, file)
    return ImagePart(real, digest, longest_side, file_stamp=stamp)


def current_part(part: ImagePart) -> ImagePart:
    """Return `part`, hashed again if its file has changed or wasn't hashed yet. Blocks. Raises BadRequest."""
    if part.sha256 and (part.file_stamp is None or part.file_stamp == _stamp(part.path)):
        return part
    return image_part(Path(part.path), part.longest_side)


def scaled(part: ImagePart, in_memory: IncognitoImages | None = None) -> ImagePart:
    """Return the part to send: the image itself, or a copy of its `longest_side` in the cache. Blocks.

    The same image and size always yield the same copy, so that the engine finds it in its cache. If `in_memory` is
    given, no file is written: images in memory and copies are sent as bytes. Raises BadRequest.
    """
    if in_memory is not None:
        return _with_bytes(part, in_memory)
    if not part.longest_side:
        return part
    # The name contains both hashes, so that neither file is hashed again.
    folder, beginning = cache_folder() / "scaled", f"{part.sha256[:32]}-{part.longest_side}-"
    copy = next(folder.glob(f"{beginning}*.png"), None)
    if copy is None:
        data = _scaled_png(part)
        copy = folder / f"{beginning}{hashlib.sha256(data).hexdigest()}.png"
        try:
            write_whole(copy, data)
        except OSError as error:
            raise _not_scaled(part, error) from error
    return ImagePart(str(copy), copy.stem.removeprefix(beginning), file_stamp=_stamp(str(copy)))


async def messages_to_send(
    messages: Sequence[Message], in_memory: IncognitoImages | None = None
) -> tuple[Message, ...]:
    """Return the messages as they are sent to the engine: documents as text, every image in the size chosen for it.

    The order of messages and parts doesn't change. Raises BadRequest.
    """
    messages = tuple(message.for_engine() for message in messages)
    images = [image for message in messages for image in message.images]
    if not images or (in_memory is None and not any(image.longest_side for image in images)):
        return messages
    sent = await asyncio.to_thread(lambda: tuple(_with_scaled_images(message, in_memory) for message in messages))
    total = sum(len(image.data) for message in sent for image in message.images)
    if total > MAX_BYTES_IN_REQUEST:
        raise BadRequest(
            tr("Pictures too large"),
            tr(
                "The pictures of this chat take {0}, but an incognito chat can send at most {1}. Choose a smaller size "
                "for them, or skip older pictures.",
                show_bytes(total),
                show_bytes(MAX_BYTES_IN_REQUEST),
            ),
        )
    return sent


def _with_scaled_images(message: Message, in_memory: IncognitoImages | None) -> Message:
    parts = tuple(scaled(part, in_memory) if isinstance(part, ImagePart) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def _with_bytes(part: ImagePart, in_memory: IncognitoImages) -> ImagePart:
    data = in_memory.get(Path(part.path)) or part.data or None
    if part.longest_side:
        copy = in_memory.scaled(part.sha256, part.longest_side)
        if copy is None:
            copy = in_memory.add_scaled(part.sha256, part.longest_side, part.path, _scaled_png(part, data))
        return copy
    return part if data is None else msgspec.structs.replace(part, data=data)


def _scaled_png(part: ImagePart, data: bytes | None = None) -> bytes:
    """Return the image as PNG, scaled to `longest_side`. Raises BadRequest."""
    from PIL import Image

    decoded = decode_image(Path(part.path), data, longest_side=part.longest_side)
    facts = decoded.facts
    png = io.BytesIO()
    Image.frombytes(facts.mode, (facts.pixel_width, facts.pixel_height), decoded.pixels).save(png, "PNG")
    return png.getvalue()


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        return file_stamp(Path(path).stat())
    except OSError:
        return None


def _not_scaled(part: ImagePart, error: OSError) -> BadRequest:
    sentence = tr(
        "{0} couldn't be scaled: {1}. Send it in its original size, or remove it.", Path(part.path).name, error
    )
    return BadRequest(tr("Picture not scaled"), sentence)
