"""Pictures on their way into a message."""

import hashlib
from pathlib import Path

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart


def image_part(path: Path) -> ImagePart:
    """The part that stands for a picture file, named by the hash of its bytes. Reads the file; blocks.

    Raises BadRequest when it cannot be read. Whether it is a picture at all, the engine finds out.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadRequest("Picture not readable", f'The file "{path}" cannot be read: {error.strerror}.') from error
    return ImagePart(path=str(path.resolve()), sha256=digest)
