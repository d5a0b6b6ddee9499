"""Pictures in requests: bytes in base64, never an address that the server would have to fetch."""

import base64
import binascii
import hashlib

from qwendesk.core.messages import ImagePart
from qwendesk.server.refusals import bad_field


def picture_from_url(url: str, param: str) -> ImagePart:
    """Return the picture in a data URL. Raise Refused for any other address."""
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma or ";base64" not in head:
        raise bad_field(
            param, "Only pictures in a data URL (data:image/png;base64,...) are read. QwenDesk fetches no addresses."
        )
    return picture_from_base64(data, param)


def picture_from_base64(text: str, param: str) -> ImagePart:
    """Return the picture. Whether it is one is found out by the engine. Raise Refused for invalid base64."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_field(param, f"{param} is not valid base64: {error}.") from error
    if not data:
        raise bad_field(param, f"{param} is an empty picture.")
    digest = hashlib.sha256(data).hexdigest()
    return ImagePart(f"{digest[:16]}.image", digest, data=data)
