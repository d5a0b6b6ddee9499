"""The chunks of a streamed answer as values. Unknown fields are ignored, and missing ones are empty.

So are those of a wrong kind, such as counts that are null: an answer that can be read doesn't end because of them.
"""

from contextlib import suppress
from typing import Any, TypeVar, get_args

import msgspec

from qwendesk.core.json_decoding import decode_json

S = TypeVar("S", bound=msgspec.Struct)


class FunctionPiece(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    """Text in pieces; some servers send the object as a whole."""


class ToolCallDelta(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece = FunctionPiece()


class ChunkDelta(msgspec.Struct, frozen=True):
    content: Any = None
    """As the reasoning, a text, or parts with a text."""
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[ToolCallDelta] | None = None


class ChunkChoice(msgspec.Struct, frozen=True):
    delta: ChunkDelta | None = None
    message: ChunkDelta | None = None
    """What a server that doesn't stream has in place of `delta`."""
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


class PrefillProgress(msgspec.Struct, frozen=True):
    """llama-server's progress of the prompt, in tokens."""

    total: int = 0
    cache: int = 0
    processed: int = 0


class Chunk(msgspec.Struct, frozen=True):
    id: str = ""
    choices: list[ChunkChoice] = []
    usage: Usage | None = None
    timings: Timings | None = None
    prompt_progress: PrefillProgress | None = None
    error: Any = None


def decode_chunk(data: str | bytes) -> Chunk:
    """Return the chunk of one event. Raises msgspec.DecodeError for what isn't a JSON object."""
    value = decode_json(data)
    try:
        return msgspec.convert(value, Chunk, strict=False)
    except msgspec.ValidationError:
        if not isinstance(value, dict):
            raise
        return _readable(value, Chunk)


def text_of(content: Any) -> str:
    """Return the text of a content: a text or number, or an object or a list with some."""
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content"))
    if isinstance(content, list):
        return "".join(map(text_of, content))
    return str(content) if isinstance(content, str | int | float) and not isinstance(content, bool) else ""


def _readable(value: dict[str, Any], kind: type[S]) -> S:
    """Return what can be read of an object."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        given = value.get(field.name)
        kinds = (
            field.type,
            *get_args(field.type),
            *(inner for each in get_args(field.type) for inner in get_args(each)),
        )
        struct = next((each for each in kinds if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)
        if struct is not None and isinstance(given, list):
            given = [_readable(each, struct) for each in given if isinstance(each, dict)]
        elif struct is not None and isinstance(given, dict):
            given = _readable(given, struct)
        with suppress(msgspec.ValidationError):
            found[field.name] = msgspec.convert(given, field.type, strict=False)
    return kind(**found)
