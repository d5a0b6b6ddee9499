"""Pictures for other servers: upright, as PNG or JPEG, without what the camera wrote into the file.

Not every server reads WebP or turns a photo as its EXIF data says, and the place where it was taken is nobody's
business. So every picture is decoded here and written anew.
"""

import base64
import io
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from qwendesk.core.messages import ImagePart
from qwendesk.core.units import MIB
from qwendesk.decoding.images import decode_image

_QUALITY: Final = 92
_MOST_KEPT_CHARACTERS: Final = 64 * MIB

EncodePicture = Callable[[ImagePart], str]
"""Returns the data URL of a picture. Blocks; raises BadRequest if the picture can't be read."""


class PictureEncoder:
    """Remembers the last pictures, because a chat sends its pictures again with every question. One thread at a time.

    Those of incognito chats, which come as bytes, are not remembered.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._n_characters = 0

    def data_url(self, part: ImagePart) -> str:
        """Return the picture as a data URL. Blocks. Raises BadRequest if it can't be read."""
        kept = self._kept.get(part.sha256) if part.sha256 and not part.data else None
        if kept is not None:
            self._kept.move_to_end(part.sha256)
            return kept
        url = _data_url(part)
        if part.sha256 and not part.data:
            self._kept[part.sha256] = url
            self._n_characters += len(url)
            while self._n_characters > _MOST_KEPT_CHARACTERS:
                _, dropped = self._kept.popitem(last=False)
                self._n_characters -= len(dropped)
        return url


def _data_url(part: ImagePart) -> str:
    from PIL import Image

    decoded = decode_image(Path(part.path), part.data or None)
    facts = decoded.facts
    image = Image.frombytes(facts.mode, (facts.pixel_width, facts.pixel_height), decoded.pixels)
    content = io.BytesIO()
    if facts.format == "JPEG" and facts.mode == "RGB":
        image.save(content, "JPEG", quality=_QUALITY)
        kind = "image/jpeg"
    else:
        image.save(content, "PNG")
        kind = "image/png"
    return f"data:{kind};base64,{base64.b64encode(content.getvalue()).decode('ascii')}"
