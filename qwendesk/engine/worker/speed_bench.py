"""Measure the speed of the loaded model as llama-bench does: tokens per second, with some tokens in memory before.

The tokens before are the same in every test, so the prompt cache brings the memory back to a depth, and a deeper test
goes on from there.
"""

import time
from collections.abc import Callable, Sequence

import llama_cpp.llama_cpp as C
import numpy as np

from qwendesk.core.benchmarks import SpeedSamples, SpeedTest
from qwendesk.core.errors import BadRequest
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import Bench, Benched, BenchProgress, Event
from qwendesk.engine.worker.decoder import Decoder
from qwendesk.engine.worker.drafts import OpenGate
from qwendesk.engine.worker.engine_calls import Aborted
from qwendesk.engine.worker.generate import drafter_of
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.sampling import Sampler

_SEED = 1


def bench(session: Session, request: Bench, send: Callable[[Event], None], is_cancelled: Callable[[], bool]) -> Benched:
    """Measure a test. Raise BadRequest if it does not fit in the context, or if it was cancelled."""

    def show(done: int, total: int) -> None:
        send(BenchProgress(id=request.id, done=done, total=total))

    assert isinstance(request.test, SpeedTest), "texts are scored by text_score.py"
    run = _BenchRun(session, request.test, show, is_cancelled)
    try:
        return Benched(id=request.id, result=run.measure())
    except (Aborted, BenchCancelled):
        session.cache.mark_inconsistent()
        raise cancelled() from None


class BenchCancelled(Exception):
    """The measurement is not wanted any more."""


def cancelled() -> BadRequest:
    """Return the error of a measurement that was stopped."""
    return BadRequest(mark("Cancelled"), mark("The measurement was stopped."))


class _BenchRun:
    def __init__(
        self,
        session: Session,
        test: SpeedTest,
        show: Callable[[int, int], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._session, self._test = session, test
        self._show, self._is_cancelled = show, is_cancelled
        self._text = session.model.tokenize(test.text, special=True) if test.text else []
        n_after = len(self._text) + test.n_gen if test.text else test.n_timed
        needed, n_ctx = test.depth + n_after, session.model.n_ctx
        if not test.n_timed or test.repeats < 1:
            raise BadRequest(mark("Nothing to measure"), mark("A test needs tokens to process or to decode."))
        if needed > n_ctx:
            raise BadRequest(
                mark("Context too short"), mark("This test needs {0} tokens, and the context has {1}."), needed, n_ctx
            )
        self._tokens: list[int] = np.random.default_rng(_SEED).integers(0, session.model.n_vocab, needed).tolist()
        """All tokens of a repetition: those before the test, and those that it processes or decodes."""
        self._tokens[test.depth : test.depth + len(self._text)] = self._text
        self._done, self._total = 0, test.repeats * test.n_timed

    def measure(self) -> SpeedSamples:
        test = self._test
        self._session.states.switch_to("", ())
        self._go_to_depth()
        self._warm_up()
        speeds: list[float] = []
        drafted = accepted = 0
        for _ in range(test.repeats):
            self._go_to_depth()
            if test.text:
                seconds, decoder = self._answer()
                drafted, accepted = drafted + decoder.drafted, accepted + decoder.accepted
            else:
                seconds = self._evaluate(self._tokens[test.depth :][: test.n_prompt], test.n_gen)
            speeds.append(test.n_timed / seconds)
            self._note_done(test.n_timed)
        return SpeedSamples(tok_s=tuple(speeds), drafted=drafted, accepted=accepted)

    def _go_to_depth(self) -> None:
        """Make the memory hold exactly the tokens before the test, and take all threads."""
        self._session.threads.use()
        depth, cache = self._test.depth, self._session.cache
        if self._session.model.head is not None:
            self._session.model.head.is_fed = True
        start = cache.roll_back(self._tokens[: depth + 1]).start
        self._total += depth - start
        for piece in self._pieces(self._tokens[start:depth]):
            self._session.model.decode(piece, cache.position, rows=0)
            cache.append(*piece)
            self._note_done(len(piece))
        cache.save(pinned=True)

    def _warm_up(self) -> None:
        """Evaluate a little that is not timed: GPU engines compile their shaders now."""
        self._evaluate(self._tokens[self._test.depth :][: min(self._test.n_prompt, self._session.model.n_ubatch)], 1)

    def _evaluate(self, prompt: Sequence[int], n_gen: int) -> float:
        """Process a prompt, then decode tokens one by one. Return how many seconds that took."""
        model, cache = self._session.model, self._session.cache
        first = self._test.depth + len(prompt)
        generated = self._tokens[first : first + n_gen]
        position = cache.position
        started = time.perf_counter()
        for piece in self._pieces(prompt):
            model.decode(piece, position)
            position += len(piece)
        C.llama_synchronize(model.ctx)
        if model.head is not None:
            model.head.is_fed = False  # as in an answer that nothing is drafted for
        for token in generated:
            self._stop_if_cancelled()
            model.decode((token,), position)
            C.llama_synchronize(model.ctx)
            position += 1
        seconds = time.perf_counter() - started
        cache.append(*prompt, *generated)
        return seconds

    def _answer(self) -> tuple[float, Decoder]:
        """Answer the text with the likeliest tokens. Return how many seconds the decoding took, and the drafts."""
        session, n_gen = self._session, self._test.n_gen
        decoder = Decoder(session.model, session.cache, gate := OpenGate())
        if session.report.n_draft_max:
            context = self._tokens[: self._test.depth + len(self._text)]
            decoder.draft_with(drafter_of(session, context, gate), session.report.n_draft_max)
        ends = (token for token in session.vocabulary.control.values() if session.model.is_end(token))
        options = GenerationOptions(
            temperature=0.0, presence_penalty=0.0, logit_bias=tuple(f"{token}=-inf" for token in ends)
        )
        sampler = Sampler(session.model, options)
        try:
            for piece in self._pieces(self._text):
                decoder.decode(piece)
            started = time.perf_counter()
            for left in range(n_gen - 1, -1, -1):
                self._stop_if_cancelled()
                decoder.advance(sampler.next(decoder.row), left)
            C.llama_synchronize(session.model.ctx)
            seconds = time.perf_counter() - started
            decoder.discard_drafts()
        finally:
            sampler.close()
        return seconds, decoder

    def _pieces(self, tokens: Sequence[int]) -> Sequence[Sequence[int]]:
        n_ubatch = self._session.model.n_ubatch
        return [tokens[first : first + n_ubatch] for first in range(0, len(tokens), n_ubatch)]

    def _note_done(self, n_tokens: int) -> None:
        self._stop_if_cancelled()
        self._done += n_tokens
        self._show(self._done, self._total)

    def _stop_if_cancelled(self) -> None:
        if self._is_cancelled():
            raise BenchCancelled
