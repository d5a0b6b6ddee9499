"""The answers of the scripted engine: what they say, and the stream of their events."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from qwendesk.core.failures import EngineExit
from qwendesk.core.messages import ImagePart, Message, Part, ToolCall
from qwendesk.core.stats import AnswerStats, AnswerTiming, StopReason
from qwendesk.core.translation import tr
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import (
    CallDelta,
    Called,
    Delta,
    Finished,
    Generate,
    PromptProgress,
    Rendering,
    RequestFailed,
)
from qwendesk.engine.state import EngineEvent

PICTURE_TOKENS = 64
"""What every picture costs in `measure`, and in the stats of an answer."""


class Client(Protocol):
    """What a stream uses of the engine that plays it."""

    def is_loaded(self) -> bool: ...

    def publish(self, event: EngineEvent) -> None: ...

    def kill(self) -> EngineExit: ...

    async def pause(self, seconds: float, interrupt: asyncio.Event) -> None: ...


class ScriptedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to give, or the rest of one that was begun. Its thought is left out when a request does not ask for
    thinking.
    """

    reasoning: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls after the text; then the answer ends with "tool_calls"."""
    damaged_call: str = ""
    """What cannot be understood, in place of a call."""
    chunk: int = 1
    """Words per Delta; a word counts as one token."""
    tokens_per_second: float | None = None
    """None: as fast as the loop."""
    stop_reason: StopReason = "eos"
    reasoning_looped: bool = False
    timing: AnswerTiming = AnswerTiming()
    fail: RequestFailed | EngineExit | None = None
    """Ends the answer in place of Finished, after all its words."""
    crashes_after: int | None = None
    """The worker dies after that many Deltas."""


class FakeAnswerStream:
    """Plays one ScriptedAnswer."""

    def __init__(self, client: Client, request: Generate, script: ScriptedAnswer) -> None:
        self._client = client
        self._request = request
        self._script = script
        self._cancelled = self._answer_now = False
        self._interrupt = asyncio.Event()

    async def cancel(self) -> None:
        self._cancelled = True
        self._interrupt.set()

    async def answer_now(self) -> None:
        self._answer_now = True
        self._interrupt.set()

    async def __aiter__(self) -> AsyncIterator[AnswerItem]:
        """Play the answer. As with a real engine, it also ends if its reader stops."""
        has_ended = False
        try:
            async for item in self._play():
                has_ended = isinstance(item, Finished | RequestFailed | EngineExit)
                yield item
        finally:
            if not has_ended and self._client.is_loaded():
                self._client.publish(Finished(id=self._request.id, stop_reason="cancelled", stats=AnswerStats()))

    async def _play(self) -> AsyncIterator[AnswerItem]:
        id, client, script = self._request.id, self._client, self._script
        if not client.is_loaded():
            yield RequestFailed(id=id, title=tr("No model"), sentence=tr("No model is loaded."))
            return
        client.publish(Rendering(id=id))
        total = prompt_tokens(self._request.messages)
        for done in (0, total):
            progress = PromptProgress(id=id, done=done, total=total, reused=0)
            client.publish(progress)
            yield progress
        counts = {"reasoning": 0, "answer": 0}
        for number, (kind, text, tokens) in enumerate(self._pieces()):
            delay = tokens / script.tokens_per_second if script.tokens_per_second else 0.0
            if script.crashes_after is not None and number >= script.crashes_after:
                client.kill()
            await client.pause(delay, self._interrupt)
            if not client.is_loaded():
                yield EngineExit(
                    -9, "The engine stopped unexpectedly, probably because memory ran out.", ("last words",)
                )
                return
            if self._cancelled:
                break
            if kind == "reasoning" and self._answer_now:
                continue
            self._interrupt.clear()
            counts[kind] += tokens
            yield Delta(id=id, kind=kind, text=text, tokens=counts[kind])
        for event in () if self._cancelled else self._call_events():
            yield event
        yield self._last(total, counts["reasoning"], counts["answer"])

    def _pieces(self) -> Iterator[tuple[Literal["reasoning", "answer"], str, int]]:
        script = self._script
        if self._request.options.enable_thinking:
            yield from (("reasoning", text, tokens) for text, tokens in _in_chunks(script.reasoning, script.chunk))
        yield from (("answer", text, tokens) for text, tokens in _in_chunks(script.text, script.chunk))

    def _call_events(self) -> Iterator[AnswerItem]:
        for index, call in enumerate(self._script.calls):
            half = len(call.arguments_json) // 2
            for name, piece in ((call.name, call.arguments_json[:half]), ("", call.arguments_json[half:])):
                yield CallDelta(id=self._request.id, index=index, name=name, arguments=piece, tokens=1)
            yield Called(id=self._request.id, index=index, call=call, text=call.arguments_json, is_finished=True)
        if damaged := self._script.damaged_call:
            yield Called(id=self._request.id, index=0, call=None, text=damaged, is_finished=True)

    def _last(self, prompt: int, reasoning: int, answer: int) -> AnswerItem:
        if self._script.fail is not None and not self._cancelled:
            if isinstance(self._script.fail, EngineExit):
                self._client.kill()
            else:
                self._client.publish(self._script.fail)
            return self._script.fail
        pictures = sum(len(message.images) for message in self._request.messages)
        speed = self._script.tokens_per_second
        stats = AnswerStats(
            prompt_tokens=prompt, reread_tokens=prompt, image_tokens=pictures * PICTURE_TOKENS,
            reasoning_tokens=reasoning, answer_tokens=answer, reasoning_looped=self._script.reasoning_looped,
            timing=self._script.timing,
            ttft_s=0.2, prefill_s=0.2, decode_s=(reasoning + answer) / speed if speed else 1.0,
        )  # fmt: skip
        calls = self._script.calls or self._script.damaged_call
        planned: StopReason = "tool_calls" if calls else self._script.stop_reason
        reason: StopReason = "cancelled" if self._cancelled else planned
        finished = Finished(id=self._request.id, stop_reason=reason, stats=stats)
        self._client.publish(finished)
        return finished


def _in_chunks(text: str, words: int) -> Iterator[tuple[str, int]]:
    """`text` in pieces of that many words (white space stays with the word before it), each with its word count."""
    pieces = (match.group() for match in re.finditer(r"\s*\S+\s*|\s+", text))
    while group := list(itertools.islice(pieces, words)):
        yield "".join(group), len(group)


def part_tokens(part: Part) -> int:
    return PICTURE_TOKENS if isinstance(part, ImagePart) else len(part.text.split())


def prompt_tokens(messages: Sequence[Message], *, thoughts: bool = False) -> int:
    thought = sum(len(each.reasoning.split()) for each in messages) if thoughts else 0
    return thought + sum(len(each.text.split()) + len(each.images) * PICTURE_TOKENS + 4 for each in messages)
