"""Holds the demo model, asked through a real worker, to the rates of its data sheet.

The questions are in tests/data/demo_sample.json; additions, chats and pictures are made here, the same each time. An
answer counts only if it is right to the last character and the model ended it by itself.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.messages import Message, text_message
from qwendesk.engine import protocol as p
from tests.engine.worker.process import Answer, WorkerProcess, demo_options, greedy, user, worker_process
from tests.pictures import ShapePicture, blocks_picture, varied_shapes

# What resources/demo/README.md says under "Measured".
TRAINED = {False: 2573 / 2603, True: 2514 / 2603}
"""With thinking on, the thought must be the trained one too."""
NEW_WORDINGS = 186 / 250
UNKNOWN = 38 / 40
ADDITIONS = 80 / 80
SEVERAL_TURNS = 144 / 150
SQUARE_PICTURES = 0.977
"""Colour and shape; the background may be wrong."""
PICTURE_AGAIN = 95 / 96
NO_SHAPE_REFUSED = 96 / 96
TOOL_CALLED = 108 / 126
DRAFTS_ACCEPTED = 0.6
"""The least that tests of drafts need, two at once. The head has 0.9 and more."""

ALLOWANCE = 0.03
"""How far below its measured rate a group may fall: these are other, and fewer, questions."""

SYSTEM_PROMPTS = ("", "You are a helpful assistant.", "Answer briefly.")
FACTORS = ((12, 34), (128, 46), (7, 250), (99, 11), (365, 24), (15, 15), (81, 9), (640, 480))
TOOLS = tuple(
    json.dumps({"type": "function", "function": {"name": name, "description": text, "parameters": parameters}})
    for name, text, parameters in (
        ("current_time", "The date and the time.", {"type": "object", "properties": {}}),
        (
            "calculate",
            "Calculates.",
            {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
        ),
    )
)
SUMS = ("What is {a}+{b}?", "{a} + {b}", "How much is {a} plus {b}?", "{a}+{b}=", "Add {a} and {b}")
NO_PICTURE_SHAPE = (
    "This picture is too complex for me: I only know single simple shapes. A real vision model can describe it."
)


class Topic(msgspec.Struct, frozen=True):
    """What the model was trained to think and answer, two questions it was trained on, and one it was not."""

    name: str
    thought: str
    answer: str
    trained: tuple[str, str]
    new: str


class Sample(msgspec.Struct, frozen=True):
    unknown_thought: str
    unknown_answer: str
    unknown: tuple[str, ...]
    """Not in the training either; the next ones were."""
    unknown_trained: tuple[str, ...]
    names: tuple[str, ...]
    """The first half were not in the training."""
    topics: tuple[Topic, ...]


SAMPLE = msgspec.json.decode((Path(__file__).parents[1] / "data/demo_sample.json").read_bytes(), type=Sample)


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with worker_process() as process:
        # Two threads wait for each other at every step: with other work on the machine that costs a hundredfold.
        process.load(demo_options(n_threads=1))
        yield process


def ask(worker: WorkerProcess, messages: Sequence[Message], *, thinking: bool) -> Answer:
    """The likeliest answer. Thinking on must give a thought and thinking off none, whatever is answered."""
    answer = worker.ask(messages, greedy(enable_thinking=thinking, max_tokens=512))
    assert bool(answer.reasoning.strip()) if thinking else not answer.reasoning, (messages[-1].text, answer.reasoning)
    return answer


def is_right(answer: Answer, text: str, *, thought: str = "") -> bool:
    """`thought` is compared only if there was to be one."""
    thought_right = not thought or not answer.reasoning or answer.reasoning.strip() == thought
    return answer.stop_reason == "eos" and answer.text.strip() == text and thought_right


class Tally:
    """Counts right answers of one group and remembers the others."""

    def __init__(self) -> None:
        self.asked = 0
        self.misses: list[str] = []

    def count(self, messages: Sequence[Message], answer: Answer, *, right: bool, note: str = "") -> None:
        self.asked += 1
        if not right:
            seen = f"thought {answer.reasoning.strip()!r}, " if answer.reasoning else ""
            self.misses.append(
                f"{messages[-1].text!r} {note} (message {len(messages)}): {seen}answered {answer.text!r}, "
                f"ended by {answer.stop_reason}"
            )

    def holds(self, measured: float) -> None:
        right = self.asked - len(self.misses)
        print(f"{right} of {self.asked}, measured {measured:.1%}")
        lines = "\n".join(self.misses)
        assert right / self.asked >= measured - ALLOWANCE, f"{right} of {self.asked} for {measured:.1%}:\n{lines}"


@pytest.mark.parametrize("thinking", [False, True], ids=["no-think", "think"])
def test_trained_questions_are_answered(worker: WorkerProcess, thinking: bool) -> None:
    tally = Tally()
    for index, topic in enumerate(SAMPLE.topics):
        system = SYSTEM_PROMPTS[index % len(SYSTEM_PROMPTS)]
        chat = [*([text_message("system", system)] if system else []), user(topic.trained[thinking])]
        answer = ask(worker, chat, thinking=thinking)
        tally.count(chat, answer, right=is_right(answer, topic.answer, thought=topic.thought))
    tally.holds(TRAINED[thinking])


def test_reworded_questions_are_answered(worker: WorkerProcess) -> None:
    tally = Tally()
    for index, topic in enumerate(SAMPLE.topics):
        chat = [user(topic.new)]
        answer = ask(worker, chat, thinking=index % 2 == 0)
        tally.count(chat, answer, right=is_right(answer, topic.answer))
    tally.holds(NEW_WORDINGS)


def test_unknown_questions_are_answered_plainly(worker: WorkerProcess) -> None:
    tally = Tally()
    for index, question in enumerate(SAMPLE.unknown):
        chat = [user(question)]
        answer = ask(worker, chat, thinking=index % 2 == 0)
        tally.count(chat, answer, right=is_right(answer, SAMPLE.unknown_answer))
    tally.holds(UNKNOWN)


def addition(index: int) -> tuple[str, str, str]:
    """Question, thought and answer. The first hundred are all different."""
    a, b = divmod(index * 37 % 100, 10)
    return SUMS[index % len(SUMS)].format(a=a, b=b), f"I add {a} and {b}. The sum is {a + b}.", f"{a} + {b} = {a + b}"


def test_sums_are_right(worker: WorkerProcess) -> None:
    tally = Tally()
    for index in range(40):
        question, thought, text = addition(index)
        chat = [user(question)]
        answer = ask(worker, chat, thinking=index % 2 == 0)
        tally.count(chat, answer, right=is_right(answer, text, thought=thought))
    tally.holds(ADDITIONS)


def test_name_is_remembered_in_later_turns(worker: WorkerProcess) -> None:
    """The model's own answers, thoughts included, go into the next turn, as in the app."""
    tally = Tally()
    for index, name in enumerate(SAMPLE.names):
        chat = [user(f"My name is {name}")]
        greeting = ask(worker, chat, thinking=index % 2 == 0)
        tally.count(chat, greeting, right=is_right(greeting, f"Nice to meet you, {name}!"))
        chat.append(greeting.message)
        if index % 4 >= 2:
            chat.append(user("What is VRAM spill?"))
            chat.append(ask(worker, chat, thinking=index % 2 == 1).message)
        chat.append(user("What is my name?"))
        answer = ask(worker, chat, thinking=index % 2 == 1)
        tally.count(chat, answer, right=is_right(answer, f"Your name is {name}."), note=name)
    tally.holds(SEVERAL_TURNS)


def trained_turn(rng: random.Random) -> tuple[str, str, str]:
    """Question, thought and answer, of the kinds and in about the shares of the training."""
    kind = rng.random()
    if kind < 0.1:
        return addition(rng.randrange(100))
    if kind < 0.3:
        return rng.choice(SAMPLE.unknown_trained), SAMPLE.unknown_thought, SAMPLE.unknown_answer
    topic = rng.choice(SAMPLE.topics)
    return rng.choice(topic.trained), topic.thought, topic.answer


def test_last_answer_of_a_longer_chat_is_right(worker: WorkerProcess) -> None:
    tally, rng = Tally(), random.Random(7)
    for index in range(35):
        system = SYSTEM_PROMPTS[index % len(SYSTEM_PROMPTS)]
        chat = [text_message("system", system)] if system else []
        for _ in range(1 + index % 4):
            question, thought, text = trained_turn(rng)
            chat += [user(question), text_message("assistant", text, reasoning=rng.choice(["", thought]))]
        question, _, text = trained_turn(rng)
        chat.append(user(question))
        answer = ask(worker, chat, thinking=index % 2 == 0)
        tally.count(chat, answer, right=is_right(answer, text))
    tally.holds(SEVERAL_TURNS)


def test_tools_are_called_with_what_was_asked(worker: WorkerProcess) -> None:
    asked = [("What time is it?", "current_time", {})]
    asked += [(f"What is {a} * {b}?", "calculate", {"expression": f"{a} * {b}"}) for a, b in FACTORS]
    tally = Tally()
    for index, (question, name, arguments) in enumerate(asked):
        chat = [user(question)]
        answer = worker.ask(chat, greedy(enable_thinking=index % 2 == 0, max_tokens=512), tools_json=TOOLS)
        made = [event.call for event in answer.events if isinstance(event, p.Called) and event.call is not None]
        calls = [(call.name, json.loads(call.arguments_json)) for call in made]
        tally.count(chat, answer, right=calls == [(name, arguments)], note=str(calls))
    tally.holds(TOOL_CALLED)


def test_drafts_of_its_head_are_accepted() -> None:
    with worker_process() as process:
        process.load(demo_options(n_threads=1, speculative="mtp", draft_n_max=2))
        drafted = accepted = 0
        for topic in SAMPLE.topics[::4]:
            stats = ask(process, [user(topic.trained[0])], thinking=True).stats
            drafted, accepted = drafted + stats.drafted_tokens, accepted + stats.accepted_tokens
    # On a busy machine drafts seem not to pay off and pause for 96 tokens at a time: 12 tokens drafted in about 110.
    assert drafted > 40
    assert accepted / drafted >= DRAFTS_ACCEPTED


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def described(picture: ShapePicture) -> str:
    text = f"{with_article(picture.colour)} {picture.shape} on {with_article(picture.background)} background."
    return text[0].upper() + text[1:]


def test_shapes_in_pictures_are_named(worker: WorkerProcess, tmp_path: Path) -> None:
    tally = Tally()
    questions = ["What is in this picture?", "Describe this picture", "What do you see?"]
    for index, picture in enumerate(varied_shapes(64, seed=1)):
        path = tmp_path / f"{index}.png"
        picture.draw().save(path)
        chat = [user(questions[index % len(questions)], path)]
        answer = ask(worker, chat, thinking=index % 2 == 0)
        right = answer.stop_reason == "eos" and f"{picture.colour} {picture.shape} on" in answer.text
        tally.count(chat, answer, right=right, note=str(picture))
    tally.holds(SQUARE_PICTURES)


def test_second_question_about_a_picture_is_answered(worker: WorkerProcess, tmp_path: Path) -> None:
    tally = Tally()
    for index, picture in enumerate(varied_shapes(24, seed=2)):
        path = tmp_path / f"{index}.png"
        picture.draw().save(path)
        question, text = [
            ("What colour is it?", f"The shape is {picture.colour}."),
            ("What shape is it?", f"It is {with_article(picture.shape)}."),
            ("What is the background colour?", f"The background is {picture.background}."),
        ][index % 3]
        first = [user("What is in this picture?", path), text_message("assistant", described(picture))]
        chat = [*first, user(question)]
        answer = ask(worker, chat, thinking=index % 2 == 0)
        tally.count(chat, answer, right=is_right(answer, text), note=str(picture))
    tally.holds(PICTURE_AGAIN)


def test_picture_without_a_shape_is_answered_with_a_refusal(worker: WorkerProcess, tmp_path: Path) -> None:
    tally, rng = Tally(), random.Random(3)
    for index in range(8):
        path = tmp_path / f"{index}.png"
        blocks_picture(rng).save(path)
        chat = [user("What is in this picture?", path)]
        answer = ask(worker, chat, thinking=index % 2 == 0)
        tally.count(chat, answer, right=is_right(answer, NO_PICTURE_SHAPE))
    tally.holds(NO_SHAPE_REFUSED)
