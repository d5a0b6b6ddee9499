"""Chats of other programs as trees: each answer with the reasoning and the calls before it, of which there may be many.

The readers of the formats make nodes; this module knows no format.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from qwendesk.chat.exchange.values import MAX_REASONING_CHARACTERS, LeftOut
from qwendesk.chat.tree_edits import new_id, shown_up_to
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import CallRecord, Message, ToolCall, ToolStep


class CallOutput(msgspec.Struct, frozen=True):
    """What came of the last call."""

    text: str


# What stands before an answer: reasoning, a call of a tool, or what came of it.
BeforeAnswer = str | ToolCall | CallOutput


class ForeignNode(msgspec.Struct, frozen=True):
    """A message, or what stands before the next answer; neither if it isn't imported."""

    parent: str
    message: Message | None = None
    before_answer: BeforeAnswer | None = None
    created_s: float = 0.0
    model: str = ""
    left_out: LeftOut = LeftOut()


class _Before(msgspec.Struct, frozen=True):
    """What stands before an answer, as a linked list from the last to the first: branches share their beginning."""

    before: "_Before | None"
    item: BeforeAnswer


def foreign_tree(nodes: Mapping[str, ForeignNode], current: str, model: str = "") -> ChatTree:
    """Return the tree of the imported messages. `current` is the last one shown; `model` answered if none is named.

    Nodes of circles are left out.
    """
    made: dict[str, ChatNode] = {}
    ids: dict[str, str] = {}
    before: dict[str, _Before | None] = {}
    characters_left = MAX_REASONING_CHARACTERS
    for key in _parents_first(nodes):
        node = nodes[key]
        parent, earlier = ids.get(node.parent, ""), before.get(node.parent)
        message = node.message
        if message is None:
            ids[key] = parent
            before[key] = earlier if node.before_answer is None else _Before(earlier, node.before_answer)
            continue
        is_answer = message.role == "assistant"
        if is_answer and earlier is not None:
            message, n_characters = _completed(message, earlier, characters_left)
            characters_left -= n_characters
        answer = ChatNode(
            id=new_id(),
            parent_id=parent,
            message=message,
            created_s=node.created_s,
            stop_reason="eos" if is_answer else None,
            model=(node.model or model) if is_answer else "",
        )
        made[answer.id] = answer
        ids[key] = answer.id
    return shown_up_to(ChatTree(made), ids.get(current, ""))


def _completed(message: Message, before: _Before, max_characters: int) -> tuple[Message, int]:
    """Return the answer with what stands before it, and how long that is; as it is if that is too long."""
    items: list[BeforeAnswer] = []
    length = 0
    link: _Before | None = before
    while link is not None:
        items.append(link.item)
        length += _length(link.item) + 2
        if length > max_characters:
            return message, 0
        link = link.before
    steps: list[ToolStep] = []
    thoughts: list[str] = []
    for item in reversed(items):
        if isinstance(item, str):
            thoughts.append(item)
        elif isinstance(item, ToolCall):
            steps.append(ToolStep((CallRecord(item),), reasoning="\n\n".join(thoughts)))
            thoughts = []
        elif steps:
            (record,) = steps[-1].calls
            result = f"{record.result}\n{item.text}" if record.is_done else item.text
            done = msgspec.structs.replace(record, is_done=True, result=result)
            steps[-1] = msgspec.structs.replace(steps[-1], calls=(done,))
    if message.reasoning:
        thoughts.append(message.reasoning)
    reasoning = "\n\n".join(thoughts)
    return msgspec.structs.replace(message, reasoning=reasoning, steps=(*steps, *message.steps)), length


def _length(item: BeforeAnswer) -> int:
    if isinstance(item, str):
        return len(item)
    return len(item.text) if isinstance(item, CallOutput) else len(item.arguments_json)


def _parents_first(nodes: Mapping[str, ForeignNode]) -> Iterator[str]:
    """Yield the keys so that each comes after its parent. Circles are left out."""
    children: dict[str, list[str]] = {}
    for key, node in nodes.items():
        children.setdefault(node.parent if node.parent in nodes else "", []).append(key)
    waiting = children.get("", [])[::-1]
    while waiting:
        key = waiting.pop()
        yield key
        if key:
            waiting += children.get(key, [])[::-1]


# Seconds, milliseconds, microseconds and nanoseconds since 1970 are told apart by their size.
_LATEST_S = 1e11


def read_time(value: Any) -> float:
    """Return a point in time in seconds since 1970; 0 for what is none."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    seconds = float(value) if good else 0.0
    for _ in range(3):
        seconds = seconds / 1000 if seconds >= _LATEST_S else seconds
    return seconds if seconds < _LATEST_S else 0.0


def read_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def read_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
