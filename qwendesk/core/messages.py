"""Messages and their parts."""

import re
from collections.abc import Callable
from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    text: str


class ClipFrame(msgspec.Struct, frozen=True):
    """Says of an image that it is a frame of a clip. Frames of one clip follow each other in a message."""

    clip: str
    """Name of the clip's file, without its folder."""
    clip_sha256: str
    """Lower-case hex digest of the clip's file."""
    time_s: float
    """Seconds from the beginning of the clip."""
    clip_s: float
    """Seconds that the whole clip takes."""


class ImagePart(msgspec.Struct, frozen=True, tag="image", omit_defaults=True):
    """An image file in a message. `sha256` is the lower-case hex digest of the file's bytes."""

    path: str
    sha256: str
    longest_side: int = 0
    """Pixels of the longer side after downscaling for the model; 0 keeps the original size."""
    data: bytes = b""
    """The file's bytes where no file may be used: in a request to the engine worker, and in an incognito chat."""
    file_stamp: tuple[int, int] | None = None
    """Size in bytes and modification time in nanoseconds of the file when it was hashed.

    While both are unchanged, the file need not be hashed again. Not stored with a message.
    """
    frame: ClipFrame | None = None
    pair: "ImagePart | None" = None
    """The next frame of the clip, if the vision encoder is to merge both. Only inside the engine worker."""

    @property
    def key(self) -> str:
        """What the engine sees, as a text: the same for the same picture, or pair of frames."""
        return f"{self.sha256}+{self.pair.sha256}" if self.pair is not None else self.sha256


class DocumentPart(msgspec.Struct, frozen=True, tag="document"):
    """The text of a document attached to a question. The engine receives it quoted; see `for_engine`."""

    name: str
    """Name of the file, without its folder."""
    text: str
    language: str = ""
    """Language of code as in a Markdown fence, such as "python"."""
    pages: int = 0
    """Number of pages of a PDF in the text."""
    tokens: int = 0
    """Token count from the engine when it was sent; 0 if unknown."""
    encoding: str = ""
    """Encoding in which the file was read, by Python's name, if that was guessed or chosen."""

    def quoted(self) -> str:
        """Return the name and the text in a Markdown fence that the text cannot close."""
        longest = max((len(run) for run in re.findall(r"`{3,}", self.text)), default=2)
        fence = "`" * (longest + 1)
        end = "" if self.text.endswith("\n") or not self.text else "\n"
        return f"{self.name}:\n{fence}{self.language}\n{self.text}{end}{fence}\n\n"


Part = TextPart | ImagePart | DocumentPart


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call by the model. `arguments_json` is a JSON object as text."""

    name: str
    arguments_json: str = "{}"


# Why a call ran: without asking, by a consent for this call, this chat or always; or that the user refused it. "" if it
# came to no decision.
Consent = Literal["", "unasked", "once", "chat", "always", "refused"]


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call with what came of it. The model reads `result`, or `error` if the call failed or was refused."""

    call: ToolCall
    is_done: bool = False
    result: str = ""
    images: tuple[ImagePart, ...] = ()
    """Pictures of the result, which the model sees after its text."""
    error: str = ""
    elapsed_s: float = 0.0
    """Duration of the tool, without the wait for the user's consent."""
    id: str = ""
    """Names the call for what is kept of it elsewhere, such as how a file was before; "" until it runs."""
    began_s: float = 0.0
    """Start, in seconds since 1970; 0 until then."""
    consent: Consent = ""


class ToolStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """The text of the assistant before it waited for tools, and the calls that it waited for."""

    calls: tuple[CallRecord, ...]
    reasoning: str = ""
    text: str = ""
    thought_s: float = 0.0
    """Seconds of reasoning; they are part of the answer's."""

    @property
    def messages(self) -> "tuple[Message, ...]":
        """The assistant's message and the results, as the model reads them.

        A call without a name is one that could not be read: it stands in the text. One that is not done, because the
        app or the answer ended, is left out.
        """
        done = [record for record in self.calls if record.is_done]
        if not done and not self.text and not self.reasoning:
            return ()
        calls = tuple(record.call for record in done if record.call.name)
        written = text_message("assistant", self.text, reasoning=self.reasoning)
        return (msgspec.structs.replace(written, tool_calls=calls), *map(_result_message, done))


class Message(msgspec.Struct, frozen=True):
    """One message. `reasoning` is the assistant's reasoning, separate from its answer."""

    role: Role
    parts: tuple[Part, ...] = ()
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """Of a message in a request; those of an answer in a chat are in its steps."""
    steps: tuple[ToolStep, ...] = ()
    """Steps of the assistant before `reasoning` and the answer's text."""
    is_damaged: bool = False
    """Some of it was lost with damage of the chats file: perhaps files, pictures or tool calls."""

    @property
    def text(self) -> str:
        """The text parts joined, without images and documents."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def documents(self) -> tuple[DocumentPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, DocumentPart))

    @property
    def all_images(self) -> tuple[ImagePart, ...]:
        """The images, and those of results of tools."""
        return (*self.images, *(image for step in self.steps for record in step.calls for image in record.images))

    def with_images(self, change: Callable[[ImagePart], ImagePart]) -> "Message":
        """Return the message with what `change` makes of each of `all_images`."""
        if not self.all_images:
            return self
        steps = tuple(
            msgspec.structs.replace(step, calls=tuple(_with_images(record, change) for record in step.calls))
            for step in self.steps
        )
        parts = tuple(change(part) if isinstance(part, ImagePart) else part for part in self.parts)
        return msgspec.structs.replace(self, parts=parts, steps=steps)

    def for_engine(self) -> "Message":
        """Return the message with its documents quoted as text."""
        if not self.documents:
            return self
        parts = (TextPart(part.quoted()) if isinstance(part, DocumentPart) else part for part in self.parts)
        return msgspec.structs.replace(self, parts=tuple(parts))

    @property
    def images(self) -> tuple[ImagePart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ImagePart))


def _result_message(record: CallRecord) -> Message:
    """Return what the model reads of a call. Its chat template puts that, images included, into a turn of the user."""
    return Message("tool", (TextPart(record.error or record.result), *record.images))


def _with_images(record: CallRecord, change: Callable[[ImagePart], ImagePart]) -> CallRecord:
    return msgspec.structs.replace(record, images=tuple(map(change, record.images)))


def without_images(step: ToolStep) -> ToolStep:
    return msgspec.structs.replace(step, calls=tuple(msgspec.structs.replace(each, images=()) for each in step.calls))


def text_message(role: Role, text: str, *, reasoning: str = "") -> Message:
    return Message(role=role, parts=(TextPart(text),), reasoning=reasoning)
