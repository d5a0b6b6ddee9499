"""Exports chats to files and imports them, with everything slow on other threads."""

import asyncio
import io
import re
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.core.files import write_whole
from qwendesk.core.messages import ImagePart
from qwendesk.services.chat.chats import ChatsService
from qwendesk.services.chat.copying import copied, new_id
from qwendesk.services.chat.exchange.markdown import markdown_of
from qwendesk.services.chat.exchange.own_json import own_json_of
from qwendesk.services.chat.exchange.reading import read_exchange
from qwendesk.services.chat.exchange.values import (
    BadExchange,
    Exchanged,
    ExchangedChat,
    ExportFormat,
    ImportReport,
    picture_ending,
)
from qwendesk.services.chat.exchange.web_page import web_page_of

ENDINGS: dict[ExportFormat, str] = {"markdown": ".md", "markdown_thoughts": ".md", "html": ".html", "json": ".json"}
_RESERVED = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


class ExchangeService:
    """Carries chats of the list out and others in."""

    def __init__(self, chats: ChatsService) -> None:
        self._chats = chats

    def file_name(self, kind: ExportFormat, chat_ids: Iterable[str]) -> str:
        """A good name for an export; one chat goes by its title, several as JSON or as a ZIP of single files."""
        ids = tuple(chat_ids)
        if len(ids) == 1 and ids[0] in self._chats.summaries:
            return file_stem(self._chats.summaries[ids[0]].title) + ENDINGS[kind]
        return "QwenDesk chats" + (ENDINGS["json"] if kind == "json" else ".zip")

    async def export(self, path: Path, kind: ExportFormat, chat_ids: Iterable[str] = ()) -> int:
        """Writes these chats, all without ids. Returns how many. Raises BadExchange or StoreFailure."""
        summaries = self._chats.summaries
        ids = [chat_id for chat_id in (tuple(chat_ids) or tuple(summaries)) if chat_id in summaries]
        chats = [ExchangedChat(summaries[chat_id], await self._chats.tree(chat_id)) for chat_id in ids]
        folders = self._chats.folders
        try:
            await asyncio.to_thread(lambda: write_whole(path, _content(chats, folders, kind)))
        except OSError as error:
            reason = error.strerror or str(error)
            raise BadExchange("Not exported", f"“{path.name}” cannot be written: {reason}.") from error
        return len(chats)

    async def import_from(self, path: Path) -> ImportReport:
        """Adds the chats of a file to the list, those that are not there. Raises BadExchange or StoreFailure."""
        read = await asyncio.to_thread(read_exchange, path)
        fresh = [chat for chat in read.chats if chat.summary.id not in self._chats.summaries]
        names = await self._folder_ids(read.folders, fresh)
        known = await self._chats.known_ids(name for chat in fresh for name in (chat.summary.id, *chat.tree.nodes))
        made = [_made(chat, names, known) for chat in fresh]
        with tempfile.TemporaryDirectory(prefix="qwendesk-import-") as folder:
            placed = await asyncio.to_thread(_with_files, made, read, Path(folder))
            await self._chats.add_as_is([(chat.summary, chat.tree) for chat in placed])
        messages = sum(len(chat.tree.nodes) for chat in made)
        return ImportReport(len(made), messages, len(read.chats) - len(fresh), read.unreadable, read.left_out_pictures)

    async def _folder_ids(self, folders: Iterable[Folder], chats: Iterable[ExchangedChat]) -> dict[str, str]:
        """The folders of a file by the ids of ours: one of that name, or a new one."""
        used = {chat.summary.folder_id for chat in chats}
        ours = {folder.name.casefold(): folder.id for folder in self._chats.folders}
        ids = {}
        for folder in folders:
            name = " ".join(folder.name.split())[:200]
            if folder.id in used and name:
                known = ours.get(name.casefold())
                ids[folder.id] = known or self._chats.add_folder(name).id
                ours[name.casefold()] = ids[folder.id]
        return ids


def file_stem(title: str) -> str:
    """A title as a file's name on every system, without its ending."""
    stem = _RESERVED.sub(" ", title)
    stem = " ".join(stem.split())[:80].strip(". ") or "Chat"
    return f"{stem} chat" if _DEVICES.fullmatch(stem) else stem


def _content(chats: list[ExchangedChat], folders: tuple[Folder, ...], kind: ExportFormat) -> bytes:
    if kind == "json":
        return own_json_of(chats, folders)
    if len(chats) == 1:
        return _single(chats[0], kind)
    packed = io.BytesIO()
    taken: set[str] = set()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for chat in chats:
            archive.writestr(_free_name(file_stem(chat.summary.title), ENDINGS[kind], taken), _single(chat, kind))
    return packed.getvalue()


def _single(chat: ExchangedChat, kind: ExportFormat) -> bytes:
    text = web_page_of(chat) if kind == "html" else markdown_of(chat, thoughts=kind == "markdown_thoughts")
    return text.encode("utf-8", "replace")


def _free_name(stem: str, ending: str, taken: set[str]) -> str:
    name, count = stem + ending, 1
    while name.casefold() in taken:
        count += 1
        name = f"{stem} ({count}){ending}"
    taken.add(name.casefold())
    return name


def _made(chat: ExchangedChat, folders: dict[str, str], known: frozenset[str]) -> ExchangedChat:
    """With ids of its own where the file's are taken, and a folder that is here."""
    summary: ChatSummary = msgspec.structs.replace(chat.summary, folder_id=folders.get(chat.summary.folder_id, ""))
    if known.isdisjoint((summary.id, *chat.tree.nodes)):
        return ExchangedChat(summary, chat.tree)
    return ExchangedChat(msgspec.structs.replace(summary, id=new_id()), copied(chat.tree))


def _with_files(chats: list[ExchangedChat], read: Exchanged, folder: Path) -> list[ExchangedChat]:
    """Pictures that came along lie in `folder`, where the store takes them from; others have no file."""
    for sha256, content in read.files.items():
        (folder / (sha256 + picture_ending(content))).write_bytes(content)
    places = {path.stem: str(path) for path in folder.iterdir()}
    placed = []
    for chat in chats:
        tree = chat.tree
        for node in tree.nodes.values():
            if node.message.images:
                parts = tuple(
                    msgspec.structs.replace(part, path=places.get(part.sha256, ""))
                    if isinstance(part, ImagePart)
                    else part
                    for part in node.message.parts
                )
                message = msgspec.structs.replace(node.message, parts=parts)
                nodes = {**tree.nodes, node.id: msgspec.structs.replace(node, message=message)}
                tree = msgspec.structs.replace(tree, nodes=nodes)
        placed.append(ExchangedChat(chat.summary, tree))
    return placed
