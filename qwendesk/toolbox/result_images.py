"""Keeps the pictures of a tool's result, so that the model can see them and the chat can show them."""

import asyncio
import hashlib
from pathlib import Path

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import write_whole
from qwendesk.core.messages import ImagePart
from qwendesk.core.paths import cache_folder
from qwendesk.core.tool_context import CallContext
from qwendesk.decoding.images import decode_image
from qwendesk.toolbox.tool import ToolImage, ToolResult

_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
_LONGEST_SIDE = 1280
"""Pixels in which a picture is sent to the model: about 1,000 tokens."""
_TRIED_SIDE = 16
"""Pixels in which a picture is decoded to see whether that is possible."""
_UNSEEN = "(The result has {0} more that you can't see: they are damaged, or this model can't see pictures.)"


async def keep_images(result: ToolResult, context: CallContext) -> tuple[str, tuple[ImagePart, ...]]:
    """Return the text of a result, and its pictures as parts of a message. Nothing of an incognito chat is written.

    Pictures that can't be decoded would spoil every later question, so they are left out, and the text says so.
    """
    if not result.images:
        return result.text, ()
    usable = result.images if context.can_see else ()
    kept = await asyncio.to_thread(lambda: [_kept(image, context) for image in usable])
    parts = tuple(part for part in kept if part is not None)
    n_unseen = len(result.images) - len(parts)
    if not n_unseen:
        return result.text, parts
    what = "1 picture" if n_unseen == 1 else f"{n_unseen} pictures"
    return f"{result.text}\n{_UNSEEN.format(what)}".lstrip(), parts


def _kept(image: ToolImage, context: CallContext) -> ImagePart | None:
    """Return a part with the picture in a file of the cache, or in memory; None if it can't be used. Blocks."""
    sha256 = hashlib.sha256(image.data).hexdigest()
    name = f"{sha256[:32]}{_SUFFIXES.get(image.mime, '.png')}"
    try:
        if context.is_incognito:
            decode_image(Path(name), image.data, longest_side=_TRIED_SIDE)
            return ImagePart(f"(in memory)/{name}", sha256, _LONGEST_SIDE, data=image.data)
        path = cache_folder() / "tool-images" / name
        write_whole(path, image.data)
        decode_image(path, longest_side=_TRIED_SIDE)
    except (QwenDeskError, OSError):
        return None
    return ImagePart(str(path), sha256, _LONGEST_SIDE)
