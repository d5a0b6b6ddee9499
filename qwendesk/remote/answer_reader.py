"""Makes the items of an answer from the chunks of a server: text, reasoning, calls, statistics, and why it ended.

So are those of a wrong kind, such as counts that are null: an answer that can be read doesn't end because of them.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isfinite
from typing import Any, Final, Literal, TypeVar, get_args

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import ToolCall
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.translation import mark, tr
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import CallDelta, Called, Delta, Finished, PromptProgress
from qwendesk.remote.connection import EndlessAnswer

S = TypeVar("S", bound=msgspec.Struct)


class FunctionPiece(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    """Text in pieces; some servers send the object as a whole."""


class ToolCallDelta(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece = FunctionPiece()


class ChunkDelta(msgspec.Struct, frozen=True):
    content: Any = None
    """As the reasoning, a text, or parts with a text."""
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[ToolCallDelta] | None = None


class ChunkChoice(msgspec.Struct, frozen=True):
    delta: ChunkDelta | None = None
    message: ChunkDelta | None = None
    """Message of a server that doesn't stream, in place of `delta`."""
    finish_reason: str | None = None


class TokenDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class Timings(msgspec.Struct, frozen=True):
    """llama-server's times, in milliseconds."""

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    draft_n: int = 0
    draft_n_accepted: int = 0


class PrefillProgress(msgspec.Struct, frozen=True):
    """llama-server's progress of the prompt, in tokens."""

    total: int = 0
    cache: int = 0
    processed: int = 0


class Chunk(msgspec.Struct, frozen=True):
    id: str = ""
    choices: list[ChunkChoice] = []
    usage: Usage | None = None
    timings: Timings | None = None
    prompt_progress: PrefillProgress | None = None
    error: Any = None


def decode_chunk(data: str | bytes) -> Chunk:
    """Return the chunk of one event. Raises msgspec.DecodeError for what isn't a JSON object."""
    value = decode_json(data)
    try:
        return msgspec.convert(value, Chunk, strict=False)
    except msgspec.ValidationError:
        if not isinstance(value, dict):
            raise
        return _readable(value, Chunk)


def text_of(content: Any) -> str:
    """Return the text of a content: a text or number, or an object or a list with some."""
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content"))
    if isinstance(content, list):
        return "".join(map(text_of, content))
    return str(content) if isinstance(content, str | int | float) and not isinstance(content, bool) else ""


def _readable(value: dict[str, Any], kind: type[S]) -> S:
    """Return what can be read of an object."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        given = value.get(field.name)
        kinds = (
            field.type,
            *get_args(field.type),
            *(inner for each in get_args(field.type) for inner in get_args(each)),
        )
        struct = next((each for each in kinds if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)
        if struct is not None and isinstance(given, list):
            given = [_readable(each, struct) for each in given if isinstance(each, dict)]
        elif struct is not None and isinstance(given, dict):
            given = _readable(given, struct)
        with suppress(msgspec.ValidationError):
            found[field.name] = msgspec.convert(given, field.type, strict=False)
    return kind(**found)


NOT_SEPARATED = mark(
    "The server doesn't separate thinking from the answer. Start it with a reasoning parser, for vLLM and SGLang: "
    "--reasoning-parser qwen3."
)
_MAX_TOKENS = ("length", "max_tokens")
# Of an answer with its reasoning: twice what a million tokens of code have is no answer for a person.
_MOST_CHARACTERS = 2_000_000
_LONGEST_ID = 200
_MOST_COUNT, _MOST_SECONDS = 10**9, 1e7
# Of one answer, for all its calls together. Each piece of a call copies what came before it.
_MOST_CALLS, _MOST_CALL_CHARACTERS = 100, 400_000


class AnswerReader:
    """Reads one answer. `clock` returns monotonic seconds; the time before the first text counts from the start."""

    def __init__(
        self, clock: Callable[[], float], *, n_ctx: int = 0, starts_open: bool = False, may_call: bool = True
    ) -> None:
        """With `starts_open`, text before </think> is reasoning even without <think>. Without `may_call`, calls are
        left out.
        """
        self._clock, self._n_ctx, self._may_call = clock, n_ctx, may_call
        self._splitter: ThinkSplitter | None = ThinkSplitter(starts_open=starts_open)
        """None once the server has sent reasoning apart."""
        self._started_at = clock()
        self._first_at = self._last_at = 0.0
        self._n_pieces = {"reasoning": 0, "answer": 0}
        """Pieces of each kind; a piece is a token, more or less."""
        self._calls: list[_Call] = []
        self._n_characters = self._n_call_characters = 0
        self._usage: Usage | None = None
        self._timings: Timings | None = None
        self._finish_reason = ""
        self.answer_id = ""
        """The server's name for this answer; "" before the first chunk."""

    @property
    def has_finished(self) -> bool:
        """Whether the server has said why the answer ended."""
        return bool(self._finish_reason)

    @property
    def has_begun(self) -> bool:
        """Whether any text or call has arrived."""
        return self._first_at > 0

    @property
    def is_unseparated(self) -> bool:
        """Whether the text had a </think> although its reasoning was taken for the answer."""
        return self._splitter is not None and self._splitter.has_stray_close

    def read(self, chunk: Chunk) -> Iterator[AnswerItem]:
        """Yield the items of a chunk. Its `error` is left to the caller. Raise EndlessAnswer."""
        self.answer_id = self.answer_id or chunk.id[:_LONGEST_ID]
        self._usage = chunk.usage or self._usage
        self._timings = chunk.timings or self._timings
        progress = chunk.prompt_progress
        if progress is not None and progress.total > 0:
            total = count_of(progress.total)
            done, reused = min(count_of(progress.processed), total), min(count_of(progress.cache), total)
            yield PromptProgress(id=0, done=done, total=total, reused=reused)
        for choice in chunk.choices[:1]:
            yield from self._read_choice(choice)

    def flush(self) -> Iterator[AnswerItem]:
        """Yield the text that was held back because it may have been the beginning of a tag."""
        for kind, text in self._splitter.end() if self._splitter is not None else ():
            yield self._delta(kind, text)

    def finish(self, stop_reason: StopReason | None = None) -> Iterator[AnswerItem]:
        """Yield what is left at the end, and Finished. `stop_reason` replaces what the server said."""
        yield from self.flush()
        was_cut = stop_reason is not None or self._finish_reason in _MAX_TOKENS
        for number, call in enumerate(self._calls):
            checked = None if was_cut else call.checked()
            text = f"{call.name} {call.arguments}"
            yield Called(id=0, index=number, call=checked, text=text, is_finished=not was_cut)
        yield Finished(id=0, stop_reason=stop_reason or self._stop_reason(), stats=self.stats())

    def stats(self) -> AnswerStats:
        """Return the statistics so far, with what the server reported and what was seen here."""
        usage, timings = self._usage or Usage(), self._timings
        prompt, written = count_of(usage.prompt_tokens), count_of(usage.completion_tokens)
        n_pieces = sum(self._n_pieces.values())
        details = usage.prompt_tokens_details
        cached = count_of(details.cached_tokens) if details is not None and details.cached_tokens is not None else None
        if timings is not None:
            cached = count_of(timings.cache_n)
            prompt, written = prompt or cached + count_of(timings.prompt_n), written or count_of(timings.predicted_n)
        written = written or n_pieces
        reasoning = self._reasoning_tokens(written)
        observed_s = max(0.0, self._last_at - self._first_at)
        ttft_s = max(0.0, self._first_at - self._started_at) if self._first_at else 0.0
        return AnswerStats(
            prompt_tokens=prompt,
            reused_tokens=cached or 0,
            reread_tokens=max(0, prompt - (cached or 0)),
            is_reuse_known=cached is not None,
            reasoning_tokens=reasoning,
            answer_tokens=max(0, written - reasoning),
            ttft_s=ttft_s,
            prefill_s=_seconds(timings.prompt_ms) if timings is not None else ttft_s,
            decode_s=_seconds(timings.predicted_ms) if timings is not None else observed_s,
            drafted_tokens=count_of(timings.draft_n) if timings is not None else 0,
            accepted_tokens=count_of(timings.draft_n_accepted) if timings is not None else 0,
            cache_note=tr(NOT_SEPARATED) if self.is_unseparated else "",
        )

    def _read_choice(self, choice: ChunkChoice) -> Iterator[AnswerItem]:
        delta = choice.delta or choice.message or ChunkDelta()
        reasoning, content = text_of(delta.reasoning_content) or text_of(delta.reasoning), text_of(delta.content)
        self._n_characters += len(reasoning) + len(content)
        if self._n_characters > _MOST_CHARACTERS:
            raise EndlessAnswer
        if reasoning:
            self._splitter = None
            yield self._delta("reasoning", reasoning)
        if content and self._splitter is not None:
            for kind, text in self._splitter.feed(content):
                yield self._delta(kind, text)
        elif content:
            yield self._delta("answer", content)
        for piece in delta.tool_calls or () if self._may_call else ():
            yield from self._read_call(piece)
        self._finish_reason = choice.finish_reason or self._finish_reason

    def _read_call(self, piece: ToolCallDelta) -> Iterator[AnswerItem]:
        """Add a piece to its call. A new id with a name begins a new call, because some servers number all as 0."""
        name = piece.function.name or ""
        open_call = next((call for call in reversed(self._calls) if call.index == piece.index), None)
        if piece.index is None and not piece.id and self._calls:
            open_call = self._calls[-1]
        if open_call is None or (name and piece.id and open_call.id and piece.id != open_call.id):
            open_call = _Call(piece.index, piece.id or "", name)
            self._calls.append(open_call)
        elif name and not open_call.name:
            open_call.name = name
        number = self._calls.index(open_call)
        arguments = _arguments_text(piece.function.arguments)
        open_call.arguments += arguments
        self._n_call_characters += len(name) + len(piece.id or "") + len(arguments)
        if len(self._calls) > _MOST_CALLS or self._n_call_characters > _MOST_CALL_CHARACTERS:
            raise EndlessAnswer
        self._tick("answer")
        is_first = not open_call.is_shown
        open_call.is_shown = True
        yield CallDelta(
            id=0, index=number, name=name if is_first else "", arguments=arguments, tokens=self._n_pieces["answer"]
        )

    def _delta(self, kind: Any, text: str) -> Delta:
        self._tick(kind)
        return Delta(id=0, kind=kind, text=text, tokens=self._n_pieces[kind])

    def _tick(self, kind: str) -> None:
        now = self._clock()
        self._first_at = self._first_at or now
        self._last_at = now
        self._n_pieces[kind] += 1

    def _reasoning_tokens(self, written: int) -> int:
        """Return how many of the tokens were reasoning: as reported, or by the share of pieces."""
        details = self._usage.completion_tokens_details if self._usage is not None else None
        if details is not None and details.reasoning_tokens:
            return min(count_of(details.reasoning_tokens), written)
        n_pieces = sum(self._n_pieces.values())
        return round(written * self._n_pieces["reasoning"] / n_pieces) if n_pieces else 0

    def _stop_reason(self) -> StopReason:
        if self._finish_reason in _MAX_TOKENS:
            is_full = self._n_ctx and self.stats().total_tokens >= self._n_ctx - 1
            return "context_full" if is_full else "max_tokens"
        return "tool_calls" if self._calls else "eos"


class _Call:
    """A call while its pieces arrive."""

    def __init__(self, index: int | None, call_id: str, name: str) -> None:
        self.index, self.id, self.name = index, call_id, name
        self.arguments = ""
        self.is_shown = False

    def checked(self) -> ToolCall | None:
        """Return the call; None if it has no name or its arguments aren't a JSON object."""
        text = self.arguments.strip() or "{}"
        try:
            is_object = isinstance(decode_json(text), dict)
        except msgspec.DecodeError:
            return None
        return ToolCall(self.name, text) if is_object and self.name else None


def count_of(value: int) -> int:
    """Return a number of tokens as it may be stored and shown, whatever a server says."""
    return min(max(0, value), _MOST_COUNT)


def _seconds(milliseconds: float) -> float:
    return min(max(0.0, milliseconds / 1000), _MOST_SECONDS) if isfinite(milliseconds) else 0.0


def _arguments_text(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or ""


Piece = tuple[Literal["reasoning", "answer"], str]

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
# Characters that may stand before <think>. Text that is held back is looked through with each piece.
_MOST_BLANKS: Final = 1000


class ThinkSplitter:
    """Takes the text piece by piece. Only a tag at the very beginning opens reasoning, and the first one closes it.

    A chat template may already have opened the reasoning, in which case the text has only the closing tag:
    `starts_open` says so. If that was not known, `has_stray_close` becomes true.
    """

    def __init__(self, *, starts_open: bool = False) -> None:
        self._state: Literal["start", "reasoning", "answer", "unsplit"] = "reasoning" if starts_open else "start"
        self._held = ""
        self._last = ""
        self._is_first = False
        """Whether the next text begins a section, whose leading line breaks belong to the tag."""
        self.has_stray_close = False

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces that are certain now."""
        self._held += text
        pieces: list[Piece] = []
        if self._state == "start":
            stripped = self._held.lstrip()
            if stripped.startswith(_OPEN):
                self._begin("reasoning", stripped.removeprefix(_OPEN))
            elif _OPEN.startswith(stripped) and len(self._held) <= _MOST_BLANKS:
                return []
            else:
                self._state = "unsplit"
        if self._state == "reasoning":
            before, tag, after = self._held.partition(_CLOSE)
            n_certain = len(before) if tag else len(before) - _length_of_begun_tag(before)
            self._emit(pieces, "reasoning", before[:n_certain])
            if not tag:
                return pieces
            self._begin("answer", after)
        if self._state == "unsplit":
            self._last = (self._last + self._held)[-(len(_CLOSE) + len(self._held)) :]
            self.has_stray_close = self.has_stray_close or _CLOSE in self._last
            self._last = self._last[-len(_CLOSE) :]
        self._emit(pieces, "answer", self._held)
        return pieces

    def end(self) -> list[Piece]:
        """Return what was held back, at the end of the answer."""
        held, self._held = self._held, ""
        kind: Literal["reasoning", "answer"] = "reasoning" if self._state == "reasoning" else "answer"
        return [(kind, held)] if held else []

    def _begin(self, state: Literal["reasoning", "answer"], rest: str) -> None:
        self._state, self._held, self._is_first = state, rest, True

    def _emit(self, pieces: list[Piece], kind: Literal["reasoning", "answer"], text: str) -> None:
        self._held = self._held[len(text) :]
        if self._is_first:
            text = text.lstrip("\n")
        if text:
            self._is_first = False
            pieces.append((kind, text))


def _length_of_begun_tag(text: str) -> int:
    """Return how many characters at the end may be the beginning of the closing tag."""
    return next((n for n in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:n])), 0)
