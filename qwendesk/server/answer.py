"""An answer as it comes from the engine, put together for the APIs and turned into events of a stream."""

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from qwendesk.core.messages import Message, TextPart, ToolCall
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import AnswerToken, CallDelta, Called, Delta, Finished, PromptProgress
from qwendesk.server.question import ClientMessage, Question
from qwendesk.server.refusals import Refused


class AnswerHead(msgspec.Struct, frozen=True):
    """The facts about an answer that are known before it begins."""

    key: str
    """A random name, in which the ids of the answer and of its calls begin."""
    model: str
    created_s: int
    """Seconds since 1970."""
    question: Question

    def call_id(self, index: int) -> str:
        return f"call_{self.key}{index:02d}"

    @staticmethod
    def new(question: Question, model: str, clock: Callable[[], float] = time.time) -> "AnswerHead":
        return AnswerHead(secrets.token_hex(12), model, int(clock()), question)


class WrittenCall(msgspec.Struct, frozen=True):
    id: str
    name: str
    arguments_json: str


class WrittenAnswer(msgspec.Struct, frozen=True):
    """An answer that has ended."""

    reasoning: str
    text: str
    calls: tuple[WrittenCall, ...]
    stop_reason: StopReason
    stats: AnswerStats
    stop_text: str = ""
    """The stop text that ended it; "" if none did."""
    logprobs: tuple[AnswerToken, ...] = ()
    """Those of the tokens of the text, if the client asked for them."""

    @property
    def calls_tools(self) -> bool:
        """Whether the client has to run calls before the answer goes on."""
        return bool(self.calls) and self.stop_reason == "tool_calls"

    @property
    def as_message(self) -> ClientMessage:
        """The answer as the client sends it with its next request."""
        calls = tuple(ToolCall(call.name, call.arguments_json) for call in self.calls)
        parts = (TextPart(self.text),) if self.text else ()
        written = Message("assistant", parts, reasoning=self.reasoning, tool_calls=calls)
        return ClientMessage(written, call_ids=tuple(call.id for call in self.calls))


class AnswerCollector:
    """Takes the items of an answer in order."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._texts: dict[str, list[str]] = {"reasoning": [], "answer": []}
        self._names: dict[int, str] = {}
        self._arguments: dict[int, list[str]] = {}
        self._calls: list[WrittenCall] = []
        self._logprobs: list[AnswerToken] = []
        self._finished: Finished | None = None
        self.progress: PromptProgress | None = None
        """How far the prompt is processed; None before it is known."""

    def take(self, item: AnswerItem) -> None:
        match item:
            case PromptProgress():
                self.progress = item
            case Delta(kind=kind, text=text, logprobs=logprobs):
                self._texts[kind].append(text)
                self._logprobs += logprobs
            case CallDelta(index=index, name=name, arguments=arguments):
                self._names.setdefault(index, name)
                self._arguments.setdefault(index, []).append(arguments)
            case Called():
                self._end_call(item)
            case Finished():
                self._finished = item

    def answer(self) -> WrittenAnswer:
        """Return the whole answer. Call this after its Finished."""
        assert self._finished is not None, "the answer has ended"
        reason = self._finished.stop_reason
        return WrittenAnswer(
            "".join(self._texts["reasoning"]),
            "".join(self._texts["answer"]),
            tuple(self._calls),
            "eos" if reason == "tool_calls" and not self._calls else reason,
            self._finished.stats,
            self._finished.stop_text,
            tuple(self._logprobs),
        )

    def _end_call(self, called: Called) -> None:
        if not called.is_finished:
            return  # the answer was cut off within it, which its stop reason says
        index, call = called.index, called.call
        if call is not None:
            self._calls.append(WrittenCall(self._head.call_id(index), call.name, call.arguments_json))
        elif self._names.get(index):
            arguments = "".join(self._arguments[index])
            self._calls.append(WrittenCall(self._head.call_id(index), self._names[index], arguments))
        else:
            self._texts["answer"].append(unreadable_call(called))


def unreadable_call(called: Called) -> str:
    """Return a call that can't be understood as the text that the model wrote."""
    return f"<tool_call>{called.text}</tool_call>"


class StreamEvent(msgspec.Struct, frozen=True):
    """A server-sent event. A text as data is sent as it is; `name` is its event field."""

    data: dict[str, Any] | str
    name: str = ""

    def encoded(self) -> bytes:
        head = f"event: {self.name}\n".encode() if self.name else b""
        data = self.data.encode() if isinstance(self.data, str) else msgspec.json.encode(self.data)
        return b"%sdata: %s\n\n" % (head, data)


class Comment(msgspec.Struct, frozen=True):
    """A line that clients ignore, which keeps the connection from looking dead."""

    text: str

    def encoded(self) -> bytes:
        return f": {self.text}\n\n".encode()


Frame = StreamEvent | Comment


class EventWriter(Protocol):
    """Writes one answer as the stream of an API. Pure: it sends nothing."""

    def begin(self) -> Iterable[Frame]:
        """Return the events before the first item."""

    def write(self, item: AnswerItem) -> Iterable[Frame]:
        """Return the events for an item that is neither the last one nor PromptProgress."""

    def wait(self) -> Frame:
        """Return what is sent from time to time while the client waits for the next item."""

    def end(self, answer: WrittenAnswer) -> Iterable[Frame]:
        """Return the last events."""

    def fail(self, refused: Refused) -> Iterable[Frame]:
        """Return the last events of an answer that failed after the stream had begun."""
