"""Reads the messages of ChatGPT's export: each chat has a mapping of nodes that form a tree.

The format is not documented; this module reads what such files have contained since 2023, and since August 2026
without metadata at most messages (LibreChat#15229). It imports questions and answers with their branches, reasoning,
transcripts of voice chats and the code that ran, and the pictures of questions. Other tool calls, their results and
recordings are counted; hidden messages are left out.
"""

import json
import re
from typing import Any

from qwendesk.chat.exchange.foreign_tree import (
    BeforeAnswer,
    CallOutput,
    ForeignNode,
    read_list,
    read_object,
    read_text,
    read_time,
)
from qwendesk.chat.exchange.values import LeftOut
from qwendesk.chat.exchange.zip_pictures import Pictures
from qwendesk.core.messages import ImagePart, Message, Part, TextPart, ToolCall
from qwendesk.core.think_tags import without_think_tags

# Where the text of an attached file or of a recording would be.
FILE = "[{0} was attached. The export doesn't contain its text.]"
RECORDING = "[A recording was here. The export doesn't contain its text.]"
_PICTURE = "image_asset_pointer"
_RECORDINGS = ("audio_asset_pointer", "real_time_user_audio_video_asset_pointer")
# Tools that run code of the answer, by the first part of their names, as calls name them.
_RUN_CODE = ("python", "python_user_visible", "container")
_TEXTS = ("text", "multimodal_text")
# What nobody wrote or read: custom instructions, memories, and how long was thought.
_NO_MESSAGES = ("user_editable_context", "model_editable_context", "reasoning_recap")
# Marks of citations, which only ChatGPT can resolve, between characters of private use.
_CITATION = re.compile("\ue200[^\ue200\ue201]{0,2000}\ue201")
_MOST_NAME = 200


def chatgpt_node(value: dict[str, Any], pictures: Pictures) -> ForeignNode:
    """Return what a node of the mapping holds. Raises OSError if a picture can't be written."""
    parent = read_text(value.get("parent"))
    said = read_object(value.get("message"))
    content = read_object(said.get("content"))
    kind = content.get("content_type")
    is_hidden = _metadata(said).get("is_visually_hidden_from_conversation") is True and kind != "thoughts"
    if not content or is_hidden or kind in _NO_MESSAGES:
        return ForeignNode(parent)
    role, recipient = read_object(said.get("author")).get("role"), read_text(said.get("recipient")) or "all"
    parts = read_list(content.get("parts"))
    left_out = LeftOut(
        pictures=sum(_is(part, _PICTURE) for part in parts), recordings=sum(_is(part, *_RECORDINGS) for part in parts)
    )
    if role == "system":
        return ForeignNode(parent, left_out=left_out)
    if role == "user" and recipient == "all" and kind in _TEXTS:
        return _question(parent, said, parts, pictures, left_out)
    created_s = read_time(said.get("create_time"))
    before = _before_answer(role, recipient, content, read_object(said.get("author")))
    if before is not None:
        return ForeignNode(parent, None, before or None, created_s, left_out=left_out)
    if role == "assistant" and recipient == "all" and kind in (*_TEXTS, "code"):
        text = read_text(content.get("text")) if kind == "code" else _joined(parts)
        text = _CITATION.sub("", text)
        if kind == "code" and text.strip():
            text = f"```\n{text}\n```"
        elif left_out.recordings and not text.strip():
            text = RECORDING
        message = without_think_tags(Message("assistant", (TextPart(text),))) if text.strip() else None
        return ForeignNode(parent, message, None, created_s, _model(said), left_out)
    return ForeignNode(parent, left_out=left_out + LeftOut(tool_messages=1))


def _before_answer(
    role: object, recipient: str, content: dict[str, Any], author: dict[str, Any]
) -> BeforeAnswer | None:
    """Return reasoning, a call that runs code, or what came of it; "" for empty reasoning, None for anything else."""
    kind = content.get("content_type")
    if kind == "thoughts":
        pieces = (read_text(each.get("content")) for each in read_list(content.get("thoughts")) if _is_object(each))
        return "\n\n".join(filter(None, pieces))
    if role == "assistant" and recipient.partition(".")[0] in _RUN_CODE:
        text = read_text(content.get("text")) or _joined(read_list(content.get("parts")))
        return ToolCall(recipient[:_MOST_NAME], json.dumps({"code": text}, ensure_ascii=False))
    if role == "tool" and read_text(author.get("name")).partition(".")[0] in _RUN_CODE:
        return CallOutput(read_text(content.get("text")) or _joined(read_list(content.get("parts"))))
    return None


def _question(parent: str, said: dict[str, Any], parts: list[Any], pictures: Pictures, named: LeftOut) -> ForeignNode:
    """Return the pictures, then the text, which has a sentence for whatever can't be imported."""
    images: list[ImagePart] = []
    texts: list[str] = []
    for part in parts:
        if _is(part, _PICTURE):
            found = pictures.find(read_text(part.get("asset_pointer")))
            if isinstance(found, str):
                texts.append(found)
            else:
                images.append(found)
        else:
            texts.append(_text(part))
    files = [name for name in map(_file_name, read_list(_metadata(said).get("attachments"))) if name]
    texts += [FILE.format(name) for name in files]
    text = "\n".join(filter(None, texts))
    if named.recordings and not text.strip():
        text = RECORDING
    content: tuple[Part, ...] = (*images, *((TextPart(text),) if text.strip() else ()))
    left_out = named + LeftOut(pictures=-len(images), files=len(files))
    created_s = read_time(said.get("create_time"))
    return ForeignNode(parent, Message("user", content) if content else None, None, created_s, left_out=left_out)


def _joined(parts: list[Any]) -> str:
    return "\n".join(filter(None, map(_text, parts)))


def _text(part: Any) -> str:
    """Return the text of a part: written, or the transcript of what was spoken."""
    return read_text(part.get("text")) if _is(part, "audio_transcription") else read_text(part)


def _file_name(attachment: Any) -> str:
    """Return the name of an attached file; "" for a picture, which is a part of the message."""
    if not _is_object(attachment) or read_text(attachment.get("mime_type")).startswith("image/"):
        return ""
    return " ".join(read_text(attachment.get("name")).split())[:_MOST_NAME]


def _metadata(said: dict[str, Any]) -> dict[str, Any]:
    return read_object(said.get("metadata"))


def _model(said: dict[str, Any]) -> str:
    return read_text(_metadata(said).get("model_slug"))[:100]


def _is(part: object, *kinds: str) -> bool:
    return isinstance(part, dict) and part.get("content_type") in kinds


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
