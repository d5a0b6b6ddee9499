"""What is carried out of the app and into it."""

import base64
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.messages import ImagePart

ExportFormat = Literal["markdown", "markdown_thoughts", "json", "html"]


class ExchangedChat(msgspec.Struct, frozen=True):
    """One chat as a whole."""

    summary: ChatSummary
    tree: ChatTree


class Exchanged(msgspec.Struct, frozen=True):
    """What a file holds. `files` are the pictures' bytes by their hash; those that do not fit it are left out."""

    chats: tuple[ExchangedChat, ...] = ()
    folders: tuple[Folder, ...] = ()
    files: dict[str, bytes] = {}
    unreadable: int = 0
    """So many chats of the file could not be made sense of."""
    left_out_pictures: int = 0
    """Of ChatGPT's export: not in the ZIP, too large, no picture, or made by a tool."""


class ImportReport(msgspec.Struct, frozen=True):
    """What came of an import."""

    chats: int = 0
    messages: int = 0
    already_here: int = 0
    unreadable: int = 0
    left_out_pictures: int = 0

    @property
    def sentence(self) -> str:
        """For people."""
        were = "was" if self.chats == 1 else "were"
        parts = [f"{_count(self.chats, 'chat')} with {_count(self.messages, 'message')} {were} imported."]
        if self.already_here:
            parts.append(f"{self.already_here} {'was' if self.already_here == 1 else 'were'} here already.")
        if self.unreadable:
            parts.append(f"{self.unreadable} could not be read.")
        if self.left_out_pictures:
            parts.append(f"{_count(self.left_out_pictures, 'picture')} of ChatGPT's export left out.")
        return " ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class BadExchange(QwenDeskError):
    """A file that cannot be imported, or a place that cannot be written; the sentence says why."""


def picture_bytes(image: ImagePart) -> bytes:
    """The bytes of a picture; none when its file is gone. Blocks."""
    try:
        return Path(image.path).read_bytes() if image.path else b""
    except OSError:
        return b""


def picture_ending(content: bytes) -> str:
    """The ending that a picture file should have, by its first bytes; "" for what is none."""
    marks = ((b"\x89PNG", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF8", ".gif"), (b"BM", ".bmp"), (b"RIFF", ".webp"))
    return next((ending for mark, ending in marks if content.startswith(mark)), "")


def data_address(content: bytes) -> str:
    """The picture as part of a web page; "" for what is no picture that browsers draw."""
    kinds = ((b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"), (b"BM", "bmp"))
    kind = next((name for mark, name in kinds if content.startswith(mark)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "webp"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}" if kind else ""
