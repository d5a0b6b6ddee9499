"""One turn: the conversation becomes a prompt, the prompt is read into memory, an answer is written."""

import time
from collections.abc import Callable, Sequence

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import Message
from qwendesk.core.options import GenerationOptions
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.engine.protocol import Begun, Event, Finished, Generate, PromptProgress, Rendered, Rendering
from qwendesk.engine.worker.control import Control
from qwendesk.engine.worker.layout import Layout, lay_out
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.model import Aborted
from qwendesk.engine.worker.prompt import Prompt, build_prompt
from qwendesk.engine.worker.resuming import CutAnswer, options_to_resume, with_tokens
from qwendesk.engine.worker.sampling import Sampler
from qwendesk.engine.worker.vision import Tile
from qwendesk.engine.worker.writer import Writer

Send = Callable[[Event], None]

_FINAL = ("eos", "stop_string")
"""An answer that ended so is whole; any other can go on."""


class _Stopped(Exception):
    """The answer ends here."""

    def __init__(self, reason: StopReason) -> None:
        self.reason: StopReason = reason


class Turn:
    """Serves one Generate request on a session. `between_tokens` lets the caller do small work meanwhile."""

    def __init__(
        self, session: Session, request: Generate, control: Control, send: Send, between_tokens: Callable[[], None]
    ) -> None:
        self._session, self._request, self._options = session, request, request.options
        self._control, self._send, self._between_tokens = control, send, between_tokens
        self._started = time.monotonic()
        self._stats = AnswerStats()

    def run(self) -> Finished:
        """Raises BadRequest when the request cannot be served."""
        sampler = Sampler(self._session.model, self._options)
        try:
            reason = self._serve(sampler)
        finally:
            sampler.close()
        return Finished(id=self._request.id, stop_reason=reason, stats=self._stats)

    def _serve(self, sampler: Sampler) -> StopReason:
        layout, dropped = fit_to_context(self._session, self._request, self._send)
        self._note(prompt_tokens=layout.n_tokens, image_tokens=layout.image_tokens, dropped_messages=dropped)
        if layout.n_tokens >= self._session.model.n_ctx:
            return "context_full"
        writer = Writer(self._session, self._options, self._request.id, self._send, in_thought=layout.opens_thought)
        writer.replay(layout.begun, lambda token, is_answer: sampler.replay(token, by_grammar=is_answer))
        reason = self._read_and_write(sampler, layout, writer)
        if reason not in _FINAL:
            self._remember(writer, opens_thought=layout.opens_thought)
        return reason

    def _read_and_write(self, sampler: Sampler, layout: Layout, writer: Writer) -> StopReason:
        try:
            self._read(layout)
            self._note(prefill_s=time.monotonic() - self._started)
            self._rewrite(sampler, writer, layout.rest)
            self._write(sampler, writer)
        except Aborted:
            self._session.cache.tear()
            return "cancelled"
        except _Stopped as stop:
            return stop.reason
        raise AssertionError("writing ends by a reason")

    def _remember(self, writer: Writer, *, opens_thought: bool) -> None:
        """Keep the tokens of an answer that can go on."""
        before, new = self._request.begun or Begun(), writer.sent
        seen = Begun(before.reasoning + new.reasoning, before.text + new.text)
        if not seen.is_empty:
            self._session.recent.remember(seen, CutAnswer(tuple(writer.tokens), opens_thought))

    def _read(self, layout: Layout) -> None:
        cache = self._session.cache
        if not self._options.cache_prompt:
            cache.clear()
        rewind = cache.rewind(layout.items)
        reused, total = cache.n_cells, layout.n_tokens
        self._note(reused_tokens=reused, reread_tokens=total - reused, cache_note=rewind.note)
        self._send(PromptProgress(id=self._request.id, done=reused, total=total, reused=reused))
        for step in layout.steps(rewind.start, self._session.model.n_ubatch):
            if self._control.cancelled:
                raise _Stopped("cancelled")
            if step.tile is not None:
                self._feed_picture(step.tile)
            else:
                self._feed([item for item in step.items if isinstance(item, int)], logits=step.is_last)
            if step.save:
                cache.save(pinned=step.pinned)
            self._send(PromptProgress(id=self._request.id, done=cache.n_cells, total=total, reused=reused))

    def _feed(self, tokens: Sequence[int], *, logits: bool = True) -> None:
        cache = self._session.cache
        self._session.model.decode(tokens, cache.position, logits=logits)
        cache.append(*tokens)

    def _feed_picture(self, tile: Tile) -> None:
        vision, cache = self._session.vision, self._session.cache
        assert vision is not None, "a prompt with pictures needs a session with vision"
        vision.feed(tile, cache.position)
        cache.append(tile.item)

    def _rewrite(self, sampler: Sampler, writer: Writer, rest: str) -> None:
        """Write the last word of what was begun again, by the likeliest tokens that spell it and perhaps go on."""
        left, markers = rest.encode(), self._session.marker_ids() if rest else frozenset()
        while left:
            if self._control.cancelled:
                raise _Stopped("cancelled")
            if self._cells_left() < 1:
                raise _Stopped("context_full")
            token = sampler.likeliest_within(left, markers)
            sampler.replay(token, by_grammar=not writer.in_thought)
            writer.rewrite(token, rest)
            left = left[len(self._session.model.piece(token)) :]
            self._feed((token,))

    def _write(self, sampler: Sampler, writer: Writer) -> None:
        session, options = self._session, self._options
        first_at = 0.0
        can_go_on = False
        try:
            while True:
                self._between_tokens()
                if self._control.cancelled and not first_at:
                    raise _Stopped("cancelled")
                if writer.in_thought and self._must_close(writer.begun_reasoning_tokens + writer.reasoning_tokens):
                    self._close_thought(writer)
                token = self._sample(sampler, writer)
                if not first_at:
                    first_at = time.monotonic()
                    self._note(ttft_s=first_at - self._started)
                if session.model.is_end(token):
                    raise _Stopped("eos")
                if writer.write(token):
                    raise _Stopped("stop_string")
                # One token is always written that memory does not hold yet: going on reads it, and nothing else.
                if self._control.cancelled:
                    raise _Stopped("cancelled")
                if 0 <= options.max_tokens <= writer.reasoning_tokens + writer.answer_tokens:
                    raise _Stopped("max_tokens")
                if self._cells_left() < 1:
                    raise _Stopped("context_full")
                self._feed((token,))
        except (_Stopped, Aborted) as end:
            can_go_on = not isinstance(end, _Stopped) or end.reason not in _FINAL
            raise
        finally:
            writer.finish(can_go_on=can_go_on)
            self._note(
                reasoning_tokens=writer.reasoning_tokens,
                answer_tokens=writer.answer_tokens,
                decode_s=time.monotonic() - first_at if first_at else 0.0,
            )

    def _sample(self, sampler: Sampler, writer: Writer) -> int:
        if sampler.has_grammar and not writer.in_thought:
            return sampler.next_by_grammar(writer.is_leading_blank)
        return sampler.next()

    def _must_close(self, reasoning_tokens: int) -> bool:
        return self._control.take_answer_now() or 0 <= self._options.thinking_budget <= reasoning_tokens

    def _close_thought(self, writer: Writer) -> None:
        """Put the closing text behind the thought, as if the model had written it."""
        model = self._session.model
        forced = model.tokenize(self._options.thinking_close, special=True)
        if self._session.special("</think>") not in forced:
            raise BadRequest("Bad closing text", "thinking_close must contain </think>, or the thought never ends.")
        if len(forced) > self._cells_left():
            raise _Stopped("context_full")
        for first in range(0, len(forced), model.n_ubatch):
            self._feed(forced[first : first + model.n_ubatch])
        for token in forced:
            writer.write_forced(token)

    def _cells_left(self) -> int:
        return self._session.model.n_ctx - self._session.cache.n_cells

    def _note(self, **numbers: object) -> None:
        self._stats = msgspec.structs.replace(self._stats, **numbers)


def fit_to_context(session: Session, request: Generate, send: Send) -> tuple[Layout, int]:
    """The prompt's layout, and how many of the oldest messages were left out to make room for an answer.

    Whole turns go, the system prompt and the last question stay.
    """
    n_ctx, options = session.model.n_ctx, request.options
    room = n_ctx // 4 if options.max_tokens < 0 else min(options.max_tokens, n_ctx // 4)
    whole = layout_of(session, request.messages, request, send)
    if options.context_overflow == "stop" or whole.n_tokens + room <= n_ctx:
        return whole, 0
    n_system = sum(1 for message in request.messages[:1] if message.role == "system")
    starts = [i for i, message in enumerate(request.messages) if message.role == "user" and i > n_system]
    step = _DROP_STEP if len(starts) > _DROP_STEP else 1
    layout, dropped = whole, 0
    for start in starts:
        if (start - n_system) % step and start != starts[-1]:
            continue
        layout = layout_of(session, (*request.messages[:n_system], *request.messages[start:]), request, send)
        dropped = start - n_system
        if layout.n_tokens + room <= n_ctx:
            break
    return layout, dropped


_DROP_STEP = 8
"""Long chats lose this many messages at once, so that their beginning, and with it the cache, changes rarely."""


def layout_of(session: Session, messages: Sequence[Message], request: Generate, send: Send) -> Layout:
    """Raises BadRequest for a picture that cannot be read or a model that cannot see."""
    images = [image for message in messages for image in message.images]
    if images and session.vision is None:
        raise BadRequest(
            "No picture support", "This model is loaded without its mmproj file, so it cannot see pictures."
        )
    send(Rendering(id=request.id))
    options = options_to_resume(request.options, request.begun)
    prompt = prompt_of(session, messages, options, request.tools_json)
    known = session.recent.recall(request.begun, opens_thought=prompt.opens_thought)
    if known is not None:
        prompt = with_tokens(prompt, known.tokens)
    elif request.begun is not None:
        prompt = prompt_of(session, messages, options, request.tools_json, request.begun)
    send(Rendered(id=request.id))
    pictures = session.vision.prepare(images) if session.vision is not None and images else {}
    return lay_out(prompt, pictures)


def prompt_of(
    session: Session,
    messages: Sequence[Message],
    options: GenerationOptions,
    tools_json: Sequence[str] = (),
    begun: Begun | None = None,
) -> Prompt:
    """The conversation through the session's template. Raises BadRequest when the template refuses it."""
    return build_prompt(
        session.template,
        session.vocabulary,
        messages,
        tools_json=tools_json,
        enable_thinking=options.enable_thinking and session.report.can_think,
        preserve_thinking=options.preserve_thinking,
        begun=begun,
    )
