"""Pictures in requests: bytes in base64, however it is written, never an address that the server had to fetch."""

import hashlib

from qwendesk.core.messages import ImagePart
from qwendesk.core.text_decoding import decode_base64
from qwendesk.server.fields import Fields
from qwendesk.server.refusals import BAD_PICTURE, Refused, bad_field

_PLACES = ("image_url", "image", "source", "url", "data", "file_data")
"""Where the parts of the APIs have a picture, or an object with it."""
_UNUSED = ("type", "media_type", "mime_type", "mimeType", "format")
"""What says which format a picture has: that is seen from its bytes."""


def read_picture(part: Fields, param: str = "") -> ImagePart:
    """Return the picture of a part of a message. Raise Refused, with `param`, for what can't be read.

    Whether it is a picture is found out by the engine.
    """
    for name in (*_UNUSED, *(("detail",) if part.peek("detail") in ("auto", "high", "original") else ())):
        part.any(name)
    for name in _PLACES:
        if isinstance(part.peek(name), dict):
            return read_picture(part.object(name), param or part.path(name))
        if part.has(name):
            return picture(part.text(name), param or part.path(name))
    if part.has("file_id"):
        raise _bad(param or part.path("file_id"), "QwenDesk keeps no files. Send the picture itself, in base64.")
    raise _bad(param or part.path("image_url"), f"{param or part.path('image_url')} is missing.")


def picture(text: str, param: str) -> ImagePart:
    """Return the picture in base64. The field stands for its path, so that the engine's errors name it."""
    data = read_base64(text, param)
    return ImagePart(param, hashlib.sha256(data).hexdigest(), data=data)


def read_base64(text: str, param: str) -> bytes:
    """Return the bytes of a data URL, or of base64 without one. Raise Refused for anything else."""
    if ":" in text[:100] and not text.lstrip()[:5].lower() == "data:":
        raise _bad(param, "QwenDesk fetches no addresses. Send the picture itself in base64: data:image/png;base64,...")
    try:
        data = decode_base64(text)
    except ValueError as error:
        raise _bad(param, f"{param} is not valid base64: {error}.") from error
    if not data:
        raise _bad(param, f"{param} is empty.")
    return data


def _bad(param: str, sentence: str) -> Refused:
    return bad_field(param, sentence, code=BAD_PICTURE)
