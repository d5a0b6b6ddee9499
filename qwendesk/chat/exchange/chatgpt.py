"""Reads ChatGPT's export: `conversations.json`, a list of chats, each with a mapping of nodes that form a tree.

The format is not documented; this module reads what such files have contained since 2023. It imports questions and
answers with their branches and reasoning, and the pictures of questions. Tool calls, their results and hidden system
messages are left out.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from qwendesk.chat.exchange.json_stream import JsonStream
from qwendesk.chat.exchange.values import (
    MAX_FOREIGN_MESSAGE_BYTES,
    MAX_REASONING_CHARACTERS,
    MAX_SMALL_VALUE_BYTES,
    NOT_AN_EXPORT,
    BadExchange,
    ChatValues,
    ExchangedChat,
    ReadChat,
)
from qwendesk.chat.exchange.zip_pictures import Pictures
from qwendesk.chat.tree_edits import new_id, shown_up_to
from qwendesk.core.chats import ChatSettings, ChatSummary, title_of
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import ImagePart, Message, Part, TextPart
from qwendesk.core.think_tags import without_think_tags
from qwendesk.core.translation import tr

_FACTS = ("title", "create_time", "update_time", "is_archived", "current_node")
# If the first elements, up to this many, contain no chat, the file is not an export.
_NO_CHATS_AMONG = 100


class _Node(msgspec.Struct, frozen=True):
    """The values of a node of the mapping that the tree is made from."""

    parent: str
    message: Message | None = None
    thought: str = ""
    """Reasoning that belongs to the next answer."""
    created_s: float = 0.0
    model: str = ""
    n_pictures: int = 0
    """Number of pictures that it refers to."""


class _Reasoning(msgspec.Struct, frozen=True):
    """Reasoning before an answer, as a linked list from the last piece to the first: branches share their beginning."""

    before: "_Reasoning | None"
    text: str


def read_chatgpt_head(stream: JsonStream) -> Iterator[None]:
    """Read the whole file once to check that it is a complete list. Raises BadExchange if it isn't an export."""
    any_chat = False
    for number, _ in enumerate(stream.elements(), 1):
        any_chat = any_chat or stream.peek() == b"{"
        if number == _NO_CHATS_AMONG and not any_chat:
            break
        stream.skip()
        yield
    else:
        stream.check_end()
        return
    raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))


def read_chatgpt_chats(stream: JsonStream, pictures: Pictures) -> Iterator[ReadChat]:
    """Yield the chats of a checked file."""
    for _ in stream.elements():
        yield _chat(stream, pictures)


def _chat(stream: JsonStream, pictures: Pictures) -> ReadChat:
    """Read the chat at the position of `stream`."""
    values = ChatValues(stream)
    facts: dict[str, Any] = {}
    mapping: dict[str, _Node] | None = None
    for key in values.members():
        if key == "mapping":
            mapping = {}
            for name in values.members():
                value: object = values.value(MAX_FOREIGN_MESSAGE_BYTES, object)
                if isinstance(value, dict):
                    mapping[name] = _node(value, pictures)
        elif key in _FACTS:
            facts[key] = values.value(MAX_SMALL_VALUE_BYTES, object)
    if values.problem or mapping is None:
        return ReadChat(problem=values.problem or "unreadable")
    tree = _tree(mapping, _text(facts.get("current_node")))
    n_named = sum(node.n_pictures for node in mapping.values())
    n_taken = sum(len(node.message.images) for node in tree.nodes.values())
    if not tree.nodes:
        return ReadChat(left_out_pictures=n_named)
    first = next((node.message.text for node in tree.nodes.values() if node.message.role == "user"), "")
    created_s = _time(facts.get("create_time"))
    summary = ChatSummary(
        id=new_id(),
        title=" ".join(_text(facts.get("title")).split())[:500] or title_of(first),
        created_s=created_s,
        changed_s=_time(facts.get("update_time")) or created_s,
        archived=facts.get("is_archived") is True,
        settings=ChatSettings(is_imported=True),
    )
    return ReadChat(ExchangedChat(summary, tree), left_out_pictures=max(0, n_named - n_taken))


def _tree(mapping: Mapping[str, _Node], current: str) -> ChatTree:
    """Return the tree of imported messages, each answer with the reasoning before it. Other nodes are left out."""
    nodes: dict[str, ChatNode] = {}
    ids: dict[str, str] = {}
    thoughts: dict[str, _Reasoning | None] = {}
    characters_left = MAX_REASONING_CHARACTERS
    for key in _parents_first(mapping):
        node = mapping[key]
        parent, reasoning = ids.get(node.parent, ""), thoughts.get(node.parent)
        message = node.message
        if message is None:
            ids[key] = parent
            thoughts[key] = _Reasoning(reasoning, node.thought) if node.thought else reasoning
            continue
        if message.role == "assistant" and reasoning is not None:
            text = _joined(reasoning, characters_left)
            characters_left -= len(text)
            message = msgspec.structs.replace(message, reasoning=text)
        is_answer = message.role == "assistant"
        made = ChatNode(
            id=new_id(),
            parent_id=parent,
            message=message,
            created_s=node.created_s,
            stop_reason="eos" if is_answer else None,
            model=node.model if is_answer else "",
        )
        nodes[made.id] = made
        ids[key] = made.id
    return shown_up_to(ChatTree(nodes), ids.get(current, ""))


def _joined(reasoning: _Reasoning | None, max_characters: int) -> str:
    """Return the pieces of reasoning in order as one text; "" if it is longer than `max_characters`."""
    pieces: list[str] = []
    length = 0
    while reasoning is not None:
        pieces.append(reasoning.text)
        length += len(reasoning.text) + 2
        if length > max_characters:
            return ""
        reasoning = reasoning.before
    return "\n\n".join(reversed(pieces))


def _parents_first(mapping: Mapping[str, _Node]) -> list[str]:
    """Return the keys in an order in which each comes after its parent. Cycles are left out."""
    children: dict[str, list[str]] = {}
    for key, value in mapping.items():
        children.setdefault(value.parent if value.parent in mapping else "", []).append(key)
    ordered: list[str] = []
    waiting = children.get("", [])[::-1]
    while waiting:
        key = waiting.pop()
        ordered.append(key)
        if key:
            waiting += children.get(key, [])[::-1]
    return ordered


def _node(value: dict[str, Any], pictures: Pictures) -> _Node:
    said = value.get("message")
    parent = _text(value.get("parent"))
    content = said.get("content") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(content, dict):
        return _Node(parent)
    parts = content.get("parts")
    n_pictures = sum(map(_is_picture, parts)) if isinstance(parts, list) else 0
    if content.get("content_type") == "thoughts" and isinstance(content.get("thoughts"), list):
        pieces = (_text(each.get("content")) for each in content["thoughts"] if isinstance(each, dict))
        return _Node(parent, thought="\n\n".join(filter(None, pieces)), n_pictures=n_pictures)
    message = _message(said, content, pictures)
    return _Node(parent, message, "", _time(said.get("create_time")), _model(said), n_pictures)


def _message(said: dict[str, Any], content: dict[str, Any], pictures: Pictures) -> Message | None:
    """Return the message; None if it is not to be imported."""
    author = said.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    metadata = said.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    if hidden or said.get("recipient") not in (None, "all"):
        return None
    if role == "user":
        parts = _question(content, pictures)
        return Message("user", parts) if parts else None
    text = _content_text(content)
    is_answer = role == "assistant" and bool(text.strip())
    return without_think_tags(Message("assistant", (TextPart(text),))) if is_answer else None


def _is_picture(part: object) -> bool:
    return isinstance(part, dict) and part.get("content_type") == "image_asset_pointer"


def _question(content: dict[str, Any], pictures: Pictures) -> tuple[Part, ...]:
    """Return the pictures, then the text, which has a sentence for each picture that can't be imported."""
    if content.get("content_type") not in ("text", "multimodal_text") or not isinstance(content.get("parts"), list):
        return ()
    images: list[ImagePart] = []
    texts: list[str] = []
    for part in content["parts"]:
        if isinstance(part, str):
            texts.append(part)
        elif _is_picture(part):
            found = pictures.find(_text(part.get("asset_pointer")))
            if isinstance(found, str):
                texts.append(found)
            else:
                images.append(found)
    text = "\n".join(each for each in texts if each)
    return (*images, *((TextPart(text),) if text.strip() else ()))


def _content_text(content: dict[str, Any]) -> str:
    if content.get("content_type") not in ("text", "multimodal_text"):
        return ""
    parts = content.get("parts")
    return "\n".join(part for part in parts if isinstance(part, str)) if isinstance(parts, list) else ""


def _model(said: dict[str, Any]) -> str:
    metadata = said.get("metadata")
    return _text(metadata.get("model_slug"))[:100] if isinstance(metadata, dict) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e11
    return float(value) if good else 0.0
