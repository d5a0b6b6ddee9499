"""Contents of messages in all APIs: texts, pictures, documents, and the reasoning that stands among them."""

import hashlib
from collections.abc import Iterator
from typing import Any

from qwendesk.chat.exchange.pictures import picture_ending
from qwendesk.core.json_decoding import decode_base64
from qwendesk.core.messages import ImagePart, Part, TextPart
from qwendesk.core.text_decoding import decode_text
from qwendesk.server.clips import UnreadClip
from qwendesk.server.fields import Fields
from qwendesk.server.refusals import BAD_PICTURE, Refused, bad_field

_TEXTS = ("text", "input_text", "output_text", "refusal")
_PICTURES = ("image_url", "input_image", "image", "computer_screenshot")
_CLIPS = ("video_url", "input_video", "video")
_DOCUMENTS = ("document", "file", "input_file", "search_result")
_REASONING = ("thinking", "reasoning", "reasoning_text")
# Of Anthropic's API, which reads them by themselves.
_CALLS = ("tool_use", "tool_result")
# What only Anthropic's servers can read; so are the kinds that end like calls and results of their tools.
_ELSEWHERE = ("redacted_thinking", "container_upload", "tool_reference", "compaction")
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text", "reasoning_details")


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
    elif kind in _CLIPS:
        yield _read_clip(part)
    elif kind in _DOCUMENTS:
        yield from _read_document(part)
    elif kind in _ELSEWHERE or (kind.endswith(("_tool_use", "_tool_result")) and kind not in _CALLS):
        part.drop()
    elif kind not in (*_REASONING, *_CALLS):
        raise part.refuse("type", f'Parts of the type "{kind}" can\'t be read. Send text, pictures and clips.')


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
    decoded = None if data.startswith(b"%PDF") else decode_text(data)
    if decoded is not None:
        yield TextPart(f"{title}\n{decoded.text}\n".lstrip())
    elif picture_ending(data):
        yield picture(source.text(name), source.path(name))
    else:
        raise source.refuse(name, "Only documents of plain text and pictures are read. Send the text of the document.")


def _read_clip(part: Fields, param: str = "") -> ImagePart:
    """Return a clip whose frames are still to be read. Raise Refused for what can't be read."""
    for name in _UNUSED:
        part.any(name)
    for name in _CLIP_PLACES:
        place = param or part.path(name)
        if isinstance(part.peek(name), dict):
            return _read_clip(part.object(name), place)
        if part.has(name):
            data = read_base64(part.text(name), place, "data:video/mp4;base64,...")
            return UnreadClip(place, hashlib.sha256(data).hexdigest(), data=data)
    raise _bad(param or part.path("video_url"), f"{param or part.path('video_url')} is missing.")


def _text_of(value: Any) -> str:
    """Return the text in what clients send as reasoning: a text, an object with one, or a list of those."""
    if isinstance(value, list):
        return "".join(map(_text_of, value))
    if isinstance(value, dict):
        return next(
            filter(None, (_text_of(value.get(name)) for name in ("text", "thinking", "content", "summary"))), ""
        )
    return value if isinstance(value, str) else ""


# Where the parts of the APIs have a picture, or an object with it.
_PLACES = ("image_url", "image", "source", "url", "data", "file_data")
_CLIP_PLACES = ("video_url", "input_video", "video", "data", "url")
# What says which format a picture or clip has: that is seen from its bytes.
_UNUSED = ("type", "media_type", "mime_type", "mimeType", "format")


def read_picture(part: Fields, param: str = "") -> ImagePart:
    """Return the picture of a part of a message. Raise Refused, with `param`, for what can't be read.

    Whether it is a picture is found out by the engine.
    """
    for name in (*_UNUSED, *(("detail",) if part.peek("detail") in ("auto", "high", "original") else ())):
        part.any(name)
    for name in _PLACES:
        if isinstance(part.peek(name), dict):
            return read_picture(part.object(name), param or part.path(name))
        if part.has(name):
            return picture(part.text(name), param or part.path(name))
    if part.has("file_id"):
        raise _bad(param or part.path("file_id"), "QwenDesk keeps no files. Send the picture itself, in base64.")
    raise _bad(param or part.path("image_url"), f"{param or part.path('image_url')} is missing.")


def picture(text: str, param: str) -> ImagePart:
    """Return the picture in base64. The field stands for its path, so that the engine's errors name it."""
    data = read_base64(text, param)
    return ImagePart(param, hashlib.sha256(data).hexdigest(), data=data)


def read_base64(text: str, param: str, example: str = "data:image/png;base64,...") -> bytes:
    """Return the bytes of a data URL, or of base64 without one. Raise Refused for anything else."""
    if ":" in text[:100] and not text.lstrip()[:5].lower() == "data:":
        raise _bad(param, f"QwenDesk fetches no addresses. Send the file itself in base64: {example}")
    try:
        data = decode_base64(text)
    except ValueError as error:
        raise _bad(param, f"{param} is not valid base64: {error}.") from error
    if not data:
        raise _bad(param, f"{param} is empty.")
    return data


def _bad(param: str, sentence: str) -> Refused:
    return bad_field(param, sentence, code=BAD_PICTURE)
