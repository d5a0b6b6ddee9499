"""Chats to look at: questions, answers, pictures, and the chats of the list."""

import time
from pathlib import Path

import msgspec
from PIL import Image, ImageDraw

from qwendesk.core.chats import ChatSummary
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.stats import AnswerStats, StopReason
from tools.screenshots.gallery import texts

_DAY = 86_400


def earlier_chats() -> list[tuple[ChatSummary, ChatTree]]:
    """The list of chats: some of today, some older, one pinned."""
    chats = []
    for number, (question, answer) in enumerate(texts.EARLIER):
        key = f"{number:x}" * 32
        changed = time.time() - (0, 60, _DAY, _DAY, 4 * _DAY, 20 * _DAY, 90 * _DAY)[number]
        filler = tree(*[(asks(f"Step {n}?"), says(f"Part {n}.\n\n" + texts.PICTURE_ANSWER), {}) for n in range(6)])
        nodes = {f"{key[:16]}{each.id}": each for each in filler.nodes.values()}
        moved = {
            id: msgspec.structs.replace(each, id=id, parent_id=f"{key[:16]}{each.parent_id}" if each.parent_id else "")
            for id, each in nodes.items()
        }
        first = list(moved)[:2]
        moved[first[0]] = msgspec.structs.replace(moved[first[0]], message=asks(question))
        moved[first[1]] = msgspec.structs.replace(moved[first[1]], message=says(answer))
        summary = ChatSummary(id=key, title=question, created_s=changed, changed_s=changed, pinned=number == 1)
        chats.append((summary, ChatTree(moved)))
    return chats


def picture(path: Path, kind: str, size: tuple[int, int]) -> ImagePart:
    """A drawn picture file: "plane", "chart" or "tall"."""
    image = Image.new("RGB", size)
    draw = ImageDraw.Draw(image)
    width, height = size
    for y in range(height):
        share = y / height
        color = (120 + int(100 * share), 180 + int(30 * share), 250 - int(150 * share))
        draw.line([(0, y), (width, y)], fill=color)
    if kind == "chart":
        image.paste((250, 250, 250), (0, 0, width, height))
        for n in range(8):
            top = height - (n * 37 % 11 + 2) * height // 14
            draw.rectangle([n * width // 8 + 12, top, (n + 1) * width // 8 - 12, height - 20], fill=(90, 110, 220))
    else:
        draw.polygon([(0, height), (width, height // 2), (width, height)], fill=(190, 150, 90))
        draw.ellipse([width * 0.4, height * 0.3, width * 0.65, height * 0.42], fill=(235, 70, 60))
    image.save(path)
    return ImagePart(str(path), "0" * 64)


def tree(*turns: tuple[Message, Message | None, dict[str, object]], key: str = "n") -> ChatTree:
    """A chat of these questions and answers; the mapping changes the answer's node."""
    nodes: dict[str, ChatNode] = {}
    parent = ""
    for number, (question, answer, changes) in enumerate(turns):
        asked = ChatNode(id=f"{key}q{number}", parent_id=parent, message=question)
        nodes[asked.id] = asked
        parent = asked.id
        if answer is not None:
            made = answered(f"{key}a{number}", parent, answer, **changes)
            nodes[made.id] = made
            parent = made.id
    return ChatTree(nodes)


def answered(id: str, parent: str, answer: Message, **changes: object) -> ChatNode:
    stats = AnswerStats(
        prompt_tokens=1240, reused_tokens=1204, reread_tokens=36, reasoning_tokens=431 if answer.reasoning else 0,
        answer_tokens=880, ttft_s=0.21, prefill_s=0.2, decode_s=11.7,
    )  # fmt: skip
    reason: StopReason = "eos"
    values: dict[str, object] = {
        "id": id, "parent_id": parent, "message": answer, "stop_reason": reason, "stats": stats,
        "thought_s": 6.2 if answer.reasoning else 0.0, "model": "Qwen3.5-35B-A3B", "options_json": "{}",
    }  # fmt: skip
    return ChatNode(**{**values, **changes})  # type: ignore[arg-type]


def says(text: str, reasoning: str = "") -> Message:
    return text_message("assistant", text, reasoning=reasoning)


def asks(text: str, *pictures: ImagePart) -> Message:
    return Message("user", (*pictures, TextPart(text)))
