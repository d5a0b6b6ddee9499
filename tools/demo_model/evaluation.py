"""Measures the demo model through the app's own engine: the likeliest tokens, right only if the whole answer is."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from PIL import Image

from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Part, TextPart, ToolCall
from qwendesk.core.messages import Message as AppMessage
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Called, Delta, Finished, Generate
from tools.demo_model import words
from tools.demo_model.chats import (
    UNKNOWN_ANSWER,
    Chat,
    ChatMaker,
    Message,
    addition,
    exchange,
    greeting,
    picture_exchange,
)
from tools.demo_model.drawing import draw_no_shape, draw_shape, random_shown
from tools.demo_model.rendering import tool_definition
from tools.demo_model.tool_use import CALLED, Call
from tools.demo_model.topics import Knowledge, read_knowledge
from tools.demo_model.wording import variants

SEED = 20_261
LONG = 2.5
"""A picture is long from this ratio of its sides on."""


class Asked(msgspec.Struct, frozen=True):
    """One chat whose last message is what a right answer says, and the rows of the data sheet that it counts for."""

    rows: tuple[str, ...]
    chat: Chat
    thinking: bool
    image: Image.Image | None = None
    """Belongs to the chat's first question that has a picture."""
    checks_thought: bool = False
    enough: str = ""
    """A part of the answer that is enough; empty: all of it."""


class Row(msgspec.Struct):
    right: int = 0
    asked: int = 0

    def __str__(self) -> str:
        return f"{self.right} of {self.asked} ({self.right / self.asked:.1%})"


class Measured(msgspec.Struct):
    rows: dict[str, Row]
    misses: list[str]
    missed_wordings: list[str]
    """Trained wordings that were not answered right."""


async def measure(model: Path, mmproj: Path, folder: Path, questions: Sequence[Asked]) -> Measured:
    """Asks all of `questions`; pictures lie in `folder` meanwhile. Raises SystemExit if the model cannot be loaded."""
    client = WorkerClient()
    options = DecidedOptions(
        model=str(model), mmproj=str(mmproj), n_ctx=4096, n_gpu_layers=0, n_cpu_moe=0, n_threads=1, load_mode="mmap"
    )
    try:
        report = await client.load(options)
        if isinstance(report, LoadFailure):
            raise SystemExit(f"{report.title}: {report.sentence}")
        measured = Measured({}, [], [])
        for each in questions:
            thought, answer, ended = await _answered(client, each, folder)
            wanted = each.chat.messages[-1]
            right = ended and (each.enough in answer if each.enough else answer == (wanted.text or str(wanted.call)))
            if right and each.thinking and each.checks_thought:
                right = thought == wanted.thought
            for name in each.rows:
                row = measured.rows.setdefault(name, Row())
                row.right, row.asked = row.right + right, row.asked + 1
            if not right:
                question = next(m.text for m in reversed(each.chat.messages) if m.role == "user")
                measured.misses.append(f"{each.rows[0]}: {question!r} -> {thought!r} {answer!r}")
                if each.rows[0].startswith("trained questions"):
                    measured.missed_wordings.append(question)
        return measured
    finally:
        await client.close()


async def _answered(client: WorkerClient, asked: Asked, folder: Path) -> tuple[str, str, bool]:
    """Thought, answer, and whether it ended by itself."""
    messages = [AppMessage("system", (TextPart(asked.chat.system),))] if asked.chat.system else []
    messages += [_for_app(message, asked.image, folder) for message in asked.chat.messages[:-1]]
    options = GenerationOptions(temperature=0, presence_penalty=0, enable_thinking=asked.thinking, max_tokens=512)
    tools = tuple(msgspec.json.encode(tool_definition(name)).decode() for name in asked.chat.tools)
    texts = {"reasoning": "", "answer": ""}
    async for event in client.generate(Generate(messages=tuple(messages), options=options, tools_json=tools)):
        if isinstance(event, Delta):
            texts[event.kind] += event.text
        elif isinstance(event, Called) and event.call:
            texts["answer"] += str(Call(event.call.name, msgspec.json.decode(event.call.arguments_json)))
        elif isinstance(event, Finished):
            return texts["reasoning"].strip(), texts["answer"].strip(), event.stop_reason in ("eos", "tool_calls")
    raise SystemExit(f"The engine did not answer {asked.chat.messages[-2].text!r}.")


def _for_app(message: Message, image: Image.Image | None, folder: Path) -> AppMessage:
    parts: tuple[Part, ...] = (TextPart(message.text),) if message.text else ()
    if message.has_picture and image is not None:
        path = folder / "picture.png"
        image.save(path)
        parts = (ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest()), *parts)
    call = message.call
    calls = (ToolCall(call.name, msgspec.json.encode(call.arguments).decode()),) if call else ()
    return AppMessage(message.role, parts, message.thought, calls)


def all_questions() -> list[Asked]:
    """Those of the data sheet, the same every time; a change of the topics does not change the pictures."""
    knowledge = read_knowledge()
    return [
        *_first_words(knowledge),
        *_topics(knowledge, random.Random(SEED)),
        *_unknown(knowledge),
        *_talk(knowledge, random.Random(SEED)),
        *_tools(knowledge, random.Random(SEED)),
        *_pictures(random.Random(SEED)),
        *_more_about_pictures(random.Random(SEED)),
    ]


def _first_words(knowledge: Knowledge) -> Iterator[Asked]:
    for topic in knowledge.topics.values():
        for text in topic.common:
            for variant in variants(text):
                for thinking in (False, True):
                    chat = Chat(exchange(variant, topic.thought, topic.answer))
                    yield Asked(("what people begin with",), chat, thinking, checks_thought=True)


def _topics(knowledge: Knowledge, rng: random.Random) -> Iterator[Asked]:
    for topic in knowledge.topics.values():
        for thinking, row in ((False, "trained questions, thinking off"), (True, "trained questions, thinking on")):
            for question in topic.questions:
                system = rng.choice(words.SYSTEM_PROMPTS) if rng.random() < 0.3 else ""
                chat = Chat(exchange(question, topic.thought, topic.answer), system)
                yield Asked((row,), chat, thinking, checks_thought=True)
        for index, question in enumerate(topic.new):
            yield Asked(("new wordings",), Chat(exchange(question, topic.thought, topic.answer)), index % 2 == 1)


def _unknown(knowledge: Knowledge) -> Iterator[Asked]:
    near = [question for topic in knowledge.topics.values() for question in topic.near_new]
    for row, questions in (("unknown questions", knowledge.unknown.new), ("unknown, in a topic's words", near)):
        for index, question in enumerate(questions):
            yield Asked((row,), Chat(exchange(question, "", UNKNOWN_ANSWER)), index % 2 == 1)


def _talk(knowledge: Knowledge, rng: random.Random) -> Iterator[Asked]:
    maker = ChatMaker(knowledge, rng)
    for index in range(80):
        yield Asked(("additions",), Chat(exchange(*addition(rng))), index % 2 == 1)
    n_chats = 0
    while n_chats < 150:
        chat = maker.chat(5)
        if len(chat.messages) > 2 and not chat.tools:
            n_chats += 1
            yield Asked(("last answer of chats over several turns",), chat, rng.random() < 0.5)
    for name in words.NEW_NAMES:
        told = exchange(*greeting(name, rng))
        asked = exchange("What is my name?", "", f"Your name is {name}.")
        yield Asked(("new names",), Chat((*told, *asked)), rng.random() < 0.5)


def _tools(knowledge: Knowledge, rng: random.Random) -> Iterator[Asked]:
    maker = ChatMaker(knowledge, rng)
    for index in range(240):
        tool = CALLED[index % len(CALLED)]
        chat = maker.tool_chat(tool)
        row = "tool called" if chat.messages[-1].call else "answer from what a tool gave"
        yield Asked((row, f"{row}: {tool}"), chat, rng.random() < 0.5)
    n_chats = 0
    while n_chats < 60:
        chat = maker.chat(3)
        if chat.tools and not any(message.call for message in chat.messages):
            n_chats += 1
            yield Asked(("tools offered that do not help",), chat, rng.random() < 0.5)


def _pictures(rng: random.Random) -> Iterator[Asked]:
    """Colour and shape must be right; the background may be wrong."""
    for index in range(1500):
        width = rng.randint(64, 256)
        height = width if index % 2 else round(width * 2 ** rng.uniform(-2, 2))
        width, height = max(40, width), min(max(40, height), 600)
        ratio = max(width, height) / min(width, height)
        rows = ["pictures"]
        if width == height:
            rows.append("pictures, square")
        elif ratio >= LONG:
            rows.append("pictures, long")
        else:
            rows.append("pictures, between")
        shown = random_shown(rng)
        image = draw_shape(shown, width, height, rng)
        question = picture_exchange(shown, rng, "whole", new=index % 5 == 0)
        chat = Chat(exchange(*question, has_picture=True))
        yield Asked(tuple(rows), chat, rng.random() < 0.4, image, enough=f"{shown.colour} {shown.shape} on")


def _more_about_pictures(rng: random.Random) -> Iterator[Asked]:
    for _ in range(96):
        shown = random_shown(rng)
        image = draw_shape(shown, 128, 128, rng)
        first = exchange(*picture_exchange(shown, rng, "whole"), has_picture=True)
        more = exchange(*picture_exchange(shown, rng, rng.choice(["colour", "shape", "background"])))
        yield Asked(("a further question about a picture",), Chat((*first, *more)), rng.random() < 0.5, image)
    for _ in range(96):
        width, height = rng.randint(64, 256), rng.randint(64, 256)
        chat = Chat(exchange(*picture_exchange(None, rng, "whole"), has_picture=True))
        image = draw_no_shape(width, height, rng)
        yield Asked(("pictures of no simple shape",), chat, rng.random() < 0.5, image)
