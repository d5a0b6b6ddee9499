"""Writes answers as OpenAI's chat completions."""

from collections.abc import Iterable, Iterator
from typing import Any

from qwendesk import __version__
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import CallDelta, Called, Delta
from qwendesk.server.answer import AnswerHead, WrittenAnswer, unreadable_call
from qwendesk.server.events import Comment, Frame, StreamEvent
from qwendesk.server.logprobs import chat_logprobs
from qwendesk.server.refusals import Refused, error_body

DONE = StreamEvent("[DONE]")
FINGERPRINT = f"qwendesk-{__version__}"
"""What OpenAI has to tell whether two answers with one seed can be compared."""
WAITING = Comment("no answer yet")


def finish_reason(answer: WrittenAnswer) -> str:
    """Return OpenAI's word for the end of an answer."""
    if answer.stop_reason in ("max_tokens", "context_full"):
        return "length"
    return "tool_calls" if answer.calls_tools else "stop"


def usage(stats: AnswerStats) -> dict[str, Any]:
    """Return the token counts of an answer, with those of llama-server's timings that clients show."""
    completion = stats.reasoning_tokens + stats.answer_tokens
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": stats.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": stats.reused_tokens},
        "completion_tokens_details": {"reasoning_tokens": stats.reasoning_tokens},
    }


def timings(stats: AnswerStats) -> dict[str, Any]:
    """Return the speeds as llama-server reports them."""
    completion = stats.reasoning_tokens + stats.answer_tokens
    return {
        "cache_n": stats.reused_tokens,
        "prompt_n": stats.reread_tokens,
        "prompt_ms": stats.prefill_s * 1000,
        "prompt_per_second": stats.reread_tokens / stats.prefill_s if stats.prefill_s else 0.0,
        "predicted_n": completion,
        "predicted_ms": stats.decode_s * 1000,
        "predicted_per_second": stats.decode_tok_s,
    }


def chat_body(head: AnswerHead, answer: WrittenAnswer) -> dict[str, Any]:
    """Return the body of an answer that isn't streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text if answer.text or not answer.calls else None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
            for call in answer.calls
        ]
    logprobs = chat_logprobs(head.question, answer.logprobs)
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish_reason(answer)}
    return {
        "id": f"chatcmpl-{head.key}",
        "object": "chat.completion",
        "created": head.created_s,
        "model": head.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [choice],
        "usage": usage(answer.stats),
        "timings": timings(answer.stats),
    }


class ChatWriter:
    """Writes one answer as chunks."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._begun_calls: set[int] = set()

    def begin(self) -> Iterator[Frame]:
        yield self._chunk({"role": "assistant", "content": ""})

    def write(self, item: AnswerItem) -> Iterator[Frame]:
        match item:
            case Delta(kind="reasoning", text=text):
                yield self._chunk({"reasoning_content": text})
            case Delta(text=text, logprobs=tokens):
                yield self._chunk({"content": text}, logprobs=chat_logprobs(self._head.question, tokens))
            case CallDelta(index=index, name=name, arguments=arguments):
                call: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
                if name:
                    self._begun_calls.add(index)
                    call |= {"id": self._head.call_id(index), "type": "function"}
                    call["function"] = {"name": name, "arguments": arguments}
                yield self._chunk({"tool_calls": [call]})
            case Called(call=None, is_finished=True) if item.index not in self._begun_calls:
                yield self._chunk({"content": unreadable_call(item)})

    def wait(self) -> Frame:
        return WAITING

    def end(self, answer: WrittenAnswer) -> Iterator[Frame]:
        yield self._chunk({}, finish_reason(answer))
        if self._head.question.include_usage:
            last = self._base() | {"choices": [], "usage": usage(answer.stats), "timings": timings(answer.stats)}
            yield StreamEvent(last)
        yield DONE

    def fail(self, refused: Refused) -> Iterable[Frame]:
        return (StreamEvent(error_body(refused, "openai")), DONE)

    def _base(self) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._head.key}",
            "object": "chat.completion.chunk",
            "created": self._head.created_s,
            "model": self._head.model,
            "system_fingerprint": FINGERPRINT,
        }

    def _chunk(
        self, delta: dict[str, Any], reason: str | None = None, logprobs: dict[str, Any] | None = None
    ) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return StreamEvent(self._base() | {"choices": [choice]})
