"""Pictures on their way into a message, and from there to the engine: as they are, or as a smaller copy.

A chat that is never written sends bytes instead of a file, for its pasted pictures and for every smaller copy.
"""

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
from qwendesk.services.chat.held import HeldPictures

MOST_BYTES_IN_MEMORY = 40 << 20
"""Of all pictures that one request carries in itself; as text they must fit into a line of the protocol (64 MiB)."""


def image_part(path: Path, longest_side: int = 0, held: HeldPictures | None = None) -> ImagePart:
    """The part that stands for a picture file, named by the hash of its bytes. Reads the file; blocks.

    Raises BadRequest when it cannot be read. Whether it is a picture at all, the engine finds out.
    """
    data = held.get(path) if held is not None else None
    if data is not None:
        return ImagePart(str(path), hashlib.sha256(data).hexdigest(), longest_side)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadRequest("Picture not readable", f'The file "{path}" cannot be read: {error.strerror}.') from error
    return ImagePart(str(path.resolve()), digest, longest_side)


def scaled(part: ImagePart, held: HeldPictures | None = None) -> ImagePart:
    """What the engine gets: the picture itself, or a copy of the wanted size, made in the cache. Blocks.

    The same picture and size always make the same copy, so that the engine need not read it again. With `held` no
    file is made: what is in memory, and the copy, go as bytes. Raises BadRequest.
    """
    if held is not None:
        return _in_memory(part, held)
    if not part.longest_side:
        return part
    copy = cache_folder() / "scaled" / f"{part.sha256}-{part.longest_side}.png"
    if not copy.is_file():
        made = _copy_of(part, Path(part.path))
        try:
            write_whole(copy, made)
        except OSError as error:
            raise _too_hard(part, error) from error
    return image_part(copy)


async def as_sent(messages: Sequence[Message], held: HeldPictures | None = None) -> tuple[Message, ...]:
    """The messages with every picture in the size that was chosen for it. Raises BadRequest."""
    images = [image for message in messages for image in message.images]
    if not images or (held is None and not any(image.longest_side for image in images)):
        return tuple(messages)
    sent = await asyncio.to_thread(lambda: tuple(_with_copies(message, held) for message in messages))
    total = sum(len(image.data) for message in sent for image in message.images)
    if total > MOST_BYTES_IN_MEMORY:
        raise BadRequest(
            "Pictures too large",
            f"The pictures of this chat have {total >> 20} MB, and one that is never saved sends at most "
            f"{MOST_BYTES_IN_MEMORY >> 20} MB at once. Choose a smaller size for them, or leave out older pictures.",
        )
    return sent


def _with_copies(message: Message, held: HeldPictures | None) -> Message:
    parts = tuple(scaled(part, held) if isinstance(part, ImagePart) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def _in_memory(part: ImagePart, held: HeldPictures) -> ImagePart:
    data = held.get(Path(part.path))
    if part.longest_side:
        copy = held.copy_of(part.sha256, part.longest_side)
        if copy is None:
            copy = _copy_of(part, Path(part.path) if data is None else io.BytesIO(data))
            held.keep_copy(part.sha256, part.longest_side, copy)
        return ImagePart(part.path, hashlib.sha256(copy).hexdigest(), data=copy)
    return part if data is None else msgspec.structs.replace(part, data=data)


def _copy_of(part: ImagePart, original: Path | io.BytesIO) -> bytes:
    """A smaller PNG of the picture."""
    data = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(original) as image:
                upright = ImageOps.exif_transpose(image)
                upright = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
                upright.thumbnail((part.longest_side, part.longest_side), Image.Resampling.LANCZOS)
                upright.save(data, "PNG")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _too_hard(part, error) from error
    return data.getvalue()


def _too_hard(part: ImagePart, error: Exception) -> BadRequest:
    sentence = f"{Path(part.path).name} cannot be made smaller: {error}. Send it as it is, or remove it."
    return BadRequest("Picture not readable", sentence)
