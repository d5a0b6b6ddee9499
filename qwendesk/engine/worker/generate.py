"""Serve one turn: build the prompt from the conversation, process it (ahead too, while nothing is asked), and generate
the answer.

How much of it is certain is found by asking for the prompt twice, with different questions at its end: what both begin
with will be in the next prompt too. Only whole batches of it are processed, which end where those of the real prompt
end (layout.py), so an answer is the same with and without.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import Message, TextPart, text_message
from qwendesk.core.stats import AnswerStats, AnswerTiming, StopReason
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import (
    AnswerToken,
    Begun,
    Event,
    Finished,
    Generate,
    PromptProgress,
    RequestFailed,
    WaitsFor,
    Warm,
    Warmed,
)
from qwendesk.engine.worker.cache import Item, common_prefix_length
from qwendesk.engine.worker.call_grammar import tools_and_grammar
from qwendesk.engine.worker.control import RequestControl
from qwendesk.engine.worker.decoder import Decoder, Drafter
from qwendesk.engine.worker.drafts import DraftGate, LookupDrafter, MtpDrafter
from qwendesk.engine.worker.drive_reads import drive_bytes
from qwendesk.engine.worker.engine_calls import Aborted
from qwendesk.engine.worker.layout import DecodeStep, Layout
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.repetition import LoopWatch
from qwendesk.engine.worker.request_layout import Send, fit_to_context, layout_of
from qwendesk.engine.worker.sampling import STUCK, Sampler, ended_if_stuck
from qwendesk.engine.worker.threads import ThreadsOfAnswer
from qwendesk.engine.worker.tools import CallableTool, read_tools
from qwendesk.engine.worker.writer import CallWriter, Writer
from qwendesk.engine.worker.written_answers import InterruptedAnswer

ResultT = TypeVar("ResultT")
# Yields where it can be interrupted, and returns its result.
Steps: TypeAlias = Generator[None, None, ResultT]

# Stop reasons of complete answers; all other answers can be continued.
_FINAL = ("eos", "stop_string", "tool_calls")

# What templates write between reasoning and a call.
_REASONING_END = "\n</think>\n\n"
# What `must_call` says if any tool will do.
_ANY_TOOL = "*"
# In one answer, where several are allowed.
_MOST_CALLS = 32


class Stopped(Exception):
    """The answer ends here, for `reason`."""

    def __init__(self, reason: StopReason) -> None:
        self.reason: StopReason = reason


class Generation:
    """Serves one Generate request on a session, in `steps` between which it can be interrupted.

    `between_steps` is called between two batches of the prompt and between two tokens, for small tasks of the caller.
    """

    def __init__(
        self,
        session: Session,
        request: Generate,
        control: RequestControl,
        send: Send,
        between_steps: Callable[[], None],
    ) -> None:
        self._session, self._request, self._options = session, request, request.options
        self._memory = session.memory_of(request.client)
        self._control, self._send, self._between_steps = control, send, between_steps
        self._decoder = Decoder(session.model, session.cache, session.gate)
        self._threads = ThreadsOfAnswer(session.threads, request.options)
        self._loops = LoopWatch(request.options)
        self._tools, self._call_grammar = self._callable_tools()
        self._marks = session.turn_marks(request.options)
        self._turn_tokens = frozenset(map(session.special, self._marks.needs if self._marks else ()))
        self._markers = session.marker_ids() if self._tools else frozenset()
        # Both move by the time for which the answer was interrupted.
        self._started, self._first_token_at = time.monotonic(), 0.0
        self._sampling_s, self._drive_bytes = 0.0, drive_bytes()
        self._stats = AnswerStats(is_follow_up=any(each.role == "assistant" for each in request.messages))
        self._stop_text = ""

    def steps(self) -> Steps[Finished]:
        """Generate the answer and return its Finished event. Raise BadRequest if the request cannot be served.

        Wherever this yields, the answer can be interrupted: call `settle`, keep a copy of the memory, and put that back
        before the next step. Throw Stopped or a QwenDeskError to end an answer that is interrupted.
        """
        sampler = Sampler(self._session.model, self._options)
        try:
            has_grammar = sampler.has_grammar or bool(self._tools)
            with ended_if_stuck(sampler.stuck_s, self._report_stuck) if has_grammar else contextlib.nullcontext():
                reason = yield from self._serve(sampler)
        finally:
            sampler.close()
        return Finished(id=self._request.id, stop_reason=reason, stats=self._stats, stop_text=self._stop_text)

    def settle(self) -> None:
        """Take back the drafts that weren't drawn, so that the memory holds only what belongs to the answer."""
        self._decoder.discard_drafts()

    def waited_for_by(self, request_id: int) -> WaitsFor:
        """Return what another request is told that waits for this answer."""
        return WaitsFor(
            id=request_id,
            program=self._request.program,
            done=self._session.cache.n_cells,
            prompt_tokens=self._stats.prompt_tokens,
            max_tokens=self._options.max_tokens,
        )

    def _pause(self) -> Steps[None]:
        """Where the answer can be interrupted."""
        left_at = time.monotonic()
        try:
            yield
        finally:  # also where it ends here
            away_s = time.monotonic() - left_at
            self._started += away_s
            self._first_token_at += away_s if self._first_token_at else 0.0
        self._threads.resume()
        if self._session.model.head is not None:
            # As this answer's drafter left it, whatever another answer wanted meanwhile.
            self._session.model.head.is_fed = True

    def _report_stuck(self) -> None:
        title, sentence, *values = STUCK
        self._send(RequestFailed(id=self._request.id, title=title, sentence=sentence, values=tuple(map(str, values))))

    def _serve(self, sampler: Sampler) -> Steps[StopReason]:
        layout, dropped = fit_to_context(self._session, self._request, self._send)
        self._update_stats(prompt_tokens=layout.n_tokens, image_tokens=layout.image_tokens, dropped_messages=dropped)
        if layout.n_tokens >= self._session.model.n_ctx:
            return "context_full"
        if self._session.report.n_draft_max:
            drafter = drafter_of(self._session, layout.items, self._session.gate)
            self._decoder.draft_with(drafter, self._session.report.n_draft_max)
        writer = Writer(
            self._session, self._options, self._request.id, self._send,
            in_reasoning=layout.opens_reasoning, loops=self._loops,
            calls=CallWriter(self._tools, self._request.id, self._send) if self._tools else None,
            marks=self._marks,
        )  # fmt: skip
        writer.replay(layout.begun, lambda token, is_answer: sampler.replay(token, by_grammar=is_answer))
        reason = yield from self._prefill_and_generate(sampler, layout, writer)
        if reason == "tool_calls":
            prompt = layout.items[: len(layout.items) - len(layout.begun)]
            self._memory.written.remember(prompt, writer.tokens, self._session.spelling)
        if reason not in _FINAL and not writer.n_calls:
            self._remember(writer, opens_reasoning=layout.opens_reasoning)
        return reason

    def _prefill_and_generate(self, sampler: Sampler, layout: Layout, writer: Writer) -> Steps[StopReason]:
        try:
            yield from self._prefill(layout)
            self._update_stats(prefill_s=time.monotonic() - self._started)
            self._regenerate_last_word(sampler, writer, layout.last_word)
            self._loops.forget_loops()
            yield from self._generate(sampler, writer)
        except Aborted:
            self._session.cache.mark_inconsistent()
            return "cancelled"
        except Stopped as stop:
            return stop.reason
        raise AssertionError("generation ends with a reason")

    def _remember(self, writer: Writer, *, opens_reasoning: bool) -> None:
        """Keep the tokens of an answer that can be continued."""
        before, new = self._request.begun or Begun(), writer.sent
        seen = Begun(before.reasoning + new.reasoning, before.text + new.text)
        if not seen.is_empty:
            self._memory.recent.remember(seen, InterruptedAnswer(tuple(writer.tokens), opens_reasoning))

    def _prefill(self, layout: Layout) -> Steps[None]:
        cache, request = self._session.cache, self._request
        if self._options.cache_prompt:
            self._session.states.switch_to(request.chat, layout.items, request.state_file, client=request.client)
        else:
            self._session.states.switch_to(request.chat, (), client=request.client)
            cache.clear()
        rollback = cache.roll_back(layout.items)
        reused, total = cache.n_cells, layout.n_tokens
        self._update_stats(reused_tokens=reused, reread_tokens=total - reused, cache_note=rollback.note)
        progress = PromptProgress(id=self._request.id, done=cache.n_cells, total=total, reused=reused)
        self._send(progress)
        for step in layout.steps(rollback.start, self._session.model.n_ubatch):
            self._between_steps()
            self._threads.follow()
            yield from self._pause()
            if self._control.cancelled:
                raise Stopped("cancelled")
            if step.image_chunk is not None:
                self._send(msgspec.structs.replace(progress, encodes_image=True))
            process(self._session, step, rows=int(step.is_last))
            progress = msgspec.structs.replace(progress, done=cache.n_cells)
            self._send(progress)

    def _regenerate_last_word(self, sampler: Sampler, writer: Writer, last_word: str) -> None:
        """Generate the last word of the partial answer again, from the likeliest tokens that spell it.

        The last of these tokens may continue after the word.
        """
        remaining, markers = last_word.encode(), self._session.marker_ids() if last_word else frozenset()
        while remaining:
            if self._control.cancelled:
                raise Stopped("cancelled")
            if self._cells_left() < 1:
                raise Stopped("context_full")
            token = sampler.likeliest_token_for(remaining, markers)
            sampler.replay(token, by_grammar=not writer.in_reasoning)
            writer.rewrite(token, last_word)
            remaining = remaining[len(self._session.model.piece(token)) :]
            self._decoder.advance(token, 0)

    def _generate(self, sampler: Sampler, writer: Writer) -> Steps[None]:
        session, options = self._session, self._options
        can_continue, engine_s = False, self._decoder.engine_s
        try:
            while True:
                self._between_steps()
                if self._control.cancelled and not self._first_token_at:
                    raise Stopped("cancelled")
                if writer.in_reasoning:
                    self._end_reasoning_if_due(writer)
                token = self._timed_sample(sampler, writer)
                self._threads.follow()
                if self._must_begin_call(token, writer):
                    token = session.call_tags[0]  # type: ignore[index]
                if not self._first_token_at:
                    self._first_token_at, engine_s = time.monotonic(), self._decoder.engine_s
                    self._update_stats(ttft_s=self._first_token_at - self._started)
                if session.model.is_end(token) or token in self._turn_tokens:
                    if not writer.in_reasoning:
                        raise Stopped("tool_calls" if writer.n_calls or writer.in_call else "eos")
                    # Some models end their text inside the reasoning. Treat it as a budget that is used up.
                    self._end_reasoning(writer)
                    continue
                if writer.in_reasoning and self._begins_call(token):
                    self._end_reasoning(writer, _REASONING_END)
                was_in_call = writer.in_call
                if writer.write(token, self._logprobs(sampler, token)):
                    self._stop_text = writer.stop_text
                    raise Stopped("stop_string" if self._stop_text else "eos")
                if was_in_call and not writer.in_call and not self._may_call_again(writer):
                    raise Stopped("tool_calls")
                if self._begins_call(token):
                    sampler.begin_call(self._call_grammar)
                # The last token is sent but not decoded yet: continuing the answer decodes it, and nothing else.
                if self._control.cancelled:
                    raise Stopped("cancelled")
                if not writer.in_reasoning and self._loops.is_in_loop("answer"):
                    raise Stopped("repetition")
                if 0 <= options.max_tokens <= writer.reasoning_tokens + writer.answer_tokens:
                    raise Stopped("max_tokens")
                if self._cells_left() < 1:
                    raise Stopped("context_full")
                n_written = writer.reasoning_tokens + writer.answer_tokens
                left = options.max_tokens - n_written - 1 if options.max_tokens >= 0 else self._cells_left()
                if not self._decoder.is_drafted(token):
                    yield from self._pause()
                self._decoder.advance(token, min(left, self._cells_left() - 1))
        except (Stopped, Aborted) as end:
            can_continue = not isinstance(end, Stopped) or end.reason not in _FINAL
            raise
        finally:
            writer.finish(can_continue=can_continue)
            self._decoder.discard_drafts()
            self._update_stats(
                drafted_tokens=self._decoder.drafted,
                accepted_tokens=self._decoder.accepted,
                draft_speedup=self._session.gate.measured_speedup,
                n_threads=self._threads.fewest,
                most_threads=self._session.threads.most,
                reasoning_tokens=writer.reasoning_tokens,
                answer_tokens=writer.answer_tokens,
                decode_s=time.monotonic() - self._first_token_at if self._first_token_at else 0.0,
                timing=AnswerTiming(
                    engine_s=self._decoder.engine_s - engine_s,
                    sampling_s=self._sampling_s,
                    drafts_lost_s=self._decoder.drafts_lost_s,
                    wanted_cores=self._threads.mean_wanted,
                    delayed_s=min(self._threads.delayed_s, time.monotonic() - self._started),
                    drive_bytes=drive_bytes() - self._drive_bytes,
                ),
            )

    def _logprobs(self, sampler: Sampler, token: int) -> AnswerToken | None:
        n_likeliest = self._request.n_logprobs
        return sampler.logprobs(token, n_likeliest, self._decoder.row) if n_likeliest >= 0 else None

    def _begins_call(self, token: int) -> bool:
        return bool(self._tools) and self._session.call_tags is not None and token == self._session.call_tags[0]

    def _must_begin_call(self, token: int, writer: Writer) -> bool:
        """Return whether a call has to begin in place of `token`: of anything but white space before the answer."""
        is_due = bool(self._request.must_call and self._tools) and not (writer.in_reasoning or writer.in_call)
        return is_due and not writer.n_calls and not writer.is_leading_blank(token)

    def _excluded_in_calls(self, *, may_end: bool) -> frozenset[int]:
        """Return the markers, which a string of a call must not hold: they would end the call, or be lost."""
        assert self._session.call_tags is not None, "only a model with tags for them makes calls"
        end = frozenset(self._session.call_tags[1:] if may_end else ())
        return self._markers - end

    def _may_call_again(self, writer: Writer) -> bool:
        return self._options.parallel_tool_calls and writer.n_calls < _MOST_CALLS

    def _callable_tools(self) -> tuple[Mapping[str, CallableTool], str]:
        """Return the tools that may be called, and the grammar of calls."""
        request, tags = self._request, self._session.call_tags
        if not request.tools_json or tags is None or not request.may_call:
            read_tools(request.tools_json)
            return {}, ""
        dialect = self._session.report.template.call_dialect
        assert dialect, "only a model with a dialect has tags for calls"
        only = "" if request.must_call == _ANY_TOOL else request.must_call
        return tools_and_grammar(tuple(request.tools_json), only, dialect, tags[1])

    def _timed_sample(self, sampler: Sampler, writer: Writer) -> int:
        """Sample the next token. The time that a GPU still computes its logits is the engine's."""
        self._decoder.wait()
        began = time.perf_counter()
        token = self._sample(sampler, writer)
        if self._first_token_at:
            self._sampling_s += time.perf_counter() - began
        return token

    def _sample(self, sampler: Sampler, writer: Writer) -> int:
        if writer.in_call and not writer.call_ends_by_text:
            return sampler.next_in_call(self._excluded_in_calls(may_end=writer.call_may_end), self._decoder.row)
        if sampler.has_grammar and not writer.in_reasoning:
            return sampler.next_by_grammar(writer.is_leading_blank, self._decoder.row)
        return sampler.next(self._decoder.row)

    def _end_reasoning_if_due(self, writer: Writer) -> None:
        n_tokens = writer.begun_reasoning_tokens + writer.reasoning_tokens
        if self._control.take_answer_now() or 0 <= self._options.thinking_budget <= n_tokens:
            self._end_reasoning(writer)
        elif self._loops.is_in_loop("reasoning"):
            self._end_reasoning(writer)
            self._update_stats(reasoning_looped=True)

    def _end_reasoning(self, writer: Writer, close: str = "") -> None:
        """Append the closing text of the options, or `close`, to the reasoning, as if the model had generated it."""
        model = self._session.model
        forced = model.tokenize(close or self._options.thinking_close, special=True)
        if self._session.special("</think>") not in forced:
            raise BadRequest(
                mark("Invalid closing text"), mark("thinking_close must contain </think>, or the thinking never ends.")
            )
        if len(forced) > self._cells_left():
            raise Stopped("context_full")
        for first in range(0, len(forced), model.n_ubatch):
            self._decoder.decode(forced[first : first + model.n_ubatch])
        for token in forced:
            writer.write_forced(token)

    def _cells_left(self) -> int:
        return self._session.model.n_ctx - self._session.cache.n_cells

    def _update_stats(self, **numbers: object) -> None:
        self._stats = msgspec.structs.replace(self._stats, **numbers)


def drafter_of(session: Session, items: Sequence[Item], gate: DraftGate) -> Drafter:
    """Return what drafts an answer to the prompt `items`: the model's own head, or else a look-up in the prompt."""
    if session.model.head is not None:
        return MtpDrafter(session.model.head, session.cache, gate)
    return LookupDrafter(items)


def process(session: Session, step: DecodeStep, *, rows: int) -> None:
    """Process one step of a prompt, with `rows` of logits at its end, and save its checkpoint. Raise as `decode`."""
    cache = session.cache
    if step.image_chunk is None:
        tokens = [item for item in step.items if isinstance(item, int)]
        session.model.decode(tokens, cache.position, rows=rows)
        cache.append(*tokens)
    else:
        assert session.vision is not None, "a prompt with pictures needs a session with vision"
        session.vision.decode(step.image_chunk, cache.position)
        cache.append(step.image_chunk.item)
    if step.save:
        cache.save(pinned=step.pinned)


# Two questions that share no beginning.
_QUESTIONS = ("a", "1 b")
# A picture is encoded ahead only if that should take less: it cannot be interrupted.
_LONGEST_ENCODING_S = 2.0


def warm(session: Session, request: Warm, send: Callable[[Event], None], is_wanted: Callable[[], bool]) -> Warmed:
    """Process the certain beginning of the next prompt, as long as `is_wanted` returns True between two batches.

    Raise BadRequest as for a Generate request.
    """
    layout, other = (
        layout_of(session, messages, _as_generate(request, messages), send)
        for messages in (_with_question(request.messages, question) for question in _QUESTIONS)
    )
    certain = common_prefix_length(layout.items, other.items)
    cache = session.cache
    # Close to the end of the context, a Generate request may leave out the oldest messages.
    limit = session.model.n_ctx if request.options.context_overflow == "stop" else session.model.n_ctx // 2
    if layout.n_tokens >= limit or not request.options.cache_prompt or not is_wanted():
        return Warmed(id=request.id, done=0, reread=0)
    if session.model.head is not None:
        session.model.head.is_fed = True
    beginning = layout.items[: certain + 1]  # the item after the certain ones stays to be processed by the request
    session.states.switch_to(request.chat, beginning, request.state_file, is_idle=True)
    start = cache.roll_back(beginning).start
    before, index = cache.n_cells, start
    for step in layout.steps(start, session.model.n_ubatch):
        index += len(step.items)
        if index > certain or not is_wanted() or not _is_quick(session, step):
            break
        process(session, step, rows=0)
    return Warmed(id=request.id, done=cache.n_cells, reread=cache.n_cells - before)


def _with_question(messages: tuple[Message, ...], question: str) -> tuple[Message, ...]:
    if messages and messages[-1].role == "user":
        last = messages[-1]
        return (*messages[:-1], msgspec.structs.replace(last, parts=(*last.parts, TextPart(question))))
    return (*messages, text_message("user", question))


def _as_generate(request: Warm, messages: tuple[Message, ...]) -> Generate:
    return Generate(id=request.id, messages=messages, options=request.options, tools_json=request.tools_json)


def _is_quick(session: Session, step: DecodeStep) -> bool:
    """Return whether a step takes no longer than a picture may."""
    if step.image_chunk is None or session.vision is None:
        return True
    return session.vision.expected_s(step.image_chunk) < _LONGEST_ENCODING_S
