"""Writes answers as OpenAI's completions."""

from collections.abc import Iterable, Iterator
from typing import Any

from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import Delta
from qwendesk.server.answer import AnswerHead, WrittenAnswer
from qwendesk.server.chat_events import DONE, WAITING, finish_reason, timings, usage
from qwendesk.server.events import Frame, StreamEvent
from qwendesk.server.logprobs import completion_logprobs
from qwendesk.server.refusals import Refused, error_body


def completions_body(head: AnswerHead, answer: WrittenAnswer) -> dict[str, Any]:
    """Return the body of an answer that isn't streamed."""
    logprobs = completion_logprobs(head.question, answer.logprobs)
    choice = _choice(answer.reasoning + answer.text, finish_reason(answer), logprobs)
    return _base(head) | {"choices": [choice], "usage": usage(answer.stats), "timings": timings(answer.stats)}


class CompletionsWriter:
    """Writes one answer as chunks."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._n_characters = 0

    def begin(self) -> Iterable[Frame]:
        return ()

    def write(self, item: AnswerItem) -> Iterator[Frame]:
        if isinstance(item, Delta):
            logprobs = completion_logprobs(self._head.question, item.logprobs, self._n_characters)
            self._n_characters += len(item.text)
            yield StreamEvent(_base(self._head) | {"choices": [_choice(item.text, None, logprobs)]})

    def wait(self) -> Frame:
        return WAITING

    def end(self, answer: WrittenAnswer) -> Iterator[Frame]:
        last = _base(self._head) | {"choices": [_choice("", finish_reason(answer))]}
        yield StreamEvent(last)
        if self._head.question.include_usage:
            yield StreamEvent(_base(self._head) | {"choices": [], "usage": usage(answer.stats)})
        yield DONE

    def fail(self, refused: Refused) -> Iterable[Frame]:
        return (StreamEvent(error_body(refused, "openai")), DONE)


def _base(head: AnswerHead) -> dict[str, Any]:
    return {"id": f"cmpl-{head.key}", "object": "text_completion", "created": head.created_s, "model": head.model}


def _choice(text: str, reason: str | None, logprobs: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": reason}
