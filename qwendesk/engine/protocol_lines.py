"""Encodes the messages of the protocol as lines of JSON, and decodes them."""

from typing import TypeVar

import msgspec

from qwendesk.core.json_decoding import json_bytes
from qwendesk.engine.protocol import AnyEvent, AnyRequest, Event, Request

# The longest line that either side accepts. A long message would fail with asyncio's default of 64 KiB.
LINE_LIMIT_BYTES = 64 * 1024**2

DecodedT = TypeVar("DecodedT")

_request_decoder: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_event_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def encode_line(message: Request | Event) -> bytes:
    """Return a message as a line of JSON, including the newline."""
    return json_bytes(message) + b"\n"


def decode_request(line: bytes) -> AnyRequest:
    """Raise msgspec.DecodeError (including ValidationError) if the line is not a request of this version."""
    return decode_with(_request_decoder, line)


def decode_event(line: bytes) -> AnyEvent:
    """Raise msgspec.DecodeError (including ValidationError) if the line is not an event of this version."""
    return decode_with(_event_decoder, line)


def decode_with(decoder: "msgspec.json.Decoder[DecodedT]", line: bytes) -> DecodedT:
    """Return a decoded line. Every failure is raised as msgspec.DecodeError."""
    try:
        return decoder.decode(line)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error
