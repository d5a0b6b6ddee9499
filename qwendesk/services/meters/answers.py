"""How fast answers are read and written, counted as they pass from the engine client to whoever asked."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import msgspec

from qwendesk.core.failures import EngineDeath
from qwendesk.core.stats import AnswerStats
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.contract import AnswerItem, AnswerStream, EngineClient
from qwendesk.engine.protocol import Delta, Finished, PromptProgress, RequestFailed

_WINDOW_S = 2.0
"""The speed now is that of the last seconds."""
_FEWEST_TOKENS = 16
"""An answer shorter than this tells no speed."""
_FEWEST_READ = 64


class AnswerMeter:
    """Knows whether an answer is being made and how fast. `clock` returns seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ticks: deque[tuple[float, int]] = deque()
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._finished = Subscribers[AnswerStats]()
        self.context_tokens = 0
        """In the engine's memory after the last answer."""
        self.prefill_tok_s: float | None = None
        """Speed of reading, as last measured."""
        self.last_tok_s: float | None = None
        """Decode speed of the last answer that was long enough."""

    @property
    def answering(self) -> bool:
        return self._open > 0

    @property
    def decode_tok_s(self) -> float | None:
        """Tokens per second now; None while nothing is written, or not for long enough."""
        now = self._clock()
        while self._ticks and now - self._ticks[0][0] > _WINDOW_S:
            self._ticks.popleft()
        if not self.answering or len(self._ticks) < 2:
            return None
        took = self._ticks[-1][0] - self._ticks[0][0]
        return (self._ticks[-1][1] - self._ticks[0][1]) / took if took > 0 else None

    def subscribe(self, callback: Callable[[AnswerStats], None]) -> Callable[[], None]:
        """Call `callback` with the figures of each answer that ends. Returns what ends it."""
        return self._finished.add(callback)

    async def idle(self) -> None:
        """Wait until no answer is being made."""
        await self._idle.wait()

    def reset(self) -> None:
        """Another model is loaded: nothing of the last one holds."""
        self.context_tokens, self.prefill_tok_s, self.last_tok_s = 0, None, None

    def began(self) -> None:
        self._open += 1
        self._ticks.clear()
        self._idle.clear()

    def ended(self) -> None:
        self._open -= 1
        if not self._open:
            self._idle.set()

    def note(self, item: AnswerItem, written: int) -> None:
        """One item of an answer of which `written` tokens have come."""
        match item:
            case Delta():
                self._ticks.append((self._clock(), written))
            case PromptProgress(done=done):
                self.context_tokens = done
            case Finished(stats=stats):
                self._note_stats(stats)

    def _note_stats(self, stats: AnswerStats) -> None:
        self.context_tokens = stats.prompt_tokens + stats.reasoning_tokens + stats.answer_tokens
        if stats.reread_tokens >= _FEWEST_READ and stats.prefill_s > 0:
            self.prefill_tok_s = stats.reread_tokens / stats.prefill_s
        if stats.reasoning_tokens + stats.answer_tokens >= _FEWEST_TOKENS and stats.decode_tok_s > 0:
            self.last_tok_s = stats.decode_tok_s
        self._finished.notify(stats)


def counted(client: EngineClient, meter: AnswerMeter) -> EngineClient:
    """`client` with its answers counted by `meter`; everything else passes through as it is."""
    return cast(EngineClient, _CountedClient(client, meter))


class _CountedClient:
    def __init__(self, client: EngineClient, meter: AnswerMeter) -> None:
        self._client, self._meter = client, meter

    def generate(self, *arguments: Any, **named: Any) -> AnswerStream:
        return _CountedStream(self._client.generate(*arguments, **named), self._meter)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class _CountedStream:
    """The answer is open from the first look at it until its end, or until whoever read it lets go."""

    def __init__(self, stream: AnswerStream, meter: AnswerMeter) -> None:
        self._stream, self._meter = stream, meter

    async def __aiter__(self) -> AsyncIterator[AnswerItem]:
        written, is_open = _Written(), True
        self._meter.began()
        try:
            async for item in self._stream:
                written = written.after(item)
                self._meter.note(item, written.total)
                if isinstance(item, Finished | RequestFailed | EngineDeath):
                    # Who has the last item seldom asks for one more, and this generator would stay open until then.
                    is_open = False
                    self._meter.ended()
                yield item
        finally:
            if is_open:
                self._meter.ended()

    async def cancel(self) -> None:
        await self._stream.cancel()

    async def answer_now(self) -> None:
        await self._stream.answer_now()


class _Written(msgspec.Struct, frozen=True):
    """Tokens so far: each kind counts its own from the beginning."""

    reasoning: int = 0
    answer: int = 0

    @property
    def total(self) -> int:
        return self.reasoning + self.answer

    def after(self, item: AnswerItem) -> "_Written":
        if not isinstance(item, Delta):
            return self
        return msgspec.structs.replace(self, **{item.kind: item.tokens})
