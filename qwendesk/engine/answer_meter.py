"""Measures the speed of prompt processing and generation while answers pass from an engine to their readers."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

from qwendesk.core.failures import EngineExit
from qwendesk.core.observed import Subscribers
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.contract import AnswerItem, AnswerStream
from qwendesk.engine.protocol import CallDelta, Delta, Finished, PromptProgress, RequestFailed

# The current decode speed is the average over this time.
_WINDOW_S = 2.0
# A shorter answer is not measured.
_FEWEST_TOKENS = 16
# The speed of prompt processing is not measured with fewer tokens.
_FEWEST_READ = 64


class AnswerMeter:
    """Tracks whether an answer is being generated, and how fast. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ticks: deque[tuple[float, int]] = deque()
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._finished = Subscribers[AnswerStats]()
        self.context_tokens = 0
        """Tokens in the context after the last answer; while a prompt is processed, its tokens so far."""
        self.prefill_tok_s: float | None = None
        """Last measured speed of prompt processing, in tokens per second."""
        self.last_tok_s: float | None = None
        """Decode speed of the last answer that was long enough, in tokens per second."""

    @property
    def is_answering(self) -> bool:
        return self._open > 0

    @property
    def decode_tok_s(self) -> float | None:
        """Current decode speed in tokens per second; None if no answer is being generated or it has only just begun."""
        now = self._clock()
        while self._ticks and now - self._ticks[0][0] > _WINDOW_S:
            self._ticks.popleft()
        if not self.is_answering or len(self._ticks) < 2:
            return None
        took = self._ticks[-1][0] - self._ticks[0][0]
        return (self._ticks[-1][1] - self._ticks[0][1]) / took if took > 0 else None

    def subscribe(self, callback: Callable[[AnswerStats], None]) -> Callable[[], None]:
        """Call `callback` with the figures of each finished answer, until the returned function is called."""
        return self._finished.add(callback)

    async def wait_until_idle(self) -> None:
        """Wait until no answer is being generated."""
        await self._idle.wait()

    def reset(self) -> None:
        """Forget the measurements of the previous model."""
        self.context_tokens, self.prefill_tok_s, self.last_tok_s = 0, None, None

    def note_start(self) -> None:
        self._open += 1
        self._ticks.clear()
        self._idle.clear()

    def note_end(self) -> None:
        self._open -= 1
        if not self._open:
            self._idle.set()

    def note(self, item: AnswerItem, written: int) -> None:
        """Update the measurements with an item of an answer that has `written` tokens so far."""
        match item:
            case Delta() | CallDelta():
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


class MeteredStream:
    """An answer that counts as running from the first request for an item until it ends or its reader stops."""

    def __init__(self, stream: AnswerStream, meter: AnswerMeter) -> None:
        self._stream, self._meter = stream, meter

    async def __aiter__(self) -> AsyncIterator[AnswerItem]:
        tokens: dict[str, int] = {}
        is_open = True
        self._meter.note_start()
        try:
            async for item in self._stream:
                if isinstance(item, Delta | CallDelta):
                    tokens[item.kind] = item.tokens
                self._meter.note(item, sum(tokens.values()))
                if isinstance(item, Finished | RequestFailed | EngineExit):
                    # Readers rarely ask for another item after the last one, so this generator would stay open.
                    is_open = False
                    self._meter.note_end()
                yield item
        finally:
            if is_open:
                self._meter.note_end()

    async def cancel(self) -> None:
        await self._stream.cancel()

    async def answer_now(self) -> None:
        await self._stream.answer_now()
