"""Which conversation a request belongs to, and the reasoning that its client has left out.

A client sends the whole conversation with each request. QwenDesk knows it again by a hash of its beginning, so that the
engine keeps the state of each (ADR 016). Many clients send answers back without their reasoning, which chat templates
expect within a turn with tools; then the engine would process the turn again. So the reasoning of recent answers is
remembered: in memory only, never across two keys, and only for the very conversation in which it was written.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import ImagePart, Message, ToolCall
from qwendesk.server.question import ClientMessage

# Of all that is remembered: some thousand answers.
_MOST_CHARACTERS = 16_000_000


class Remembered(msgspec.Struct, frozen=True):
    """The parts of an answer that a client may leave out, or write in other words."""

    reasoning: str
    tool_calls: tuple[ToolCall, ...]


def prefix_hashes(client: str, tools_json: Sequence[str], messages: Sequence[ClientMessage]) -> list[bytes]:
    """Return a hash of what stands before each message, and at last one of everything. Reasoning does not count."""
    hashes = [_hash(client, list(tools_json))]
    for sent in messages:
        hashes.append(_hash(hashes[-1].hex(), _essence(sent)))
    return hashes


def engine_client(key: str) -> str:
    """Return the name for the engine of whoever has that key; not the key itself, which is nobody's business there."""
    return _hash("client", [key]).hex()[:32]


def conversation_key(hashes: Sequence[bytes], messages: Sequence[ClientMessage]) -> str:
    """Return the name of a conversation for the engine: all requests up to the first question of the user share it."""
    first = next((i for i, sent in enumerate(messages) if sent.message.role == "user"), len(messages) - 1)
    return f"server-{hashes[first + 1].hex()[:32]}"


class ReasoningMemory:
    """The reasoning of recent answers, the least recently used forgotten first."""

    def __init__(self, most_characters: int = _MOST_CHARACTERS) -> None:
        self._most_characters = most_characters
        self._answers: OrderedDict[bytes, Remembered] = OrderedDict()
        self._n_characters = 0

    @property
    def n_characters(self) -> int:
        return self._n_characters

    def remember(self, prefix: bytes, answer: ClientMessage) -> None:
        """Remember an answer to the conversation with the hash `prefix`."""
        written = answer.message
        if not written.reasoning and not written.tool_calls:
            return
        key = _hash(prefix.hex(), _essence(answer))
        self._drop(key)
        self._answers[key] = Remembered(written.reasoning, written.tool_calls)
        self._n_characters += _length(self._answers[key])
        while self._n_characters > self._most_characters:
            self._drop(next(iter(self._answers)))

    def completed(self, hashes: Sequence[bytes], messages: Sequence[ClientMessage]) -> tuple[Message, ...]:
        """Return the messages with the reasoning that their client left out; `hashes` are their `prefix_hashes`."""
        return tuple(self._completed(prefix, sent) for prefix, sent in zip(hashes, messages, strict=False))

    def _completed(self, prefix: bytes, sent: ClientMessage) -> Message:
        if sent.message.role != "assistant":
            return sent.message
        key = _hash(prefix.hex(), _essence(sent))
        known = self._answers.get(key)
        if known is None:
            return sent.message
        self._answers.move_to_end(key)
        reasoning = sent.message.reasoning or known.reasoning
        return msgspec.structs.replace(sent.message, reasoning=reasoning, tool_calls=known.tool_calls)

    def _drop(self, key: bytes) -> None:
        known = self._answers.pop(key, None)
        if known is not None:
            self._n_characters -= _length(known)


def _length(known: Remembered) -> int:
    return len(known.reasoning) + sum(len(call.arguments_json) for call in known.tool_calls)


def _essence(sent: ClientMessage) -> list[Any]:
    """Return what identifies a message, however its client writes JSON."""
    parts = [part.sha256 if isinstance(part, ImagePart) else part.text for part in sent.message.parts]
    if sent.message.role == "assistant":
        parts = ["".join(parts).strip()]
    calls = [[call.name, _value(call.arguments_json)] for call in sent.message.tool_calls]
    return [sent.message.role, parts, list(sent.call_ids), calls, sent.answers]


def _value(arguments_json: str) -> Any:
    try:
        return decode_json(arguments_json)
    except msgspec.DecodeError:
        return arguments_json


def _hash(before: str, content: list[Any]) -> bytes:
    return hashlib.sha256(msgspec.json.encode([before, content], order="deterministic")).digest()
