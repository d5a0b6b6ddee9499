"""Reads the messages of Open WebUI's export: each chat has a history of messages by id that form a tree.

The format is not documented. Reasoning and tool calls stand in the text of an answer, in <details> of their kinds.
"""

import html
import re
from typing import Any

from qwendesk.chat.exchange.chatgpt import FILE
from qwendesk.chat.exchange.foreign_tree import ForeignNode, read_list, read_object, read_text, read_time
from qwendesk.chat.exchange.values import LeftOut
from qwendesk.chat.exchange.zip_pictures import Pictures
from qwendesk.core.messages import ImagePart, Message, Part, TextPart
from qwendesk.core.think_tags import without_think_tags

_DETAILS = re.compile(
    r"<details\b(?=[^>]*\stype=\"(reasoning|tool_calls|code_interpreter)\")[^>]*>\s*"
    r"(?:<summary>.{0,500}?</summary>)?(.*?)</details>\n*",
    re.DOTALL,
)
# How it quotes each line of reasoning.
_QUOTE = re.compile(r"^> ?", re.MULTILINE)
_MOST_NAME = 200


def open_webui_node(value: dict[str, Any], pictures: Pictures) -> ForeignNode:
    """Return the message of an entry of the history. Raises OSError if a picture can't be written."""
    parent, role = read_text(value.get("parentId")), value.get("role")
    created_s = read_time(value.get("timestamp"))
    text = _text(value.get("content"))
    if role == "user":
        images, sentences, left_out = _files(read_list(value.get("files")), pictures)
        text = "\n".join(filter(None, (*sentences, text)))
        content: tuple[Part, ...] = (*images, *((TextPart(text),) if text.strip() else ()))
        return ForeignNode(parent, Message("user", content) if content else None, None, created_s, "", left_out)
    if role != "assistant":
        return ForeignNode(parent, left_out=LeftOut(tool_messages=int(role == "tool")))
    message, left_out = _answer(text)
    _, _, left_out_files = _files(read_list(value.get("files")), None)
    model = read_text(value.get("modelName")) or read_text(value.get("model"))
    is_empty = not message.text and not message.reasoning
    left_out += left_out_files
    return ForeignNode(parent, None if is_empty else message, None, created_s, model[:100], left_out)


def system_prompt(chat: dict[str, Any]) -> str:
    """Return the system prompt of a chat, which is one of its parameters."""
    return read_text(chat.get("system")) or read_text(read_object(chat.get("params")).get("system"))


def _answer(text: str) -> tuple[Message, LeftOut]:
    """Return an answer with its reasoning apart, and without its tool calls."""
    thoughts: list[str] = []
    n_calls = 0

    def take_out(found: re.Match[str]) -> str:
        nonlocal n_calls
        if found[1] == "reasoning":
            thoughts.append(_QUOTE.sub("", html.unescape(found[2]).strip()))
        elif found[1] == "tool_calls":
            n_calls += 1
        else:
            return f"{found[2].strip()}\n\n"
        return ""

    shown = _DETAILS.sub(take_out, text).strip()
    parts = (TextPart(shown),) if shown else ()
    message = Message("assistant", parts, reasoning="\n\n".join(filter(None, thoughts)))
    return without_think_tags(message), LeftOut(tool_messages=n_calls)


def _text(content: Any) -> str:
    """Return the text of a message: a text, or a list of parts in OpenAI's form."""
    if isinstance(content, list):
        return "\n".join(read_text(part.get("text")) for part in content if isinstance(part, dict) and "text" in part)
    return read_text(content)


def _files(files: list[Any], pictures: Pictures | None) -> tuple[list[ImagePart], list[str], LeftOut]:
    """Return pictures, sentences for what can't be imported, and its count. None takes no picture."""
    images: list[ImagePart] = []
    sentences: list[str] = []
    left_out = LeftOut()
    for file in files:
        if not isinstance(file, dict):
            continue
        if file.get("type") == "image" or read_text(file.get("content_type")).startswith("image/"):
            found = pictures.find(read_text(file.get("url"))) if pictures is not None else ""
            if isinstance(found, ImagePart):
                images.append(found)
                continue
            sentences.append(found)
            left_out += LeftOut(pictures=1)
        else:
            name = " ".join(read_text(file.get("name")).split())[:_MOST_NAME]
            sentences.append(FILE.format(name or "A file"))
            left_out += LeftOut(files=1)
    return images, sentences, left_out
