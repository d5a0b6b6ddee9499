"""The messages between the app and the process that talks to one MCP server: one line of JSON each.

The app sends a Launch first, then requests. Everything that a server sends has been shortened by the process.
"""

from typing import Any, Literal

import msgspec

# The longest line: a result with the most pictures, which are written as base64.
LINE_LIMIT_BYTES = 48 * 1024**2
# Characters of a result.
MOST_TEXT = 200_000
MOST_IMAGES = 8
# Of all pictures of a result together.
MOST_IMAGES_BYTES = 24 * 1024**2

IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/avif", "image/gif", "image/tiff")


class StdioLaunch(msgspec.Struct, frozen=True, tag="stdio"):
    """Start a program that speaks MCP on its standard input and output."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    folder: str = ""
    """Working folder; "" is the folder of the app."""


class HttpLaunch(msgspec.Struct, frozen=True, tag="http"):
    """Connect to a server by streamable HTTP."""

    address: str
    headers: dict[str, str] = {}
    proxy: str = ""
    is_local: bool = False
    """True if it is on this PC: no proxy of the system leads there, and none is to get its headers."""


Launch = StdioLaunch | HttpLaunch


class CallTool(msgspec.Struct, frozen=True, tag="call_tool"):
    id: int
    name: str
    arguments: dict[str, Any]


class ReadResource(msgspec.Struct, frozen=True, tag="read_resource"):
    id: int
    uri: str


class GetPrompt(msgspec.Struct, frozen=True, tag="get_prompt"):
    id: int
    name: str
    arguments: dict[str, str]


class CancelRequest(msgspec.Struct, frozen=True, tag="cancel"):
    id: int
    """The request that is to be cancelled. It gets no reply."""


Question = CallTool | ReadResource | GetPrompt
HostRequest = CallTool | ReadResource | GetPrompt | CancelRequest


class OfferedTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as the server describes it. Everything here is text of others."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    """Of its arguments, made safe to use by offers.py."""


class OfferedResource(msgspec.Struct, frozen=True, omit_defaults=True):
    uri: str
    name: str = ""
    description: str = ""


class PromptArgument(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    description: str = ""
    required: bool = False


class OfferedPrompt(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ServerOffer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tools, resources and prompts of a server."""

    server: str = ""
    """The name and version that it gives itself."""
    tools: tuple[OfferedTool, ...] = ()
    resources: tuple[OfferedResource, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    not_callable: tuple[str, ...] = ()
    """The names of tools that are left out because no arguments fit their schema."""
    n_left_out: int = 0
    """Tools, resources and prompts that are too many or too large."""


class Offered(msgspec.Struct, frozen=True, tag="offered"):
    """The server is connected, or has changed what it offers."""

    offer: ServerOffer


class ProgressNote(msgspec.Struct, frozen=True, tag="progress"):
    id: int
    fraction: float | None = None
    """From 0 to 1; None if the server does not tell how much there is to do."""
    message: str = ""


class ImageData(msgspec.Struct, frozen=True):
    mime: str
    data: bytes


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    id: int
    text: str
    images: tuple[ImageData, ...] = ()
    is_error: bool = False
    """The tool itself says that it failed."""


class RequestRefused(msgspec.Struct, frozen=True, tag="refused"):
    """A request that the server or the connection did not serve."""

    id: int
    error: str


EndReason = Literal["not_started", "not_connected", "not_trusted", "closed", "flood", "too_large", "killed"]


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The last event: there is no connection, or none any more."""

    reason: EndReason
    detail: str = ""
    """Message of the system, the server or a library, in English."""
    log: tuple[str, ...] = ()
    """The last lines of the server's standard error."""


HostEvent = Offered | ProgressNote | Answered | RequestRefused | Ended

launch_decoder: msgspec.json.Decoder[Launch] = msgspec.json.Decoder(Launch)
request_decoder: msgspec.json.Decoder[HostRequest] = msgspec.json.Decoder(HostRequest)
event_decoder: msgspec.json.Decoder[HostEvent] = msgspec.json.Decoder(HostEvent)
_encoder = msgspec.json.Encoder()


def encode_line(message: Launch | HostRequest | HostEvent) -> bytes:
    """Return a message as a line of JSON, including the newline. Its texts must be valid UTF-8."""
    return _encoder.encode(message) + b"\n"
