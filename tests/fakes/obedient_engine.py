"""A scripted engine that obeys every order it reads, wherever the order stands."""

import json
from collections.abc import Sequence

from qwendesk.core.messages import ToolCall
from qwendesk.engine.protocol import Generate
from tests.fakes.answer_stream import FakeAnswerStream, ScriptedAnswer
from tests.fakes.engine import FakeEngineClient

Round = tuple[ToolCall, ...]
"""Calls of one answer."""


class ObedientEngine(FakeEngineClient):
    """Makes its first calls, and once it reads the order, those that the order asks for, round by round.

    Then it calls the calculator, as the user had asked, and answers.
    """

    def __init__(self, order: str, obeys: Sequence[Round], *, reasoning: str = "", text: str = "") -> None:
        """`reasoning` and `text` are what it writes before it obeys."""
        super().__init__()
        self.first: Round = ()
        """Calls that the user wants, which bring the order."""
        self.order = order
        self.written_on: dict[str, str] = {}
        """What stands on the pictures that it may get, by their hash."""
        self.has_read_order = False
        self._reasoning, self._text = reasoning, text
        self._left = [*obeys, (ToolCall("calculate", '{"expression": "6 * 7"}'),)]

    def generate(self, request: Generate) -> FakeAnswerStream:
        self.answers = [self._answer(_squeezed(self._read(request)))]
        return super().generate(request)

    def _answer(self, read: str) -> ScriptedAnswer:
        if _squeezed(self.order) not in read:
            first, self.first = self.first, ()
            return ScriptedAnswer(calls=first) if first else ScriptedAnswer(text="There is no order.")
        is_first = not self.has_read_order
        self.has_read_order = True
        calls = self._left.pop(0) if self._left else ()
        if not calls:
            return ScriptedAnswer(text="Done.")
        return ScriptedAnswer(
            reasoning=self._reasoning if is_first else "", text=self._text if is_first else "", calls=calls
        )

    def _read(self, request: Generate) -> str:
        """Return all texts of a request."""
        texts = [_texts(json.loads(each)) for each in request.tools_json]
        for message in request.messages:
            texts += [message.reasoning, message.text, *(self.written_on[each.sha256] for each in message.images)]
        return "\n".join(texts)


def _texts(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(map(_texts, value.values()))
    return "\n".join(map(_texts, value)) if isinstance(value, list) else str(value)


def _squeezed(text: str) -> str:
    """Return `text` without white space: a file may come with other line breaks."""
    return "".join(text.split())
