"""Two hundred made answers with calls, in both dialects, damaged in a dozen ways: no text and no call is lost."""

import json
import random
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine import protocol as p
from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.call_writer import CallWriter
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.loop_watch import LoopWatch
from qwendesk.engine.worker.writer import Writer
from tests.engine.worker.conftest import Demo
from tests.engine.worker.made_calls import TOOLS, written

DIALECTS: tuple[CallDialect, ...] = ("xml", "json")
WORDS = (
    "the", "boat", "drifts", "when", "frame", "time", "grows", "so", "clamp", "step", "to", "thirty", "hertz", "and",
    "try", "again", "with", "care",
)  # fmt: skip


class Made(msgspec.Struct, frozen=True):
    """What the model meant: the reasoning is empty with thinking off."""

    reasoning: str
    text: str
    name: str
    arguments: dict[str, Any]
    dialect: CallDialect

    @property
    def call(self) -> str:
        return f"<tool_call>{written(self.name, self.arguments, self.dialect)}</tool_call>"

    @property
    def head(self) -> str:
        """Everything before the call. The prompt has opened the thinking, or closed it if it is off."""
        return f"{self.reasoning}\n</think>\n\n{self.text}\n\n" if self.reasoning else f"{self.text}\n\n"


def replaced(old: str, new: str) -> Callable[[Made], str]:
    """The answer with the last `old` in its call replaced."""

    def damage(made: Made) -> str:
        before, found, after = made.call.rpartition(old)
        return made.head + (before + new + after if found else made.call)

    return damage


def other_dialect(made: Made) -> str:
    other: CallDialect = "json" if made.dialect == "xml" else "xml"
    return made.head + f"<tool_call>{written(made.name, made.arguments, other)}</tool_call>"


DAMAGES: Mapping[str, Callable[[Made], str]] = {
    "none": lambda made: made.head + made.call,
    "in thinking": lambda made: f"{made.reasoning}\n{made.call}" if made.reasoning else made.head + made.call,
    "stray </think> after": lambda made: f"{made.head}{made.call}</think>",
    "stray </tool_call> before": lambda made: f"{made.head}</tool_call>{made.call}",
    "twice <tool_call>": lambda made: f"{made.head}<tool_call>{made.call}",
    "no </tool_call>": replaced("</tool_call>", ""),
    "no </function>": replaced("</function>\n", ""),
    "no last tag": replaced("\n</parameter>\n</function>", ""),
    "no </parameter>": lambda made: made.head + made.call.replace("\n</parameter>\n<parameter=", "\n<parameter="),
    "no line breaks": lambda made: made.head + made.call.replace(">\n<", "><"),
    "no last brace": replaced("}}\n", "}\n"),
    "other dialect": other_dialect,
    "text after": lambda made: f"{made.head}{made.call}\nThat is all.",
}


def made_answer(rng: random.Random, dialect: CallDialect) -> Made:
    def words(least: int) -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, 12)))

    arguments: dict[str, Any]
    if rng.random() < 0.7:
        name = "edit_file"
        arguments = {"path": f"src/{rng.choice(WORDS)}.py", "old": words(1), "new": f"{words(1)}\n  {words(1)}"}
        if rng.random() < 0.5:
            arguments["line"] = rng.randint(1, 999)
    else:
        name, arguments = "search", {"words": [rng.choice(WORDS)], "where": {"city": rng.choice(WORDS)}}
    return Made(words(2) if rng.random() < 0.5 else "", words(2), name, arguments, dialect)


def read(demo: Demo, made: Made, answer: str) -> tuple[str, str, list[p.Called]]:
    """Reasoning, text and calls that the writer makes of the answer's tokens."""
    events: list[p.Event] = []
    special = demo.vocabulary.user_defined
    session = SimpleNamespace(
        model=SimpleNamespace(piece=demo.pieces.__getitem__),
        special=special.get,
        call_tags=(special["<tool_call>"], special["</tool_call>"]),
    )
    options = GenerationOptions()
    writer = Writer(
        cast("Session", session), options, 1, events.append, in_reasoning=bool(made.reasoning),
        loops=LoopWatch(options), calls=CallWriter(TOOLS, 1, events.append),
    )  # fmt: skip
    for token in demo.tokenize(answer, parse_special=True):
        writer.write(token)
    writer.finish(can_continue=False)
    texts = {"reasoning": "", "answer": ""}
    for event in events:
        if isinstance(event, p.Delta):
            texts[event.kind] += event.text
    return texts["reasoning"], texts["answer"], [event for event in events if isinstance(event, p.Called)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_no_text_and_no_call_is_lost(demo: Demo, damage: str, dialect: CallDialect) -> None:
    rng = random.Random(f"{damage} {dialect}")
    for _ in range(8):
        made = made_answer(rng, dialect)

        reasoning, text, calls = read(demo, made, DAMAGES[damage](made))

        assert reasoning.strip() == made.reasoning
        expected = "" if damage == "in thinking" and made.reasoning else made.text
        assert " ".join(text.split()) == expected + (" That is all." if damage == "text after" else "")
        assert len(calls) == 1
        assert calls[0].call is not None, calls[0].text
        assert (calls[0].call.name, json.loads(calls[0].call.arguments_json)) == (made.name, made.arguments)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_without_its_first_tag_is_one(demo: Demo, dialect: CallDialect) -> None:
    made = made_answer(random.Random(3), "xml")
    for answer in (made.call.removeprefix("<tool_call>\n"), made.call.removeprefix("<tool_call>\n") + "\nDone."):
        _, text, calls = read(demo, made, made.head + answer)
        assert [json.loads(call.call.arguments_json) for call in calls if call.call] == [made.arguments]
        assert " ".join(text.split()) == made.text + (" Done." if answer.endswith("Done.") else "")


def test_code_that_shows_a_call_is_text(demo: Demo) -> None:
    made = made_answer(random.Random(5), "xml")
    call = made.call.removeprefix("<tool_call>").removesuffix("</tool_call>")
    for answer in (f"Like this:\n```{call}```\nThat is it.", f"Write <function={made.name}> to call it."):
        _, text, calls = read(demo, msgspec.structs.replace(made, reasoning=""), answer)
        assert text == answer
        assert not calls


def test_a_call_that_is_cut_off_is_never_a_call(demo: Demo) -> None:
    made = made_answer(random.Random(4), "xml")
    events: list[p.Event] = []
    special = demo.vocabulary.user_defined
    session = SimpleNamespace(
        model=SimpleNamespace(piece=demo.pieces.__getitem__),
        special=special.get,
        call_tags=(special["<tool_call>"], special["</tool_call>"]),
    )
    writer = Writer(
        cast("Session", session), GenerationOptions(), 1, events.append, in_reasoning=False,
        loops=LoopWatch(GenerationOptions()), calls=CallWriter(TOOLS, 1, events.append),
    )  # fmt: skip
    head, whole = demo.tokenize(made.text, parse_special=True), demo.tokenize(made.call, parse_special=True)
    for token in (*head, *whole[:-3]):
        writer.write(token)
    writer.finish(can_continue=True)

    [called] = [event for event in events if isinstance(event, p.Called)]
    assert (called.call, called.is_finished) == (None, False)
    assert writer.tokens == head, "the answer continues before the call"
    assert writer.n_calls == 0


def test_without_tools_a_call_is_text(demo: Demo) -> None:
    events: list[p.Event] = []
    session = SimpleNamespace(
        model=SimpleNamespace(piece=demo.pieces.__getitem__), special=demo.vocabulary.user_defined.get
    )
    writer = Writer(
        cast("Session", session), GenerationOptions(), 1, events.append, in_reasoning=False,
        loops=LoopWatch(GenerationOptions()),
    )  # fmt: skip
    call = "<tool_call>\n<function=current_time>\n</function>\n</tool_call>"
    for token in demo.tokenize(call, parse_special=True):
        writer.write(token)
    writer.finish(can_continue=False)
    assert "".join(event.text for event in events if isinstance(event, p.Delta)) == call
