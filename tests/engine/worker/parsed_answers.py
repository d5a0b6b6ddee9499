"""What the worker makes of the tokens of an answer that no model wrote."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine import protocol as p
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.repetition import LoopWatch
from qwendesk.engine.worker.tools import CallableTool
from qwendesk.engine.worker.writer import CallWriter, Writer
from tests.engine.worker.conftest import Demo
from tests.engine.worker.made_calls import TOOLS


class ParsedAnswer(msgspec.Struct, frozen=True):
    reasoning: str
    text: str
    calls: tuple[p.Called, ...]


def writer_for(
    demo: Demo, events: list[p.Event], *, in_reasoning: bool = False, tools: Mapping[str, CallableTool] = TOOLS
) -> Writer:
    """A writer that sends to `events`."""
    special = demo.vocabulary.user_defined
    session = SimpleNamespace(
        model=SimpleNamespace(piece=demo.pieces.__getitem__),
        special=special.get,
        call_tags=(special["<tool_call>"], special["</tool_call>"]),
    )
    options = GenerationOptions()
    return Writer(
        cast("Session", session), options, 1, events.append, in_reasoning=in_reasoning,
        loops=LoopWatch(options), calls=CallWriter(tools, 1, events.append) if tools else None,
    )  # fmt: skip


def parsed(
    demo: Demo, answer: str, *, in_reasoning: bool = False, tools: Mapping[str, CallableTool] = TOOLS
) -> ParsedAnswer:
    """Let the worker read the tokens of `answer`. `in_reasoning` says whether the prompt has opened the thinking."""
    events: list[p.Event] = []
    writer = writer_for(demo, events, in_reasoning=in_reasoning, tools=tools)
    for token in demo.tokenize(answer, parse_special=True):
        writer.write(token)
    writer.finish(can_continue=False)
    texts = {"reasoning": "", "answer": ""}
    for event in events:
        if isinstance(event, p.Delta):
            texts[event.kind] += event.text
    calls = tuple(event for event in events if isinstance(event, p.Called))
    return ParsedAnswer(texts["reasoning"], texts["answer"], calls)
