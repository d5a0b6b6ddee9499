"""Read requests from standard input, one per line. Invalid lines are answered, not fatal."""

import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from qwendesk.core.translation import mark
from qwendesk.core.units import show_bytes
from qwendesk.engine.protocol import AnyRequest, RequestFailed
from qwendesk.engine.protocol_lines import LINE_LIMIT_BYTES, decode_request

_ID = re.compile(rb'\s*\{\s*"type"\s*:\s*"\w*"\s*,\s*"id"\s*:\s*(\d{1,18})\b')
"""Matches the beginning of every request as the app encodes it."""
_SKIP_BYTES = 1024**2


def read_requests(stream: BinaryIO) -> Iterator[AnyRequest | RequestFailed]:
    """Yield each request until the stream ends. For a line that is not a request, yield the RequestFailed for it.

    The RequestFailed has the id at the beginning of the line, or 0 if there is none.
    """
    while line := stream.readline(LINE_LIMIT_BYTES):
        if len(line) == LINE_LIMIT_BYTES and not line.endswith(b"\n"):
            _skip_line(stream)
            yield _failure(line, f"it is longer than {show_bytes(LINE_LIMIT_BYTES)}")
            continue
        try:
            request = decode_request(line)
        except msgspec.DecodeError as error:
            yield _failure(line, str(error))
        else:
            yield request


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(_SKIP_BYTES)) and not rest.endswith(b"\n"):
        pass


def _failure(line: bytes, reason: str) -> RequestFailed:
    match = _ID.match(line)
    return RequestFailed(
        id=int(match[1]) if match else 0,
        title=mark("Not understood"),
        sentence=mark("The engine can't read this request: {0}. Restart QwenDesk. If that doesn't help, update it."),
        values=(reason,),
    )
