"""Send the tokens of an answer as text, in whole characters: reasoning, answer and calls separately."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine.protocol import AnswerToken, Begun, CallDelta, Called, Delta, Event
from qwendesk.engine.worker.call_parser import CallStream, names_by_form, parse_call
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.repetition import LoopWatch
from qwendesk.engine.worker.template_builtin import TurnMarks
from qwendesk.engine.worker.tools import CallableTool

_END = "</function>"


class CallWriter:
    """Takes the text of the calls of one answer, one call after the other."""

    def __init__(self, tools: Mapping[str, CallableTool], request_id: int, send: Callable[[Event], None]) -> None:
        self._tools, self._id, self._send = tools, request_id, send
        self._stream: CallStream | None = None
        self._text: list[str] = []
        self.ends_by_text = False
        self.n_calls = 0
        """Calls that are whole."""

    @property
    def openers(self) -> tuple[str, ...]:
        """The texts with which a model begins a call if it forgets `<tool_call>`."""
        return tuple(f"<function={form}>" for form in names_by_form(self._tools))

    @property
    def is_whole(self) -> bool:
        """Whether nothing but the closing tag is missing."""
        return self._stream is not None and self._stream.is_whole

    def begin(self, *, ends_by_text: bool = False) -> None:
        """Begin the next call. Without `<tool_call>` it may end without `</tool_call>`: by its own last tag."""
        self._stream, self._text, self.ends_by_text = CallStream(self._tools), [], ends_by_text

    def feed(self, text: str, n_tokens: int) -> bool:
        """Take text of the call, and return whether the call ends with it."""
        assert self._stream is not None, "a call has begun"
        self._text.append(text)
        piece = self._stream.feed(text)
        if piece.name or piece.arguments:
            self._send(
                CallDelta(id=self._id, index=self.n_calls, name=piece.name, arguments=piece.arguments, tokens=n_tokens)
            )
        return self.ends_by_text and _END in "".join(self._text[-8:])

    def end(self, *, is_finished: bool) -> None:
        """End the call. One that the model could not finish is never a call, whatever it looks like."""
        text = "".join(self._text)
        self._stream = None
        if not text.strip() and is_finished:
            return  # a tag that was written twice
        call = parse_call(text, self._tools) if is_finished else None
        self._send(Called(id=self._id, index=self.n_calls, call=call, text=text, is_finished=is_finished))
        self.n_calls += is_finished


# How many tokens of white space may come between the reasoning and the answer without being checked by a grammar.
_MAX_BLANKS = 2


class Writer:
    """Takes the tokens of one answer in order and sends Delta events."""

    def __init__(
        self, session: Session, options: GenerationOptions, request_id: int, send: Callable[[Event], None], *,
        in_reasoning: bool, loops: LoopWatch, calls: CallWriter | None, marks: TurnMarks | None = None,
    ) -> None:  # fmt: skip
        """`loops` gets all tokens of the answer, also those before the interruption, but none of the closing text.

        `calls` is None if no tool may be called: then what looks like a call is text. `marks` are those of the built-in
        template, if that is used.
        """
        self._loops = loops
        self._model, self._id, self._send = session.model, request_id, send
        self._calls = calls
        self._splitter = OutputSplitter(
            session.special("<think>"), session.special("</think>"), in_reasoning=in_reasoning,
            calls=None if calls is None else session.call_tags,
        )  # fmt: skip
        self._openers = StopMatcher(calls.openers if calls else ())
        self._n_before_call = 0
        self._joiner = Utf8Joiner()
        # Where a space stands between the template and the answer, the model writes it.
        self._dropped = "\r\n " if marks is not None and marks.answer[0].endswith(" ") else "\r\n"
        self._trimmer = BlankTrimmer(self._dropped)
        self._wanted_stops, self._stop_texts = options.stop, (*options.stop, *(marks.stops if marks else ()))
        self._stops = StopMatcher(self._stop_texts)
        self._logprobs: list[AnswerToken] = []
        """Those of tokens of the answer whose text was not sent yet."""
        self._blanks = 0
        self._replaying = False
        self._skip = -1
        """How many of the next characters were sent before the interruption; -1 if no word is generated again."""
        self._sent: dict[str, list[str]] = {"reasoning": [], "answer": []}
        self.tokens: list[int] = []
        """All tokens of the answer, including markers and the part before the interruption."""
        self.begun_reasoning_tokens = 0
        """Tokens of reasoning before the interruption."""
        self.reasoning_tokens = 0
        self.answer_tokens = 0

    @property
    def in_reasoning(self) -> bool:
        return self._splitter.in_reasoning

    @property
    def in_call(self) -> bool:
        return self._splitter.in_call

    @property
    def n_calls(self) -> int:
        """Tool calls that are whole."""
        return self._calls.n_calls if self._calls else 0

    @property
    def call_ends_by_text(self) -> bool:
        """Whether the call began without `<tool_call>`, so that no grammar follows it."""
        return self._calls is not None and self._calls.ends_by_text

    @property
    def call_may_end(self) -> bool:
        return self._calls is not None and self._calls.is_whole

    def is_leading_blank(self, token: int) -> bool:
        """Return whether `token` is white space before the answer's first word. Call this once, before `write`."""
        piece = self._model.piece(token)
        blank = self._blanks == self.answer_tokens < _MAX_BLANKS and bool(piece) and not piece.strip()
        self._blanks += blank
        return blank

    @property
    def stop_text(self) -> str:
        """The wanted stop text that was completed; "" if none was, or one of the template."""
        return next((text for text in self._wanted_stops if text and self._stops.rest.startswith(text)), "")

    @property
    def sent(self) -> Begun:
        """The text of this answer that was sent, without the part before the interruption."""
        return Begun("".join(self._sent["reasoning"]), "".join(self._sent["answer"]))

    def replay(self, tokens: Sequence[int], on_token: Callable[[int, bool], None]) -> None:
        """Take the tokens of an answer that is continued. They are not sent or counted again.

        Incomplete characters and white space that were held back at the interruption are sent with the text that
        follows. `on_token` is called with each token, and with whether it belongs to the answer and isn't leading white
        space.
        """
        self._replaying = True
        for token in tokens:
            counted, blank = self.answer_tokens, not self.in_reasoning and self.is_leading_blank(token)
            if self.write(token):
                self._stops = StopMatcher(self._stop_texts)
            on_token(token, self.answer_tokens > counted and not blank)
        self._stops.flush()  # this text was sent when the answer was interrupted
        self._replaying = False
        self._begin_counting()

    def rewrite(self, token: int, unsent: str) -> None:
        """Take a token of a word that is generated again. The characters of that word, `unsent`, are not sent again."""
        self._skip = len(unsent) if self._skip < 0 else self._skip
        self.write(token)
        self._begin_counting()

    def _begin_counting(self) -> None:
        self.begun_reasoning_tokens += self.reasoning_tokens
        self._blanks -= self.answer_tokens
        self.reasoning_tokens = self.answer_tokens = 0

    def write(self, token: int, logprobs: AnswerToken | None = None) -> bool:
        """Take one token. Return True if it completes a stop text."""
        self.tokens.append(token)
        was_in_call, kind = self.in_call, self._splitter.feed(token)
        if kind == "marker":
            self._begin_part()
            return False
        if kind == "reasoning":
            self.reasoning_tokens += 1
        else:
            self.answer_tokens += 1
        if kind == "answer" and logprobs is not None:
            self._logprobs.append(logprobs)
        if kind == "call begins" or kind == "call ends":  # noqa: PLR1714  mypy narrows only this form
            if was_in_call:
                self._end_call(is_finished=True)
            if kind == "call begins":
                self._begin_call()
            return False
        text = self._joiner.feed(self._model.piece(token))
        self._loops.feed("reasoning" if kind == "reasoning" else "answer", token, text)
        if kind == "call":
            self._feed_call(text)
            return False
        return self._send_text(kind, text)

    def _begin_call(self, *, without_tag: str = "") -> None:
        """Send all text before the call, but not the white space that separates them.

        `without_tag` is text that begins a call without `<tool_call>`.
        """
        self._n_before_call = len(self.tokens) - 1
        self._joiner.flush()
        self._send_delta("answer", self._stops.feed(self._openers.flush())[0] + self._stops.flush())
        self._trimmer = BlankTrimmer(self._dropped)
        self._splitter.begin_call()
        assert self._calls is not None, "only a request with tools has calls"
        self._calls.begin(ends_by_text=bool(without_tag))
        if without_tag:
            self._feed_call(without_tag)

    def _may_begin_call(self, text: str) -> bool:
        """Return whether a call without `<tool_call>` may begin after `text`: on a line of its own, outside of code."""
        before = "".join(self._sent["answer"]) + text
        return before.count("```") % 2 == 0 and not before.rpartition("\n")[2].strip()

    def _feed_call(self, text: str) -> None:
        if self._calls is not None and self._calls.feed(text, self.answer_tokens):
            self._end_call(is_finished=True)

    def _end_call(self, *, is_finished: bool) -> None:
        assert self._calls is not None, "only a request with tools has calls"
        self._calls.end(is_finished=is_finished)
        self._splitter.end_call()
        self._openers = StopMatcher(self._calls.openers)
        self._begin_part()

    def write_forced(self, token: int) -> None:
        """Take a token of the closing text. It is shown with the reasoning but not counted as output of the model."""
        self.tokens.append(token)
        kind = self._splitter.feed(token)
        if kind == "marker":
            self._begin_part()
        else:
            self._send_text(
                "reasoning" if kind == "reasoning" else "answer", self._joiner.feed(self._model.piece(token))
            )

    def finish(self, *, can_continue: bool) -> None:
        """Send the text that was held back. Send U+FFFD for an incomplete character only if not `can_continue`.

        A call that is open then is one that the model did not finish, unless it ended its text itself.
        """
        if self.in_call:
            self._end_call(is_finished=not can_continue)
            if can_continue:
                del self.tokens[self._n_before_call :]  # the answer continues before the call
            return
        kind: Literal["reasoning", "answer"] = "reasoning" if self.in_reasoning else "answer"
        incomplete = self._joiner.flush()
        self._send_text(kind, "" if can_continue else incomplete)
        if kind == "answer":
            self._send_delta(kind, self._stops.feed(self._openers.flush())[0] + self._stops.flush())

    def _begin_part(self) -> None:
        """Begin the other part of the output: drop an incomplete character, and newlines at the beginning."""
        self._joiner.flush()
        self._trimmer = BlankTrimmer(self._dropped)

    def _send_text(self, kind: Literal["reasoning", "answer"], text: str) -> bool:
        text = self._trimmer.feed(text)
        if kind == "reasoning":
            self._send_delta(kind, text)
            return False
        text, begins_call = self._openers.feed(text + self._trimmer.flush())
        if begins_call and not self._may_begin_call(text):
            text, begins_call = text + self._openers.rest, False
            self._openers = StopMatcher(self._calls.openers if self._calls else ())
        text, stopped = self._stops.feed(text)
        self._send_delta(kind, text)
        if begins_call and not stopped:
            self._begin_call(without_tag=self._openers.rest)
        return stopped

    def _send_delta(self, kind: Literal["reasoning", "answer"], text: str) -> None:
        if self._skip > 0:
            text, self._skip = text[self._skip :], max(0, self._skip - len(text))
        if text and not self._replaying:
            self._sent[kind].append(text)
            n_tokens = self.reasoning_tokens if kind == "reasoning" else self.answer_tokens
            known = tuple(self._logprobs) if kind == "answer" else ()
            self._logprobs = []
            self._send(Delta(id=self._id, kind=kind, text=text, tokens=n_tokens, logprobs=known))


# The part of the output that a token belongs to. The last three are markers, which are never shown.
TokenKind = Literal["reasoning", "answer", "call", "marker", "call begins", "call ends"]


class Utf8Joiner:
    """Joins the bytes of tokens to text. The bytes of a character that is split over tokens are held back."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """Return the characters that `data` completes. Bytes that are not valid UTF-8 become U+FFFD."""
        return self._decoder.decode(data)

    def flush(self) -> str:
        """Return U+FFFD for an incomplete character, else "", and start again."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest


class StopMatcher:
    """Finds the stop text that is completed first, even if it is split over several pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self._stopped = False
        self.rest = ""
        """The stop text that was completed, and what came after it in the same piece."""

    def feed(self, text: str) -> tuple[str, bool]:
        """Return the text that cannot be part of a stop text, and whether a stop text was completed.

        The stop text and everything after it are dropped. If two end at the same position, the longer one counts.
        """
        if self._stopped:
            return "", True
        text = self._held + text
        first = self._first_completed(text)
        if first is not None:
            self._held, self._stopped, self.rest = "", True, text[first:]
            return text[:first], True
        n_held = self._n_held(text)
        safe = len(text) - n_held
        self._held = text[safe:]
        return text[:safe], False

    def flush(self) -> str:
        """Return the text that was held back because a stop text might have begun there."""
        held, self._held = self._held, ""
        return held

    def _first_completed(self, text: str) -> int | None:
        """Return the index at which the stop text that is completed first begins; None if there is none."""
        found = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        return min(found)[1] if found else None

    def _n_held(self, text: str) -> int:
        """Return the length of the longest end of `text` that is the beginning of a stop text."""
        longest = max((len(stop) for stop in self._stops), default=0)
        for length in range(min(longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0


class OutputSplitter:
    """Decides by its id to which part of the output a token belongs, so that text is never mistaken for a marker.

    `open_id` and `close_id` are the tokens `<think>` and `</think>`, or None if the model does not have them; `calls`
    are `<tool_call>` and `</tool_call>`, or None if no tool may be called. `in_reasoning` says whether the prompt ends
    inside an open `<think>`.
    """

    def __init__(
        self, open_id: int | None, close_id: int | None, *, in_reasoning: bool, calls: tuple[int, int] | None = None
    ) -> None:
        self._open_id = None if close_id is None else open_id  # reasoning that cannot end must not begin
        self._close_id = close_id
        self._call_open_id: int | None = calls[0] if calls else None
        self._call_close_id: int | None = calls[1] if calls else None
        self._in_reasoning = in_reasoning
        self._in_call = False
        self._at_start = True

    @property
    def in_reasoning(self) -> bool:
        return self._in_reasoning

    @property
    def in_call(self) -> bool:
        return self._in_call

    def begin_call(self) -> None:
        """A call begins that no token `<tool_call>` announced."""
        self._in_reasoning, self._in_call = False, True

    def end_call(self) -> None:
        self._in_call = False

    def feed(self, token_id: int) -> TokenKind:
        """Return the part of the output that `token_id` belongs to.

        `<think>` is a marker only before any text of the reasoning or the answer. `</think>` is always a marker, even
        a second one in the answer or in a call. `<tool_call>` ends the reasoning, and a call that did not end.
        """
        if token_id == self._call_open_id:
            self._at_start = False
            self.begin_call()
            return "call begins"
        if token_id == self._call_close_id:
            was_call, self._in_call = self._in_call, False
            return "call ends" if was_call else "marker"
        if self._in_call:
            return "marker" if token_id == self._close_id else "call"
        if token_id == self._close_id:
            self._at_start = self._at_start or self._in_reasoning
            self._in_reasoning = False
            return "marker"
        if token_id == self._open_id and self._at_start:
            self._in_reasoning = True
            return "marker"
        self._at_start = False
        return "reasoning" if self._in_reasoning else "answer"


class BlankTrimmer:
    """Drops newlines at the beginning of a part of the output, and holds back white space that may be its end."""

    def __init__(self, dropped: str = "\r\n") -> None:
        """`dropped` are the characters that are dropped at the beginning."""
        self._dropped = dropped
        self._begun = False
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text that can be shown now. White space still held back when the reasoning ends is dropped."""
        if not self._begun:
            text = text.lstrip(self._dropped)
            self._begun = bool(text)
        text = self._held + text
        shown = text.rstrip()
        self._held = text[len(shown) :]
        return shown

    def flush(self) -> str:
        """Return the white space that is held back, for a part that keeps it."""
        held, self._held = self._held, ""
        return held
