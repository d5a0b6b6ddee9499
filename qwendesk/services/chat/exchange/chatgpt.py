"""ChatGPT's export: `conversations.json`, a list of chats, each a mapping of nodes that are a tree with branches.

Its form is not documented; what is read here is what its files have had since 2023. Questions and answers are taken,
with their branches, thoughts and the pictures of questions. Tools with what they made, and hidden system texts, are
left out.
"""

import math
from typing import Any

import msgspec

from qwendesk.core.chat_tree import ChatNode, ChatTree
from qwendesk.core.chats import ChatSummary, title_of
from qwendesk.core.messages import ImagePart, Message, Part, TextPart
from qwendesk.services.chat.copying import leading_to, new_id
from qwendesk.services.chat.exchange.values import BadExchange, Exchanged, ExchangedChat
from qwendesk.services.chat.exchange.zip_pictures import Pictures


def read_chatgpt(content: bytes, pictures: Pictures) -> Exchanged:
    """The chats of such a file; the bytes of their pictures stay with `pictures`.

    Raises BadExchange for what is no such file.
    """
    try:
        raws = msgspec.json.decode(content, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadExchange("Not an export", f"This is neither an export of QwenDesk nor of ChatGPT: {error}") from error
    chats, unreadable, n_named = [], 0, 0
    for raw in raws:
        try:
            read = msgspec.json.decode(raw)
            chat = _chat(read, pictures)
            n_named += _n_pictures(read)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            chat = None
        if chat is None:
            unreadable += 1
        elif chat.tree.nodes:
            chats.append(chat)
    if raws and unreadable == len(raws):
        raise BadExchange("Not an export", "This is neither an export of QwenDesk nor of ChatGPT.")
    taken = sum(len(node.message.images) for chat in chats for node in chat.tree.nodes.values())
    return Exchanged(tuple(chats), unreadable=unreadable, left_out_pictures=max(0, n_named - taken))


def _n_pictures(read: Any) -> int:
    """How many pictures the messages of a chat name."""
    mapping = read.get("mapping") if isinstance(read, dict) else None
    count = 0
    for node in mapping.values() if isinstance(mapping, dict) else ():
        said = node.get("message") if isinstance(node, dict) else None
        content = said.get("content") if isinstance(said, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            count += isinstance(part, dict) and part.get("content_type") == "image_asset_pointer"
    return count


def _chat(read: Any, pictures: Pictures) -> ExchangedChat | None:
    if not isinstance(read, dict) or not isinstance(read.get("mapping"), dict):
        return None
    mapping = {key: value for key, value in read["mapping"].items() if isinstance(value, dict)}
    nodes: dict[str, ChatNode] = {}
    ids: dict[str, str] = {}
    thoughts: dict[str, str] = {}
    for key in _parents_first(mapping):
        parent = ids.get(_text(mapping[key].get("parent")), "")
        value = mapping[key].get("message")
        said: dict[str, Any] = value if isinstance(value, dict) else {}
        thought = thoughts.get(_text(mapping[key].get("parent")), "")
        message, thought = _message(said, thought, pictures)
        if message is None:
            ids[key], thoughts[key] = parent, thought
            continue
        node = ChatNode(
            id=new_id(),
            parent_id=parent,
            message=message,
            created_s=_time(said.get("create_time")),
            stop_reason="eos" if message.role == "assistant" else None,
            model=_model(said) if message.role == "assistant" else "",
        )
        nodes[node.id] = node
        ids[key] = node.id
    tree = leading_to(ChatTree(nodes), ids.get(_text(read.get("current_node")), ""))
    first = next((node.message.text for node in nodes.values() if node.message.role == "user"), "")
    created_s = _time(read.get("create_time"))
    summary = ChatSummary(
        id=new_id(),
        title=" ".join(_text(read.get("title")).split())[:500] or title_of(first),
        created_s=created_s,
        changed_s=_time(read.get("update_time")) or created_s,
        archived=read.get("is_archived") is True,
    )
    return ExchangedChat(summary, tree)


def _parents_first(mapping: dict[str, Any]) -> list[str]:
    """The keys in an order in which each comes after its parent; what runs in a circle is left out."""
    children: dict[str, list[str]] = {}
    for key, value in mapping.items():
        parent = _text(value.get("parent"))
        children.setdefault(parent if parent in mapping else "", []).append(key)
    ordered: list[str] = []
    waiting = children.get("", [])[::-1]
    while waiting:
        key = waiting.pop()
        ordered.append(key)
        if key:
            waiting += children.get(key, [])[::-1]
    return ordered


def _message(said: dict[str, Any], thought: str, pictures: Pictures) -> tuple[Message | None, str]:
    """The message, if it is one to take, and otherwise the thought that belongs to the next answer."""
    author = said.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    content = said.get("content")
    if not isinstance(content, dict):
        return None, thought
    if content.get("content_type") == "thoughts" and isinstance(content.get("thoughts"), list):
        pieces = [_text(each.get("content")) for each in content["thoughts"] if isinstance(each, dict)]
        return None, "\n\n".join(filter(None, (thought, *pieces)))
    metadata = said.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    addressed = said.get("recipient") not in (None, "all")
    if hidden or addressed:
        return None, thought
    if role == "user":
        parts = _question(content, pictures)
        return (Message("user", parts), "") if parts else (None, thought)
    text = _content_text(content)
    if not text.strip():
        return None, thought
    if role == "assistant":
        return Message("assistant", (TextPart(text),), thought), ""
    return None, thought


def _question(content: dict[str, Any], pictures: Pictures) -> tuple[Part, ...]:
    """Its pictures, then its text; a picture that cannot be had is a sentence in the text."""
    if content.get("content_type") not in ("text", "multimodal_text") or not isinstance(content.get("parts"), list):
        return ()
    images: list[ImagePart] = []
    texts: list[str] = []
    for part in content["parts"]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("content_type") == "image_asset_pointer":
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
