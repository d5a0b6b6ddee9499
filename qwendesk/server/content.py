"""Contents of messages in all APIs: texts, pictures, documents, and the reasoning that stands among them."""

from collections.abc import Iterator
from typing import Any

from qwendesk.core.messages import Part, TextPart
from qwendesk.core.text_decoding import decode_text
from qwendesk.server.fields import Fields
from qwendesk.server.pictures import picture, read_base64, read_picture

_TEXTS = ("text", "input_text", "output_text", "refusal")
_PICTURES = ("image_url", "input_image", "image", "computer_screenshot")
_DOCUMENTS = ("document", "file", "input_file", "search_result")
_REASONING = ("thinking", "reasoning", "reasoning_text")
_CALLS = ("tool_use", "tool_result")
"""Of Anthropic's API, which reads them by themselves."""
_ELSEWHERE = ("redacted_thinking", "container_upload", "tool_reference", "compaction")
"""What only Anthropic's servers can read; so are the kinds that end like calls and results of their tools."""
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text", "reasoning_details")
_PICTURE_HEADS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")


def read_content(body: Fields, name: str) -> Iterator[Part]:
    """Yield the parts of a content: a text, or a list of texts, pictures and documents. Raise Refused.

    Reasoning and calls among them are left to others.
    """
    content = body.any(name)
    if isinstance(content, str):
        yield TextPart(content)
    elif isinstance(content, list) and all(isinstance(each, str) for each in content):
        yield from map(TextPart, content)
    else:
        for part in body.objects(name):
            yield from _read_part(part)


def read_reasoning(body: Fields, content: str) -> str:
    """Return the reasoning of an earlier answer: under one of the names that clients use, or among its content."""
    for name in _REASONING_FIELDS:
        if found := _text_of(body.any(name)):
            return found
    if not isinstance(body.any(content), list) or not all(isinstance(each, dict) for each in body.any(content)):
        return ""
    parts = (part for part in body.objects(content) if part.any("type") in _REASONING)
    return "".join(_text_of(part.value) for part in parts)


def _read_part(part: Fields) -> Iterator[Part]:
    kind = part.text("type", "text")
    if kind in _TEXTS:
        yield TextPart(part.text("refusal" if kind == "refusal" else "text"))
    elif kind in _PICTURES:
        yield read_picture(part)
    elif kind in _DOCUMENTS:
        yield from _read_document(part)
    elif kind in _ELSEWHERE or (kind.endswith(("_tool_use", "_tool_result")) and kind not in _CALLS):
        part.drop()
    elif kind not in (*_REASONING, *_CALLS):
        raise part.refuse("type", f'Parts of the type "{kind}" can\'t be read. Send text and pictures.')


def _read_document(part: Fields) -> Iterator[Part]:
    """Yield a document with its name: its text, its parts, or a picture. Raise Refused for all else."""
    title = part.text("title")
    if part.text("type") == "search_result":
        yield TextPart(f"{title}\n{part.text('source')}\n".lstrip())
        yield from read_content(part, "content")
        return
    place = next((name for name in ("source", "file") if isinstance(part.peek(name), dict)), "")
    source = part.object(place) if place else part
    title = title or source.text("filename")
    if source.text("type") == "text":
        yield TextPart(f"{title}\n{source.text('data')}\n".lstrip())
        return
    if source.has("content"):
        yield TextPart(f"{title}\n")
        yield from read_content(source, "content")
        return
    name = "data" if source.has("data") else "file_data"
    if not source.has(name):
        sentence = "QwenDesk keeps no files and fetches no addresses. Send the text of the document, or a picture."
        raise source.refuse("file_id" if source.has("file_id") else "type", sentence)
    source.any("media_type")
    data = read_base64(source.text(name), source.path(name))
    text = None if data.startswith(b"%PDF") else decode_text(data)
    if text is not None:
        yield TextPart(f"{title}\n{text}\n".lstrip())
    elif data.startswith(_PICTURE_HEADS):
        yield picture(source.text(name), source.path(name))
    else:
        raise source.refuse(name, "Only documents of plain text and pictures are read. Send the text of the document.")


def _text_of(value: Any) -> str:
    """Return the text in what clients send as reasoning: a text, an object with one, or a list of those."""
    if isinstance(value, list):
        return "".join(map(_text_of, value))
    if isinstance(value, dict):
        return next(
            filter(None, (_text_of(value.get(name)) for name in ("text", "thinking", "content", "summary"))), ""
        )
    return value if isinstance(value, str) else ""
