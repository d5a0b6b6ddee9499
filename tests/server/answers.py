"""Answers of an engine, written down, and what the writers of the APIs make of them."""

from collections.abc import Iterator, Sequence
from typing import Any

from qwendesk.core.messages import ToolCall
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import CallDelta, Called, Delta, Finished, PromptProgress
from qwendesk.server.answer import AnswerCollector, AnswerHead, EventWriter, StreamEvent, WrittenAnswer
from qwendesk.server.question import Question

STATS = AnswerStats(
    prompt_tokens=100,
    reused_tokens=90,
    reread_tokens=10,
    reasoning_tokens=3,
    answer_tokens=4,
    prefill_s=0.5,
    decode_s=2.0,
)
PROGRESS = PromptProgress(id=1, done=90, total=100, reused=90)


def head(**question: Any) -> AnswerHead:
    return AnswerHead("k", "model-a", 1_700_000_000, Question(**question))


def said(kind: Any, *texts: str) -> Iterator[AnswerItem]:
    return (Delta(id=1, kind=kind, text=text, tokens=1) for text in texts)


def call(index: int, name: str, *pieces: str, is_finished: bool = True) -> Iterator[AnswerItem]:
    for number, piece in enumerate(pieces):
        yield CallDelta(id=1, index=index, name="" if number else name, arguments=piece, tokens=1)
    whole = ToolCall(name, "".join(pieces)) if is_finished else None
    yield Called(id=1, index=index, call=whole, text="".join(pieces), is_finished=is_finished)


def unreadable(index: int, text: str) -> AnswerItem:
    return Called(id=1, index=index, call=None, text=text, is_finished=True)


def end(reason: StopReason, stop_text: str = "") -> AnswerItem:
    return Finished(id=1, stop_reason=reason, stats=STATS, stop_text=stop_text)


def whole(of: AnswerHead, items: Sequence[AnswerItem]) -> WrittenAnswer:
    collector = AnswerCollector(of)
    for item in items:
        collector.take(item)
    return collector.answer()


def streamed(writer: EventWriter, of: AnswerHead, items: Sequence[AnswerItem]) -> list[StreamEvent]:
    """Everything that a client gets, but comments."""
    frames = [*writer.begin()]
    for item in items[:-1]:
        frames += writer.write(item)
    frames += writer.end(whole(of, items))
    return [frame for frame in frames if isinstance(frame, StreamEvent)]


def objects(events: Sequence[StreamEvent]) -> list[dict[str, Any]]:
    return [event.data for event in events if isinstance(event.data, dict)]


THOUGHT_AND_CALLS: tuple[AnswerItem, ...] = (
    *said("reasoning", "Let me", " look."),
    *said("answer", "Looking", " now."),
    *call(0, "read", '{"path":', ' "a"}'),
    *call(1, "list", "{}"),
    end("tool_calls"),
)
CUT_OFF: tuple[AnswerItem, ...] = (
    *said("answer", "Now:"),
    *call(0, "read", '{"pa', is_finished=False),
    end("max_tokens"),
)
