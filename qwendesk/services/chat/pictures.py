"""Pictures on their way into a message, and from there to the engine: as they are, or as a smaller copy."""

import asyncio
import hashlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PIL import Image, ImageOps

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import write_whole
from qwendesk.core.messages import ImagePart, Message
from qwendesk.core.paths import cache_folder


def image_part(path: Path, longest_side: int = 0) -> ImagePart:
    """The part that stands for a picture file, named by the hash of its bytes. Reads the file; blocks.

    Raises BadRequest when it cannot be read. Whether it is a picture at all, the engine finds out.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadRequest("Picture not readable", f'The file "{path}" cannot be read: {error.strerror}.') from error
    return ImagePart(str(path.resolve()), digest, longest_side)


def scaled(part: ImagePart) -> ImagePart:
    """What the engine gets: the picture itself, or a copy of the wanted size, made in the cache. Blocks.

    The same picture and size always make the same copy, so that the engine need not read it again. Raises BadRequest.
    """
    if not part.longest_side:
        return part
    copy = cache_folder() / "scaled" / f"{part.sha256}-{part.longest_side}.png"
    if not copy.is_file():
        _make_copy(part, copy)
    return image_part(copy)


async def as_sent(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with every picture in the size that was chosen for it. Raises BadRequest."""
    if not any(image.longest_side for message in messages for image in message.images):
        return tuple(messages)
    return await asyncio.to_thread(lambda: tuple(map(_with_copies, messages)))


def _with_copies(message: Message) -> Message:
    parts = tuple(scaled(part) if isinstance(part, ImagePart) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def _make_copy(part: ImagePart, copy: Path) -> None:
    original = Path(part.path)
    data = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(original) as image:
                upright = ImageOps.exif_transpose(image)
                upright = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
                upright.thumbnail((part.longest_side, part.longest_side), Image.Resampling.LANCZOS)
                upright.save(data, "PNG")
        write_whole(copy, data.getvalue())
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        sentence = f"{original.name} cannot be made smaller: {error}. Send it as it is, or remove it."
        raise BadRequest("Picture not readable", sentence) from error
