"""OpenAI's completions: a text that the model continues, without a chat."""

from collections.abc import Iterable, Iterator
from typing import Any

from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import Delta
from qwendesk.server.answer import AnswerHead, Frame, StreamEvent, WrittenAnswer
from qwendesk.server.chat_completions import (
    DONE,
    WAITING,
    check_n_logprobs,
    completion_logprobs,
    finish_reason,
    refuse_unsupported,
    timings,
    usage,
)
from qwendesk.server.fields import Fields
from qwendesk.server.question import Question
from qwendesk.server.refusals import Refused, error_body
from qwendesk.server.sampling_fields import read_sampling, read_stop_texts


def read_completions_request(body: Fields) -> Question:
    """Return the question. Raise Refused for what is wrong or can't be done."""
    refuse_unsupported(body)
    if body.text("suffix"):
        raise body.refuse("suffix", "suffix can't be used. Send a prompt with the model's own tokens for filling in.")
    if body.flag("echo"):
        raise body.refuse("echo", "The prompt can't be echoed. Leave echo out.")
    body.required("prompt")
    prompts = body.texts("prompt")
    if len(prompts) != 1 or not prompts[0]:
        raise body.refuse("prompt", "prompt must be one text that is not empty.")
    changes = read_sampling(body, "max_tokens", "n_predict") | read_stop_texts(body, "stop")
    return Question(
        prompt=prompts[0],
        model=body.text("model"),
        thinking=False,
        changes=changes,
        n_logprobs=check_n_logprobs(body, "logprobs") if body.has("logprobs") else -1,
        stream=body.flag("stream"),
        include_usage=body.object("stream_options").flag("include_usage"),
    )


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
