"""The chunks of a streamed answer as values. Unknown fields are ignored, and missing ones are empty."""

from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json


class FunctionPiece(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    """Text in pieces; some servers send the object as a whole."""


class CallPiece(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece = FunctionPiece()


class ChunkDelta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[CallPiece] | None = None


class Choice(msgspec.Struct, frozen=True):
    delta: ChunkDelta = ChunkDelta()
    finish_reason: str | None = None


class TokenDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class Timings(msgspec.Struct, frozen=True):
    """llama-server's times, in milliseconds."""

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    draft_n: int = 0
    draft_n_accepted: int = 0


class Progress(msgspec.Struct, frozen=True):
    """llama-server's progress of the prompt, in tokens."""

    total: int = 0
    cache: int = 0
    processed: int = 0


class Chunk(msgspec.Struct, frozen=True):
    id: str = ""
    choices: list[Choice] = []
    usage: Usage | None = None
    timings: Timings | None = None
    prompt_progress: Progress | None = None
    error: Any = None


def decode_chunk(data: str) -> Chunk:
    """Return the chunk of one event. Raises msgspec.DecodeError."""
    return decode_json(data, Chunk, strict=False)
