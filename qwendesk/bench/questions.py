"""The texts and conversations that are measured: always the likeliest tokens, so every run gives the same answer."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.core.failures import EngineExit
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Delta, Finished, Generate, Measure, RequestFailed

# The chat format of all Qwen models, with thinking off.
_CHAT = "<|im_start|>user\n{0}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
_CODE = """\
class Shelf:
    def __init__(self, name, room):
        self.name = name
        self.room = room
        self.boxes = []

    def add_box(self, box):
        if len(self.boxes) >= self.room:
            raise ValueError("the shelf is full")
        self.boxes.append(box)

    def total_weight(self):
        return sum(box.weight for box in self.boxes)
"""
# By the name of the test: one that suits a draft head, and one whose answer repeats what stands in the prompt.
TEXTS = {
    "text": _CHAT.format("Explain in a few paragraphs how a bicycle stays upright while it is ridden."),
    "edit": _CHAT.format(f"Rename the class to Rack and change nothing else. Answer with the code only.\n\n{_CODE}"),
}

_ANSWER_TOKENS = 16


class Timed(msgspec.Struct, frozen=True):
    """An answer and the seconds until its first token."""

    text: str
    ttft_s: float
    reasoning: str = ""


def numbered_text(number: int, n_lines: int) -> str:
    """Return lines that all differ; texts of different numbers differ from their first word on."""
    lines = (f"{number}.{line}: shelf {line * 7 % 89} holds {line * 13 % 97} boxes." for line in range(n_lines))
    return "\n".join(lines)


async def lines_for(client: EngineClient, n_tokens: int) -> int:
    """Return how many lines of a numbered text have about `n_tokens` tokens; 0 if the engine can't count."""
    n_counted = 64
    sample = text_message("user", numbered_text(1, n_counted))
    counted = await client.ask(Measure(messages=(sample,), options=_greedy()))
    if isinstance(counted, RequestFailed | EngineExit) or not counted.prompt_tokens:
        return 0
    return max(1, n_tokens * n_counted // counted.prompt_tokens)


async def ask(
    client: EngineClient,
    messages: Sequence[Message],
    *,
    enable_thinking: bool = False,
    max_tokens: int = _ANSWER_TOKENS,
) -> Timed | BenchFailure:
    """Return a short answer and how long its first token took, seen from the app."""
    started, ttft_s = time.perf_counter(), 0.0
    texts = {"reasoning": "", "answer": ""}
    options = _greedy(enable_thinking=enable_thinking, max_tokens=max_tokens)
    async for item in client.generate(Generate(messages=tuple(messages), options=options)):
        match item:
            case Delta():
                ttft_s = ttft_s or time.perf_counter() - started
                texts[item.kind] += item.text
            case Finished():
                return Timed(texts["answer"], ttft_s or time.perf_counter() - started, texts["reasoning"])
            case RequestFailed():
                return BenchFailure(item.title, item.sentence)
            case EngineExit():
                return BenchFailure(tr("The engine stopped"), item.sentence)
    return BenchFailure(tr("The engine stopped"), tr("The answer didn't end."))


def draw_picture(path: Path, number: int) -> ImagePart:
    """Write a picture of coloured stripes, 768 x 512 pixels. Pictures of different numbers differ. Blocks."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - only a measurement draws; commands start faster without it

    image = Image.new("RGB", (768, 512), "white")
    pen = ImageDraw.Draw(image)
    for stripe in range(24):
        shade = (stripe * 37 + number * 61) % 256
        pen.rectangle((stripe * 32, 64, stripe * 32 + 20, 448), fill=(shade, 255 - shade, (shade * 3) % 256))
    image.save(path)
    return image_part(path)


def image_part(path: Path) -> ImagePart:
    """Return a picture file as part of a message. Blocks."""
    return ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def with_picture(image: ImagePart, question: str) -> Message:
    return Message("user", (image, TextPart(question)))


def _greedy(*, enable_thinking: bool = False, max_tokens: int = _ANSWER_TOKENS) -> GenerationOptions:
    return GenerationOptions(
        temperature=0.0, presence_penalty=0.0, enable_thinking=enable_thinking, max_tokens=max_tokens
    )
