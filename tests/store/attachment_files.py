"""Pictures to attach, and files as the attachments folder has them."""

import hashlib
import os
from pathlib import Path

from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import ImagePart, Message, TextPart


def picture(path: Path, content: bytes = b"original bytes") -> ImagePart:
    path.write_bytes(content)
    return ImagePart(str(path), hashlib.sha256(content).hexdigest())


def question(image: ImagePart, name: str = "q1") -> ChatNode:
    return ChatNode(id=name, message=Message("user", (image, TextPart("What is this?"))))


def own_name(letter: str) -> str:
    return f"{letter * 2}/{letter * 64}"


def make_old(path: Path) -> None:
    """As if it was written long ago."""
    os.utime(path, (1.0, 1.0))
