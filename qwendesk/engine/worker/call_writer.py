"""Send the tool calls of an answer: their names and arguments as they come, then each call as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qwendesk.engine.protocol import CallDelta, Called, Event
from qwendesk.engine.worker.call_parser import parse_call
from qwendesk.engine.worker.call_stream import CallStream
from qwendesk.engine.worker.call_tags import names_by_form
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
