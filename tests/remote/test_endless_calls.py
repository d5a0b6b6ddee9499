"""A server that sends tool calls without an end is cut off."""

import pytest

from tests.remote.made_up_server import Stream, piece
from tests.remote.test_answers import answered


@pytest.mark.parametrize(
    "call",
    [
        lambda number: {"index": 0, "function": {"name": "" if number else "write", "arguments": "a" * 2000}},
        lambda number: {"index": number, "id": f"c{number}", "function": {"name": "write", "arguments": "{}"}},
    ],
)
async def test_calls_without_an_end_end_the_answer(remote, call):
    """The window would stand still for longer with each piece."""
    endless = [piece({"tool_calls": [call(number)]}) for number in range(300)]
    _, answer = await answered(remote, Stream([piece({"content": "I write it."}), *endless, piece({}, "tool_calls")]))
    assert answer.text == "I write it."
    assert "more than an answer has" in answer.error
    assert not answer.steps
