"""What people and models say to each other, as frozen values."""

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    text: str


class ImagePart(msgspec.Struct, frozen=True, tag="image"):
    """A picture in a message, by file. `sha256` is the lower-case hex digest of the file's bytes."""

    path: str
    sha256: str


Part = TextPart | ImagePart


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
        """The text parts, joined; pictures are left out."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[ImagePart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ImagePart))


def text_message(role: Role, text: str, *, reasoning: str = "") -> Message:
    return Message(role=role, parts=(TextPart(text),), reasoning=reasoning)
