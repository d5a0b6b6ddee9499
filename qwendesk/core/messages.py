"""What people and models say to each other, as frozen values."""

import re
from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    text: str


class ImagePart(msgspec.Struct, frozen=True, tag="image", omit_defaults=True):
    """A picture in a message, by file. `sha256` is the lower-case hex digest of the file's bytes."""

    path: str
    sha256: str
    longest_side: int = 0
    """Pixels of the longer side that the model sees: a copy is made for it. 0: the picture as it is."""
    data: bytes = b""
    """The file's bytes where there must be no file; only on the way to the engine, and of a chat that is not kept."""


class DocumentPart(msgspec.Struct, frozen=True, tag="document"):
    """A text file attached to a question, as it was read then. The engine gets it quoted; see `for_engine`."""

    name: str
    """The file's name, without its folder."""
    text: str
    language: str = ""
    """Of code, as a fence in Markdown names it: "python"."""
    pages: int = 0
    """Of a PDF: how many are in the text."""
    tokens: int = 0
    """As the engine counted them when it was sent; 0 when that is not known."""

    def quoted(self) -> str:
        """Its name and its text in a fence that nothing inside can end."""
        longest = max((len(run) for run in re.findall(r"`{3,}", self.text)), default=2)
        fence = "`" * (longest + 1)
        end = "" if self.text.endswith("\n") or not self.text else "\n"
        return f"{self.name}:\n{fence}{self.language}\n{self.text}{end}{fence}\n\n"


Part = TextPart | ImagePart | DocumentPart


class ToolCall(msgspec.Struct, frozen=True):
    """A call the model made. `arguments_json` is a JSON object as text."""

    name: str
    arguments_json: str = "{}"


class Message(msgspec.Struct, frozen=True):
    """One message. `reasoning` is the assistant's thought, kept apart from its answer."""

    role: Role
    parts: tuple[Part, ...] = ()
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined; pictures and documents are left out."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def documents(self) -> tuple[DocumentPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, DocumentPart))

    def for_engine(self) -> "Message":
        """The same message with its documents as text, which is all that a model reads."""
        if not self.documents:
            return self
        parts = (TextPart(part.quoted()) if isinstance(part, DocumentPart) else part for part in self.parts)
        return msgspec.structs.replace(self, parts=tuple(parts))

    @property
    def images(self) -> tuple[ImagePart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ImagePart))


def text_message(role: Role, text: str, *, reasoning: str = "") -> Message:
    return Message(role=role, parts=(TextPart(text),), reasoning=reasoning)
