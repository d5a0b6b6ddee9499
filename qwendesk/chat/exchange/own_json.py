"""QwenDesk's own format: complete chats with their pictures in one JSON file, which can be imported again."""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from qwendesk.chat.exchange.json_stream import JsonStream, ValueTooLong
from qwendesk.chat.exchange.pictures import ImportedPictures, picture_bytes
from qwendesk.chat.exchange.values import (
    MAX_MESSAGE_BYTES,
    MAX_PICTURE_BYTES,
    MAX_SMALL_VALUE_BYTES,
    NOT_AN_EXPORT,
    BadExchange,
    ChatValues,
    ExchangedChat,
    ReadChat,
)
from qwendesk.chat.tree_edits import new_id
from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import ClipFrame, ImagePart, ToolStep
from qwendesk.core.think_tags import without_think_tags
from qwendesk.core.translation import tr

FORMAT = "qwendesk-chats"
VERSION = 1
_ID = re.compile(r"[0-9a-f]{32}")


class _Chat(msgspec.Struct, frozen=True):
    summary: ChatSummary
    nodes: tuple[ChatNode, ...] = ()
    shown: dict[str, str] = {}


def export_json(chats: Iterable[ExchangedChat], folders: Iterable[Folder]) -> bytes:
    """Return the content of an export file. Pictures whose file is missing are left out. Blocks."""
    chats = tuple(chats)
    nodes = (node for chat in chats for node in chat.tree.nodes.values())
    images = {image.sha256: image for node in nodes for image in node.message.all_images}
    files = {}
    for sha256, image in images.items():
        content = picture_bytes(image)
        if content:
            files[sha256] = base64.b64encode(content).decode()
    used = {chat.summary.folder_id for chat in chats}
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "folders": [folder for folder in folders if folder.id in used],
        "chats": [
            _Chat(chat.summary, tuple(map(_without_path, chat.tree.nodes.values())), dict(chat.tree.shown))
            for chat in chats
        ],
        "files": files,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1)


def read_head(stream: JsonStream, pictures: ImportedPictures) -> Iterator[tuple[Folder, ...]]:
    """Check the whole file and read everything except its chats. Pictures are added to `pictures`.

    The last yielded value is the folders. The empty tuples before it only let the caller stop in between. Raises
    BadExchange if the file isn't in this format.
    """
    known: dict[str, Any] = {"format": "", "version": 0, "folders": ()}
    kinds: dict[str, Any] = {"format": str, "version": int, "folders": tuple[Folder, ...]}
    for key in stream.members():
        if key in kinds:
            known[key] = _decoded(stream, kinds[key])
        elif key == "chats":
            if stream.peek() != b"[":
                raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))
            for _ in stream.elements():
                stream.skip()
                yield ()
        elif key == "files" and stream.peek() == b"{":
            for sha256 in stream.members():
                _add_picture(stream, sha256, pictures)
                yield ()
        if (known["format"] or FORMAT) != FORMAT:
            break
        if known["version"] > VERSION:
            raise BadExchange(
                tr("Newer export"), tr("This was exported by a newer QwenDesk. Update QwenDesk to import it.")
            )
    if known["format"] != FORMAT:
        raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT))
    stream.check_end()
    yield known["folders"]


def read_own_chats(stream: JsonStream, pictures: ImportedPictures) -> Iterator[ReadChat]:
    """Yield the chats of a checked file. Invalid ids, parents and times are corrected."""
    for key in stream.members():
        if key == "chats":
            for _ in stream.elements():
                yield _chat(stream, pictures)


def _decoded(stream: JsonStream, kind: Any) -> Any:
    try:
        return decode_json(stream.raw(MAX_SMALL_VALUE_BYTES), kind)
    except (msgspec.DecodeError, ValueTooLong) as error:
        raise BadExchange(tr("Chats not imported"), tr(NOT_AN_EXPORT)) from error


def _with_paths(node: ChatNode, path_of: Callable[[str], str]) -> ChatNode:
    """Return the message with the path that `path_of` returns for the hash of each picture."""

    def with_path(image: ImagePart) -> ImagePart:
        frame = _clean_frame(image.frame) if image.frame is not None else None
        return ImagePart(path_of(image.sha256), image.sha256, image.longest_side, frame=frame)

    return msgspec.structs.replace(node, message=node.message.with_images(with_path))


def _clean_frame(frame: ClipFrame) -> ClipFrame:
    name = " ".join(frame.clip.split())[:500]
    return msgspec.structs.replace(frame, clip=name, time_s=_time(frame.time_s), clip_s=_time(frame.clip_s))


def _without_path(node: ChatNode) -> ChatNode:
    """Return the message without the paths of its pictures, which are private and useless on another PC."""
    return _with_paths(node, lambda _sha256: "")


def _chat(stream: JsonStream, pictures: ImportedPictures) -> ReadChat:
    """Read the chat at the position of `stream`."""
    values, summary = ChatValues(stream), None
    nodes: dict[str, ChatNode] = {}
    shown: dict[str, str] = {}
    for key in values.members():
        if key == "summary":
            summary = values.value(MAX_SMALL_VALUE_BYTES, ChatSummary)
        elif key == "nodes":
            for _ in values.elements():
                node = values.value(MAX_MESSAGE_BYTES, ChatNode)
                if node is not None:
                    _add_node(nodes, node, pictures)
        elif key == "shown":
            for parent in values.members():
                shown[parent] = values.value(MAX_SMALL_VALUE_BYTES, str) or ""
    if values.problem or summary is None:
        return ReadChat(problem=values.problem or "unreadable")
    shown = {parent: child for parent, child in shown.items() if child in nodes and nodes[child].parent_id == parent}
    return ReadChat(ExchangedChat(_clean(summary), ChatTree(nodes, shown)))


def _add_node(nodes: dict[str, ChatNode], node: ChatNode, pictures: ImportedPictures) -> None:
    """Add `node`, corrected so that the tree is valid.

    A message with an invalid or repeated id is left out. A parent that doesn't come before its child is dropped, so
    there are no cycles. An invalid time becomes 0.
    """
    if not _ID.fullmatch(node.id) or node.id in nodes:
        return
    parent = node.parent_id if node.parent_id in nodes else ""
    message = without_think_tags(node.message)
    message = msgspec.structs.replace(message, steps=tuple(map(_without_ids, message.steps)))
    clean = msgspec.structs.replace(node, parent_id=parent, created_s=_time(node.created_s), message=message)
    nodes[node.id] = _with_paths(clean, pictures.path)


def _without_ids(step: ToolStep) -> ToolStep:
    """Return the step without the ids of its calls: a call from outside must not name what is kept of calls here."""
    return msgspec.structs.replace(step, calls=tuple(msgspec.structs.replace(call, id="") for call in step.calls))


def _clean(summary: ChatSummary) -> ChatSummary:
    return msgspec.structs.replace(
        summary,
        id=summary.id if _ID.fullmatch(summary.id) else new_id(),
        title=" ".join(summary.title.split())[:500],
        created_s=_time(summary.created_s),
        changed_s=_time(summary.changed_s),
        # A file from outside must not choose the model that is loaded here, nor what tools may do and read.
        settings=msgspec.structs.replace(summary.settings, model="", tools=(), tool_folders=(), is_imported=True),
    )


def _time(seconds: float) -> float:
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e11 else 0.0


def _add_picture(stream: JsonStream, sha256: str, pictures: ImportedPictures) -> None:
    """Add the picture that begins here, unless it is too large or doesn't match its hash."""
    try:
        raw = stream.raw(MAX_PICTURE_BYTES * 4 // 3 + 6)
        content = binascii.a2b_base64(raw[1:-1], strict_mode=True)
    except (ValueTooLong, binascii.Error, ValueError):
        return
    if hashlib.sha256(content).hexdigest() == sha256:
        pictures.add(content)
