"""Makes up chats: what is asked, and what the demo model is to think and answer."""

import random
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tools.demo_model import words
from tools.demo_model.dimensions import SIZE_IN_WORDS
from tools.demo_model.drawing import Shown
from tools.demo_model.tool_use import TOOLS, Call, ToolUse, draw_tool_use
from tools.demo_model.topics import Knowledge, plain
from tools.demo_model.wording import as_typed, reworded, variants

PictureQuestion = Literal["whole", "colour", "shape", "background"]

UNKNOWN_THOUGHT = "This is not a topic I was trained on. I should say so, and point to the Models page."
UNKNOWN_ANSWER = (
    f"I am only the built-in demo model with about {SIZE_IN_WORDS} parameters, so I do not know that. "
    "Please download a real model on the Models page."
)
NO_SHAPE_THOUGHT = "The picture is complex and not a single simple shape. I cannot name it."
NO_SHAPE_ANSWER = (
    "This picture is too complex for me: I only know single simple shapes. A real vision model can describe it."
)

_SUMS = (
    "What is {}+{}?", "What is {} + {}?", "{}+{}", "{} + {}", "{} + {} = ?", "{}+{}=", "How much is {} plus {}?",
    "Add {} and {}", "What is {} plus {}?", "Calculate {} + {}", "{} plus {}", "Compute {}+{}", "Sum of {} and {}",
)  # fmt: skip
_REPEATS = (
    "Say {}", "Repeat: {}", "Repeat after me: {}", "Please say {}", "Say the word {}", 'Say "{}"', "Repeat the word {}",
)  # fmt: skip
_CALLED = (
    "My name is {}", "I am {}", "Hello, my name is {}", "Hi, I am {}", "I'm {}", "My name is {}.", "Call me {}",
    "hi my name is {}", "You can call me {}",
)  # fmt: skip
_WHAT_NAME = (
    "What is my name?", "Who am I?", "Do you know my name?", "Do you remember my name?", "What's my name?",
    "Tell me my name", "what is my name", "How am I called?",
)  # fmt: skip
_LONG = ("count20", "chello", "poem")
"""Topics whose answers cost many tokens: asked less often."""
_NEED_A_TOOL = ("time", "weather")
"""Topics that are answered otherwise when there is a tool."""
_COMMON_SHARE = 0.12
"""Of the topics' questions, those with which people begin."""
_MISSED_SHARE = 0.3
"""Of the topics' questions, those that were missed before, if there are any."""

with (Path(__file__).parent / "pictures.toml").open("rb") as _file:
    PICTURE_QUESTIONS: dict[PictureQuestion, dict[str, list[str]]] = tomllib.load(_file)  # type: ignore[assignment]


class Message(msgspec.Struct, frozen=True):
    role: Literal["user", "assistant", "tool"]
    text: str
    thought: str = ""
    call: Call | None = None
    has_picture: bool = False


class Chat(msgspec.Struct, frozen=True):
    """It ends with the model's message that is to be learnt."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[str, ...] = ()
    """Names of TOOLS."""


def exchange(question: str, thought: str, answer: str, *, has_picture: bool = False) -> tuple[Message, Message]:
    return Message("user", question, has_picture=has_picture), Message("assistant", answer, thought)


def called(use: ToolUse, thought: str) -> tuple[Message, ...]:
    """From the question to the answer; `thought` is the one before the call."""
    return (
        Message("user", use.question),
        Message("assistant", "", thought, use.call),
        Message("tool", use.result),
        Message("assistant", use.answer, use.later_thought),
    )


def addition(rng: random.Random) -> tuple[str, str, str]:
    """Question, thought and answer."""
    a, b = rng.randint(0, 9), rng.randint(0, 9)
    return rng.choice(_SUMS).format(a, b), f"I add {a} and {b}. The sum is {a + b}.", f"{a} + {b} = {a + b}"


def greeting(name: str, rng: random.Random) -> tuple[str, str, str]:
    """Question, thought and answer."""
    thought = f"The user is called {name}. I greet them by name."
    return rng.choice(_CALLED).format(name), thought, f"Nice to meet you, {name}!"


def picture_exchange(
    shown: Shown | None, rng: random.Random, kind: PictureQuestion | None = None, *, new: bool = False
) -> tuple[str, str, str]:
    """Question, thought and answer about a picture; `shown` is None where it has no single shape."""
    kind = kind or rng.choices(("whole", "colour", "shape", "background"), (45, 20, 20, 15))[0]
    question = rng.choice(PICTURE_QUESTIONS[kind]["new" if new else "trained"])
    if question and not new and rng.random() < 0.5:
        question = as_typed(question, rng)
    if shown is None:
        return question, NO_SHAPE_THOUGHT, NO_SHAPE_ANSWER
    shape, background = f"{_a(shown.colour)} {shown.shape}", f"{_a(shown.background)} background"
    thought = f"The picture shows one shape. It is {shape} on {background}."
    answer = {
        "whole": f"{shape[0].upper()}{shape[1:]} on {background}.",
        "colour": f"The shape is {shown.colour}.",
        "shape": f"It is {_a(shown.shape)}.",
        "background": f"The background is {shown.background}.",
    }[kind]
    return question, thought, answer


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


class ChatMaker:
    """Draws chats of all kinds from what is known; none holds a wording that only measures."""

    def __init__(self, knowledge: Knowledge, rng: random.Random, missed: Collection[str] = ()) -> None:
        """`missed` are trained wordings that are asked more often."""
        self._known, self._rng = knowledge, rng
        self._never = knowledge.never_trained()
        self._topics = list(knowledge.topics)
        self._common = [(name, text) for name, topic in knowledge.topics.items() for text in topic.common]
        self._missed = [
            (name, text) for name, topic in knowledge.topics.items() for text in topic.questions if text in missed
        ]
        self._near = knowledge.near()

    def chat(self, max_turns: int = 8) -> Chat:
        """A chat of text, with or without tools."""
        rng = self._rng
        kind = rng.choices(("tool", "name", "no name", "turns"), (14, 11, 3, 72))[0]
        if kind == "tool":
            return self.tool_chat()
        if kind == "name":
            messages = self._name_remembered()
        elif kind == "no name":
            messages = [*self._turns(rng.choice([0, 0, 1])), *self._name_unknown()]
        else:
            n_turns = rng.choices((1, 2, 3, 4, 5, 6, 8), (52, 19, 11, 7, 5, 3, 3))[0]
            messages = self._turns(min(n_turns, max_turns), names=True)
        tools = self._offered(()) if rng.random() < 0.08 and not any(map(self._needs_a_tool, messages)) else ()
        return Chat(tuple(messages), self._system(0.4), tools)

    def tool_chat(self, tool: str | None = None) -> Chat:
        """A question that a tool answers: up to the call, or up to the answer from what the tool gave.

        `tool` is one of CALLED; None: any. A chat may have used another tool before. Half of the calls that lie back
        were made without a thought.
        """
        rng = self._rng
        use = draw_tool_use(rng, tool)
        messages: list[Message] = []
        names = {use.call.name}
        draw = rng.random()
        if draw < 0.2:
            messages += self._turns(1, with_tools=True)
        elif draw < 0.4:
            before = draw_tool_use(rng)
            messages += called(before, rng.choice([before.thought, ""]))
            names.add(before.call.name)
        if rng.random() < 0.5:
            messages += [Message("user", use.question), Message("assistant", "", use.thought, use.call)]
        else:
            messages += called(use, rng.choice([use.thought, ""]))
        return Chat(tuple(messages), self._system(0.3), self._offered(names))

    def _offered(self, needed: Iterable[str]) -> tuple[str, ...]:
        """The tools that are `needed`, and others, in any order."""
        rng = self._rng
        others = rng.sample(list(TOOLS), rng.choice([0, 1, 2, 3, 5, 8]))
        names = list({*needed, *others})
        names.sort()
        rng.shuffle(names)
        return tuple(names)

    def picture_chat(self, shown: Shown | None) -> Chat:
        """A chat about one picture, with text before or after it, or a second question about it."""
        rng = self._rng
        about = list(exchange(*picture_exchange(shown, rng), has_picture=True))
        draw = rng.random()
        if draw < 0.15:
            about += exchange(*picture_exchange(shown, rng))
        elif draw < 0.25:
            about += self._turns(1, without=("noimage",))
        elif draw < 0.35:
            about = [*self._turns(1), *about]
        return Chat(tuple(about), self._system(0.35))

    def topic(self) -> tuple[str, str, str]:
        """Question, thought and answer of one topic, worded anew."""
        rng = self._rng
        draw = rng.random()
        if draw < _COMMON_SHARE:
            name, wording = rng.choice(self._common)
            question = rng.choice(variants(wording))
        elif self._missed and draw < _COMMON_SHARE + _MISSED_SHARE:
            name, wording = rng.choice(self._missed)
            question = self._worded(lambda: wording)
        else:
            name = rng.choice(self._topics)
            if name in _LONG and rng.random() < 0.6:
                name = rng.choice(self._topics)
            question = self._worded(lambda: rng.choice(self._known.topics[name].questions), reworded_share=0.4)
        topic = self._known.topics[name]
        return question, topic.thought, topic.answer

    def unknown(self) -> tuple[str, str, str]:
        """A question that no topic answers: made up, like a topic, or of the list."""
        rng, draw = self._rng, self._rng.random()
        if draw < 0.03:
            return words.pasted_text(rng), UNKNOWN_THOUGHT, UNKNOWN_ANSWER
        if draw < 0.36:
            question = self._worded(lambda: words.made_up_question(rng))
        elif draw < 0.68:
            question = self._worded(lambda: rng.choice(self._near), reworded_share=0.3)
        else:
            question = self._worded(lambda: rng.choice(self._known.unknown.trained), reworded_share=0.2)
        return question, UNKNOWN_THOUGHT, UNKNOWN_ANSWER

    def _worded(self, draw: Callable[[], str], reworded_share: float = 0.0) -> str:
        rng = self._rng
        while True:
            question = draw()
            if rng.random() < reworded_share:
                question = reworded(question, rng)
            typed = as_typed(question, rng)
            if not {plain(question), plain(typed)} & self._never:
                return typed

    def _system(self, share: float) -> str:
        return words.draw(self._rng, "system") if self._rng.random() < share else ""

    def _turns(
        self, count: int, *, names: bool = False, without: Sequence[str] = (), with_tools: bool = False
    ) -> list[Message]:
        """`names`: people may introduce themselves. `without`: topics that would be wrong here.

        `with_tools`: tools are offered, so nothing is asked for which one would be called.
        """
        messages: list[Message] = []
        while len(messages) < 2 * count:
            turn = exchange(*self._turn(names=names))
            if not self._says(turn[1].text, without) and not (with_tools and any(map(self._needs_a_tool, turn))):
                messages += turn
        return messages

    def _turn(self, *, names: bool) -> tuple[str, str, str]:
        rng = self._rng
        kinds = ("topic", "sum", "unknown", "repeat", "name" if names else "unknown")
        match rng.choices(kinds, (68.0, 7.0, 20.0, 2.5, 2.5))[0]:
            case "topic":
                return self.topic()
            case "sum":
                return addition(rng)
            case "repeat":
                word = words.draw(rng, "word") if rng.random() < 0.4 else words.person(rng).lower()
                said = f"{word[0].upper()}{word[1:]}."
                return rng.choice(_REPEATS).format(word), f"I repeat the word {word}.", said
            case "name":
                return greeting(words.person(rng), rng)
        return self.unknown()

    def _name_remembered(self) -> list[Message]:
        rng = self._rng
        name = words.person(rng)
        asked = (rng.choice(_WHAT_NAME), f"The user told me the name {name}.", f"Your name is {name}.")
        between = self._turns(rng.choice([0, 0, 1, 1, 2]))
        return [*exchange(*greeting(name, rng)), *between, *exchange(*asked)]

    def _name_unknown(self) -> Sequence[Message]:
        asked = self._rng.choice(_WHAT_NAME)
        return exchange(asked, "The user did not tell me a name yet.", "I do not know your name yet. Please tell me!")

    def _needs_a_tool(self, message: Message) -> bool:
        """Whether a tool would be called for it: for the time, the weather, and whatever has numbers."""
        if message.role == "assistant":
            return self._says(message.text, _NEED_A_TOOL)
        return re.search(r"\d", message.text) is not None

    def _says(self, text: str, topics: Sequence[str]) -> bool:
        return any(text == self._known.topics[name].answer for name in topics)
