"""Two hundred made conversations with tool calls, in both dialects, and the ways in which models damage their calls."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from qwendesk.core.messages import Message, ToolCall, text_message
from qwendesk.engine.worker.call_grammar import CallDialect
from tests.engine.worker.made_calls import written
from tests.engine.worker.templates import QWEN_LIKE, WITH_JSON_CALLS

DIALECTS: tuple[CallDialect, ...] = ("xml", "json")
TEMPLATES: Mapping[CallDialect, str] = {"xml": QWEN_LIKE, "json": WITH_JSON_CALLS}
N_CONVERSATIONS = 200
MOST_CALLS = 3
"""In one conversation, each in a round of its own."""
TEXT_AFTER = "That is all."
WORDS = (
    "the", "boat", "drifts", "when", "frame", "time", "grows", "so", "clamp", "step", "to", "thirty", "hertz", "and",
    "try", "again", "with", "care",
)  # fmt: skip


class Made(msgspec.Struct, frozen=True):
    """What the model meant: the reasoning is empty with thinking off, and the name in an answer without a call."""

    reasoning: str
    text: str
    name: str = ""
    arguments: dict[str, Any] = {}
    dialect: CallDialect = "xml"

    @property
    def call(self) -> str:
        return f"<tool_call>{written(self.name, self.arguments, self.dialect)}</tool_call>"

    @property
    def head(self) -> str:
        """Everything before the call. The prompt has opened the thinking, or closed it if it is off."""
        return f"{self.reasoning}\n</think>\n\n{self.text}\n\n" if self.reasoning else f"{self.text}\n\n"

    @property
    def message(self) -> Message:
        """The answer as later requests have it."""
        calls = (ToolCall(self.name, json.dumps(self.arguments, ensure_ascii=False)),) if self.name else ()
        said = text_message("assistant", self.text, reasoning=self.reasoning)
        return msgspec.structs.replace(said, tool_calls=calls)


Damage = Callable[[Made], str]
"""Returns the answer as the model wrote it."""


def _in_call(change: Callable[[str], str]) -> Damage:
    return lambda made: made.head + change(made.call)


def _replaced(old: str, new: str) -> Damage:
    """The answer with the last `old` in its call replaced."""
    return _in_call(lambda call: new.join(call.rsplit(old, 1)))


def _other_dialect(made: Made) -> str:
    other: CallDialect = "json" if made.dialect == "xml" else "xml"
    return made.head + f"<tool_call>{written(made.name, made.arguments, other)}</tool_call>"


def _arguments_in_a_string(made: Made) -> str:
    call = {"name": made.name, "arguments": json.dumps(made.arguments, ensure_ascii=False)}
    return made.head + f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


_OF_BOTH: Mapping[str, Damage] = {
    "none": lambda made: made.head + made.call,
    "in thinking": lambda made: f"{made.reasoning}\n{made.call}" if made.reasoning else made.head + made.call,
    "second <think>": lambda made: f"<think>\n{made.head}{made.call}" if made.reasoning else made.head + made.call,
    "stray </think> after": lambda made: f"{made.head}{made.call}</think>",
    "stray </tool_call> before": lambda made: f"{made.head}</tool_call>{made.call}",
    "twice <tool_call>": lambda made: f"{made.head}<tool_call>{made.call}",
    "no </tool_call>": _replaced("</tool_call>", ""),
    "other dialect": _other_dialect,
    "text after": lambda made: f"{made.head}{made.call}\n{TEXT_AFTER}",
    "Python literal": _in_call(lambda call: call.replace('["', "['").replace('"]', "']")),
}
DAMAGES: Mapping[CallDialect, Mapping[str, Damage]] = {
    "xml": {
        **_OF_BOTH,
        "no </function>": _replaced("</function>\n", ""),
        "no last tags": _replaced("\n</parameter>\n</function>", ""),
        "no </parameter>": _in_call(lambda call: call.replace("\n</parameter>\n<parameter=", "\n<parameter=")),
        "no line breaks": _in_call(lambda call: call.replace(">\n<", "><")),
        "empty text on two lines": _in_call(lambda call: call.replace(">\n\n</parameter>", ">\n</parameter>")),
        "empty text on one line": _in_call(lambda call: call.replace(">\n\n</parameter>", "></parameter>")),
        "spaces in tags": _in_call(lambda call: call.replace("<parameter=", "<parameter = ")),
    },
    "json": {
        **_OF_BOTH,
        "no last brace": _replaced("}}\n", "}\n"),
        "comma at the end": _replaced("}}\n", ",}}\n"),
        "line break in a string": _in_call(lambda call: call.replace("\\n", "\n")),
        "code fence": _in_call(
            lambda call: call.replace("<tool_call>\n", "<tool_call>\n```json\n").replace("\n</", "\n```\n</")
        ),
        "arguments in a string": _arguments_in_a_string,
    },
}


class Round(msgspec.Struct, frozen=True):
    """An answer of the model."""

    made: Made
    damage: str
    written: str
    result: str = ""
    """Of its call."""

    @property
    def text(self) -> str:
        """The text that stands in the answer beside the call, its white space aside."""
        if self.damage == "in thinking":
            return ""
        return f"{self.made.text} {TEXT_AFTER}" if self.damage == "text after" else self.made.text


class Conversation(msgspec.Struct, frozen=True):
    """A question, answers with calls and their results, and a last answer without a call."""

    dialect: CallDialect
    thinking: bool
    question: str
    rounds: tuple[Round, ...]

    def messages_before(self, number: int) -> tuple[Message, ...]:
        """Return what the model reads before it writes the answer of round `number`: what was meant, undamaged."""
        messages = [text_message("system", "Answer briefly."), text_message("user", self.question)]
        for each in self.rounds[:number]:
            messages += [each.made.message, text_message("tool", each.result)]
        return tuple(messages)


def made_answer(rng: random.Random, dialect: CallDialect, *, thinking: bool) -> Made:
    """Return an answer with a call."""
    arguments: dict[str, Any]
    if rng.random() < 0.7:
        name = "edit_file"
        new = f"{_words(rng)}\n  {_words(rng)}"
        old = _words(rng)
        if rng.random() < 0.3:
            old, new = rng.choice((("", new), (old, "")))
        arguments = {"path": f"src/{rng.choice(WORDS)}.py", "old": old, "new": new}
        if rng.random() < 0.5:
            arguments["line"] = rng.randint(1, 999)
    elif rng.random() < 0.4:
        name, arguments = "send mail", {"whom to": _words(rng), 'the "text"': rng.choice(("", _words(rng)))}
    else:
        name, arguments = "search", {"words": [rng.choice(WORDS)], "where": {"city": rng.choice(WORDS)}}
    return Made(_words(rng) if thinking else "", _words(rng), name, arguments, dialect)


def made_conversations() -> list[Conversation]:
    """Return the same conversations each time. Their calls go through all kinds of damage in turn."""
    kinds = {(dialect, thinking): 0 for dialect in DIALECTS for thinking in (True, False)}
    conversations = []
    for number in range(N_CONVERSATIONS):
        rng, dialect, thinking = random.Random(number), DIALECTS[number % 2], number // 2 % 2 == 0
        rounds = []
        for _ in range(rng.randint(1, MOST_CALLS)):
            damages = list(DAMAGES[dialect].items())
            damage, write = damages[kinds[dialect, thinking] % len(damages)]
            kinds[dialect, thinking] += 1
            made = made_answer(rng, dialect, thinking=thinking)
            answer = write(made)
            is_damaged = answer != made.head + made.call
            rounds.append(Round(made, damage if is_damaged else "none", answer, _words(rng)))
        last = Made(_words(rng) if thinking else "", _words(rng), dialect=dialect)
        rounds.append(Round(last, "none", last.head.strip()))
        conversations.append(Conversation(dialect, thinking, f"{_words(rng)}?", tuple(rounds)))
    return conversations


def _words(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 12)))
