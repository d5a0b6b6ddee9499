"""Our own format: everything of a chat, so that it can be imported again. One JSON file, pictures inside."""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Iterable

import msgspec

from qwendesk.core.chat_tree import ChatNode, ChatTree
from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.core.messages import ImagePart, Part
from qwendesk.services.chat.copying import new_id
from qwendesk.services.chat.exchange.values import BadExchange, Exchanged, ExchangedChat, picture_bytes

FORMAT = "qwendesk-chats"
VERSION = 1
_ID = re.compile(r"[0-9a-f]{32}")


class _Chat(msgspec.Struct, frozen=True):
    summary: ChatSummary
    nodes: tuple[ChatNode, ...] = ()
    shown: dict[str, str] = {}


class _File(msgspec.Struct, frozen=True):
    format: str
    version: int
    chats: tuple[msgspec.Raw, ...] = ()
    folders: tuple[Folder, ...] = ()
    files: dict[str, str] = {}


def own_json_of(chats: Iterable[ExchangedChat], folders: Iterable[Folder]) -> bytes:
    """The file's bytes. Pictures whose file is gone are left out. Blocks."""
    chats = tuple(chats)
    images = {
        image.sha256: image for chat in chats for node in chat.tree.nodes.values() for image in node.message.images
    }
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


def read_own_json(content: bytes) -> Exchanged:
    """What such a file holds, put right where it is wrong. Raises BadExchange for what is no such file."""
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadExchange("Not an export", f"This is not an export of QwenDesk: {error}") from error
    if file.format != FORMAT:
        raise BadExchange("Not an export", "This is not an export of QwenDesk.")
    if file.version > VERSION:
        raise BadExchange("Newer export", "This was exported by a newer QwenDesk. Update QwenDesk to import it.")
    chats, unreadable = [], 0
    for raw in file.chats:
        try:
            chats.append(_chat(msgspec.json.decode(raw, type=_Chat)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            unreadable += 1
    return Exchanged(tuple(chats), file.folders, _files(file.files), unreadable)


def _written(chat: ExchangedChat) -> _Chat:
    nodes = tuple(_without_path(node) for node in chat.tree.nodes.values())
    return _Chat(chat.summary, nodes, dict(chat.tree.shown))


def _without_path(node: ChatNode) -> ChatNode:
    """A place on this PC means nothing on another, and tells what is none of its business."""
    if not node.message.images:
        return node
    parts: tuple[Part, ...] = tuple(
        msgspec.structs.replace(part, path="") if isinstance(part, ImagePart) else part for part in node.message.parts
    )
    return msgspec.structs.replace(node, message=msgspec.structs.replace(node.message, parts=parts))


def _chat(read: _Chat) -> ExchangedChat:
    """A tree that holds together: no id twice, parents before children, no circles, times that are times."""
    nodes: dict[str, ChatNode] = {}
    for node in read.nodes:
        if not _ID.fullmatch(node.id) or node.id in nodes:
            continue
        parent = node.parent_id if node.parent_id in nodes else ""
        clean = _without_path(msgspec.structs.replace(node, parent_id=parent, created_s=_time(node.created_s)))
        nodes[node.id] = clean
    shown = {
        parent: child for parent, child in read.shown.items() if child in nodes and nodes[child].parent_id == parent
    }
    summary = read.summary
    summary = msgspec.structs.replace(
        summary,
        id=summary.id if _ID.fullmatch(summary.id) else new_id(),
        title=" ".join(summary.title.split())[:500],
        created_s=_time(summary.created_s),
        changed_s=_time(summary.changed_s),
        # A path from elsewhere would be loaded as it stands.
        settings=msgspec.structs.replace(summary.settings, model=""),
    )
    return ExchangedChat(summary, ChatTree(nodes, shown))


def _time(seconds: float) -> float:
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e11 else 0.0


def _files(encoded: dict[str, str]) -> dict[str, bytes]:
    """Only those that are what their hash says."""
    files = {}
    for sha256, text in encoded.items():
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            continue
        if hashlib.sha256(content).hexdigest() == sha256:
            files[sha256] = content
    return files
