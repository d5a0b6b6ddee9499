"""Message parts made from image files, and images in the size that is sent to the engine.

A file is hashed once, when it is attached. The part contains the hash, and a `file_stamp` that shows whether the file
has changed. An incognito chat sends bytes instead of files for its pasted images and for every smaller copy.
"""

import hashlib
import io
import os
from pathlib import Path

import msgspec

from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp, is_utf8, write_whole
from qwendesk.core.links import real_path
from qwendesk.core.messages import ImagePart
from qwendesk.core.paths import cache_folder
from qwendesk.core.translation import tr
from qwendesk.decoding.images import decode_image, hash_image, open_image


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
    return msgspec.structs.replace(image_part(Path(part.path), part.longest_side), frame=part.frame)


def scaled(part: ImagePart, in_memory: IncognitoImages | None) -> ImagePart:
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
    digest = copy.stem.removeprefix(beginning)
    return ImagePart(str(copy), digest, file_stamp=_stamp(str(copy)), frame=part.frame)


def _with_bytes(part: ImagePart, in_memory: IncognitoImages) -> ImagePart:
    data = in_memory.get(Path(part.path)) or part.data or None
    if part.longest_side:
        copy = in_memory.scaled(part.sha256, part.longest_side)
        if copy is None:
            copy = in_memory.add_scaled(part.sha256, part.longest_side, part.path, _scaled_png(part, data))
        return msgspec.structs.replace(copy, frame=part.frame)
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
