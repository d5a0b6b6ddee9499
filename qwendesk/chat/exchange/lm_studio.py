"""Reads the messages of LM Studio's conversations: a list of turns, each with the versions that were generated of it.

The format is not documented. Chats in it are files of their own in the folder .lmstudio/conversations of the user. The
older list of messages with a role and a content, as in OpenAI's API, is read too.
"""

from typing import Any

from qwendesk.chat.exchange.chatgpt import FILE
from qwendesk.chat.exchange.foreign_tree import ForeignNode, read_list, read_object, read_text, read_time
from qwendesk.chat.exchange.values import LeftOut
from qwendesk.chat.exchange.zip_pictures import NOT_THERE
from qwendesk.core.messages import Message, TextPart
from qwendesk.core.think_tags import without_think_tags

_MOST_NAME = 200


class LmStudioNodes:
    """Collects the nodes of one chat, in the order of its messages. Later turns follow the version that is shown."""

    def __init__(self) -> None:
        self.nodes: dict[str, ForeignNode] = {}
        self.last = ""
        """Key of the last shown node."""

    def add(self, value: dict[str, Any]) -> None:
        versions = [each for each in read_list(value.get("versions")) if isinstance(each, dict)] or [value]
        selected = value.get("currentlySelected")
        is_there = type(selected) is int and 0 <= selected < len(versions)
        shown = selected if is_there else len(versions) - 1
        parent, number = self.last, len(self.nodes)
        for index, version in enumerate(versions):
            key = f"{number + index}"
            self.nodes[key] = _node(parent, version, value)
            if index == shown:
                self.last = key


def system_prompt(facts: dict[str, Any]) -> str:
    """Return the system prompt of a chat: its own, or a field of its configuration."""
    fields = read_list(read_object(facts.get("perChatPredictionConfig")).get("fields"))
    found = (each.get("value") for each in fields if isinstance(each, dict) and each.get("key") == _SYSTEM_PROMPT)
    return read_text(facts.get("systemPrompt")) or read_text(next(found, ""))


_SYSTEM_PROMPT = "llm.prediction.systemPrompt"


def _node(parent: str, version: dict[str, Any], turn: dict[str, Any]) -> ForeignNode:
    role = version.get("role") or turn.get("role")
    thoughts: list[str] = []
    texts: list[str] = []
    left_out = LeftOut()
    steps = [each for each in read_list(version.get("steps")) if isinstance(each, dict)]
    for step in steps or [version]:
        if step.get("type") in ("debugInfoBlock", "status"):
            continue
        is_thought = read_object(step.get("style")).get("type") == "thinking"
        pieces, more = _content(step.get("content"))
        (thoughts if is_thought else texts).extend(pieces)
        left_out += more
    text = "\n".join(filter(None, texts)).strip()
    created_s = read_time(version.get("createdAt"))
    if role == "user":
        message = Message("user", (TextPart(text),)) if text else None
        return ForeignNode(parent, message, None, created_s, "", left_out)
    if role != "assistant":
        return ForeignNode(parent, left_out=left_out + LeftOut(tool_messages=int(role == "tool")))
    answer = Message("assistant", (TextPart(text),) if text else (), reasoning="\n\n".join(filter(None, thoughts)))
    model = read_text(read_object(version.get("senderInfo")).get("senderName"))[:100]
    is_empty = not text and not answer.reasoning
    return ForeignNode(parent, None if is_empty else without_think_tags(answer), None, created_s, model, left_out)


def _content(content: Any) -> tuple[list[str], LeftOut]:
    """Return the texts of a content, with a sentence for each picture or file, and the count of what is left out."""
    if isinstance(content, str):
        return [content], LeftOut()
    texts: list[str] = []
    left_out = LeftOut()
    for part in read_list(content):
        if not isinstance(part, dict):
            continue
        kind = read_text(part.get("type"))
        if kind == "text":
            texts.append(read_text(part.get("text")))
        elif kind == "file" and part.get("fileType") == "image":
            texts.append(NOT_THERE)
            left_out += LeftOut(pictures=1)
        elif kind == "file":
            name = read_text(part.get("name")) or read_text(part.get("fileIdentifier"))
            texts.append(FILE.format(" ".join(name.split())[:_MOST_NAME] or "A file"))
            left_out += LeftOut(files=1)
        elif kind:
            left_out += LeftOut(tool_messages=1)
    return texts, left_out
