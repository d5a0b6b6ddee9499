"""Writes answers as Anthropic's messages."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import CallDelta, Called, Delta, PromptProgress
from qwendesk.server.answer import AnswerHead, WrittenAnswer, unreadable_call
from qwendesk.server.events import Frame, StreamEvent
from qwendesk.server.refusals import Refused, error_body

_PING = StreamEvent({"type": "ping"}, "ping")


def stop_reason(answer: WrittenAnswer) -> str:
    """Return Anthropic's word for the end of an answer."""
    if answer.stop_reason in ("max_tokens", "context_full"):
        return "max_tokens"
    if answer.stop_reason == "stop_string":
        return "stop_sequence"
    return "tool_use" if answer.calls_tools else "end_turn"


def messages_body(head: AnswerHead, answer: WrittenAnswer) -> dict[str, Any]:
    """Return the body of an answer that isn't streamed."""
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": _signature(answer.reasoning)})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments_json)}
        for call in answer.calls
    ]
    return _message(head, _usage(answer.stats)) | {
        "content": content,
        "stop_reason": stop_reason(answer),
        "stop_sequence": answer.stop_text or None,
    }


class MessagesWriter:
    """Writes one answer as events. `progress` is how far the prompt is when the stream begins, None if unknown."""

    def __init__(self, head: AnswerHead, progress: PromptProgress | None = None) -> None:
        self._head, self._progress = head, progress
        self._index = -1
        self._open = ""
        """The kind of the open block: "thinking", "text", "tool_use", or "" for none."""
        self._thinking: list[str] = []

    def begin(self) -> Iterator[Frame]:
        total, reused = (self._progress.total, self._progress.reused) if self._progress is not None else (0, 0)
        known = AnswerStats(prompt_tokens=total, reused_tokens=reused, reread_tokens=total - reused)
        yield _event({"type": "message_start", "message": _message(self._head, _usage(known))})
        yield _PING

    def write(self, item: AnswerItem) -> Iterator[Frame]:
        match item:
            case Delta(kind="reasoning", text=text):
                yield from self._to_block("thinking", {"thinking": "", "signature": ""})
                self._thinking.append(text)
                yield self._delta({"type": "thinking_delta", "thinking": text})
            case Delta(text=text):
                yield from self._text(text)
            case CallDelta(index=index, name=name, arguments=arguments):
                if name:
                    yield from self._end_block()
                    empty: dict[str, Any] = {"id": self._head.call_id(index), "name": name, "input": {}}
                    yield from self._to_block("tool_use", empty)
                if arguments:
                    yield self._delta({"type": "input_json_delta", "partial_json": arguments})
            case Called(call=None, is_finished=True) if self._open != "tool_use":
                yield from self._text(unreadable_call(item))
            case Called():
                yield from self._end_block()

    def wait(self) -> Frame:
        return _PING

    def end(self, answer: WrittenAnswer) -> Iterator[Frame]:
        yield from self._end_block()
        ending = {"stop_reason": stop_reason(answer), "stop_sequence": answer.stop_text or None}
        yield _event({"type": "message_delta", "delta": ending, "usage": _usage(answer.stats)})
        yield _event({"type": "message_stop"})

    def fail(self, refused: Refused) -> Iterable[Frame]:
        return (_event(error_body(refused, "anthropic")),)

    def _text(self, text: str) -> Iterator[Frame]:
        yield from self._to_block("text", {"text": ""})
        yield self._delta({"type": "text_delta", "text": text})

    def _to_block(self, kind: str, empty: dict[str, Any]) -> Iterator[Frame]:
        """Begin a block of that kind, unless one is open."""
        if self._open == kind:
            return
        yield from self._end_block()
        self._index, self._open = self._index + 1, kind
        yield _event({"type": "content_block_start", "index": self._index, "content_block": {"type": kind} | empty})

    def _end_block(self) -> Iterator[Frame]:
        if self._open == "thinking":
            signature = _signature("".join(self._thinking))
            yield self._delta({"type": "signature_delta", "signature": signature})
        if self._open:
            yield _event({"type": "content_block_stop", "index": self._index})
        self._open = ""

    def _delta(self, delta: dict[str, Any]) -> StreamEvent:
        return _event({"type": "content_block_delta", "index": self._index, "delta": delta})


def _event(data: dict[str, Any]) -> StreamEvent:
    return StreamEvent(data, data["type"])


def _message(head: AnswerHead, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{head.key}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(stats: AnswerStats) -> dict[str, Any]:
    return {
        "input_tokens": stats.reread_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": stats.reused_tokens,
        "output_tokens": stats.reasoning_tokens + stats.answer_tokens,
    }


def _signature(thinking: str) -> str:
    """Return what stands where Anthropic signs its thinking. Clients send it back; nothing depends on it."""
    return hashlib.sha256(thinking.encode()).hexdigest()


def _input(arguments_json: str) -> Any:
    try:
        return decode_json(arguments_json)
    except msgspec.DecodeError:
        return {"arguments": arguments_json}
