"""Turns what a server answers into text and pictures, cut to what the app accepts."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import mcp_types as types

from qwendesk.core.json_decoding import whole_characters
from qwendesk.core.text_decoding import decode_base64
from qwendesk.mcp.host_protocol import (
    IMAGE_TYPES,
    MOST_IMAGES,
    MOST_IMAGES_BYTES,
    MOST_TEXT,
    Answered,
    ImageData,
)

Block = types.ContentBlock | types.TextResourceContents | types.BlobResourceContents


def tool_answer(request_id: int, result: types.CallToolResult) -> Answered:
    """Return the result of a tool. Structured content is text if there is nothing else, as it repeats the text."""
    answer = _answer(request_id, result.content)
    text = answer.text
    if not result.content and result.structured_content is not None:
        text = shortened(json.dumps(result.structured_content, ensure_ascii=False), MOST_TEXT)
    return Answered(request_id, text, answer.images, bool(result.is_error))


def resource_answer(request_id: int, result: types.ReadResourceResult) -> Answered:
    return _answer(request_id, result.contents)


def prompt_answer(request_id: int, result: types.GetPromptResult) -> Answered:
    """Return the messages of a prompt one after the other. Those that speak for the assistant are marked."""
    blocks: list[Block] = []
    for message in result.messages:
        if message.role == "assistant":
            blocks.append(types.TextContent(type="text", text="(The assistant's part:)"))
        blocks.append(message.content)
    return _answer(request_id, blocks)


def shortened(text: str | None, most: int) -> str:
    """Return a text of at most `most` characters that UTF-8 can encode, with how much is missing."""
    text = (text or "").encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= most else f"{text[:most]}\n(cut off: {len(text):,} characters in all)"


def _answer(request_id: int, blocks: Iterable[Block]) -> Answered:
    texts: list[str] = []
    images: list[ImageData] = []
    for block in blocks:
        image = _image(block, images)
        if image is not None:
            images.append(image)
            texts.append(f"(picture {len(images)})")
        else:
            texts.append(_text(block))
    return Answered(request_id, shortened("\n\n".join(texts), MOST_TEXT), tuple(images))


def _text(block: Block) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.ResourceLink(uri=uri, name=name):
            return f"{name}: {uri}"
        case types.EmbeddedResource(resource=resource):
            return _text(resource)
        case types.TextResourceContents(uri=uri, text=text):
            return f"{uri}:\n{text}"
        case types.BlobResourceContents(uri=uri, blob=blob, mime_type=mime):
            return f"({uri}: {mime or 'unknown type'}, {len(blob) * 3 // 4:,} bytes, which can't be shown)"
        case types.ImageContent(mime_type=mime):
            return f"(a picture that is damaged, too large or of a type that can't be shown: {mime})"
        case types.AudioContent(mime_type=mime):
            return f"(a sound, which can't be played to the model: {mime})"


def _image(block: Block, earlier: Sequence[ImageData]) -> ImageData | None:
    """Return the picture of a block, if it is one and there is room for it."""
    match block:
        case types.EmbeddedResource(resource=resource):
            return _image(resource, earlier)
        case types.ImageContent(data=data, mime_type=mime):
            encoded = data
        case types.BlobResourceContents(blob=data, mime_type=str(mime)):
            encoded = data
        case _:
            return None
    n_bytes = sum(len(each.data) for each in earlier)
    has_room = len(earlier) < MOST_IMAGES and n_bytes + len(encoded) * 3 // 4 <= MOST_IMAGES_BYTES
    if mime not in IMAGE_TYPES or not has_room:
        return None
    try:
        return ImageData(mime, decode_base64(encoded))
    except ValueError:
        return None


def plain(value: Any) -> Any:
    """Return a JSON value without what UTF-8 can't encode."""
    return json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))
