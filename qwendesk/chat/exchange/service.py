"""Export of chats to files and import from files. Everything slow runs on other threads."""

import asyncio
import contextlib
import io
import re
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.exchange.exchange_reader import ExchangeReader
from qwendesk.chat.exchange.own_json import export_json
from qwendesk.chat.exchange.pictures import ImportedPictures
from qwendesk.chat.exchange.readable_exports import export_markdown, export_web_page
from qwendesk.chat.exchange.values import (
    BadExchange,
    ExchangedChat,
    ExportFormat,
    ImportReport,
    ReadChat,
)
from qwendesk.chat.tree_edits import copied_tree, new_id
from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.core.files import reason_of, write_whole
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB

T = TypeVar("T")

# Chats from about this many bytes of the file are added at once.
_GROUP_BYTES = 2 * MIB
ENDINGS: dict[ExportFormat, str] = {"markdown": ".md", "markdown_thoughts": ".md", "html": ".html", "json": ".json"}
_RESERVED = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


class ExchangeService:
    def __init__(self, chat_list: ChatListService) -> None:
        self._chat_list = chat_list

    def file_name(self, kind: ExportFormat, chat_ids: Iterable[str]) -> str:
        """Return a file name for an export.

        A single chat gives its title. Several chats are exported as one JSON file, or as a ZIP of other files.
        """
        ids = tuple(chat_ids)
        summary = self._chat_list.chats.summaries.get(ids[0]) if len(ids) == 1 else None
        if summary is not None:
            return file_stem(summary.title) + ENDINGS[kind]
        return "QwenDesk chats" + (ENDINGS["json"] if kind == "json" else ".zip")

    async def export(self, path: Path, kind: ExportFormat, chat_ids: Iterable[str] = ()) -> int:
        """Write these chats, or all if no id is given, and return their number. Raises BadExchange or StoreFailure."""
        state = self._chat_list.state.value
        summaries = state.summaries
        ids = [chat_id for chat_id in (tuple(chat_ids) or tuple(summaries)) if chat_id in summaries]
        chats = [ExchangedChat(summaries[chat_id], await self._chat_list.tree(chat_id)) for chat_id in ids]
        try:
            await asyncio.to_thread(lambda: write_whole(path, _content(chats, state.folders, kind)))
        except OSError as error:
            sentence = tr("{0} can't be written: {1}.", path.name, reason_of(error, path))
            raise BadExchange(tr("Chats not exported"), sentence) from error
        return len(chats)

    async def import_from(self, path: Path) -> ImportReport:
        """Add the chats of a file that are not in the list yet. Raises BadExchange or StoreFailure.

        A damaged file is refused before any chat is added. The chats are added in small groups, so that the import
        needs little memory and can be stopped between them.
        """
        # Removing the folder may fail, because the thread of a stopped import may still be writing to it.
        with tempfile.TemporaryDirectory(prefix="qwendesk-import-", ignore_cleanup_errors=True) as folder:
            async with _opened(path, ImportedPictures(Path(folder))) as reader:
                checking = reader.check()
                while await asyncio.to_thread(_next_group, checking, reader):
                    pass
                chats, report = reader.chats(), ImportReport()
                folder_ids: dict[str, str] = {}
                while group := await asyncio.to_thread(_next_group, chats, reader):
                    report = await self._add(group, reader.folders, folder_ids, report)
        return report

    async def _add(
        self, group: list[ReadChat], folders: Iterable[Folder], folder_ids: dict[str, str], report: ImportReport
    ) -> ImportReport:
        """Add these chats to the list, and return `report` with them included."""
        chats = {read.chat.summary.id: read.chat for read in group if read.chat is not None}
        fresh = [chat for chat_id, chat in chats.items() if chat_id not in self._chat_list.chats.summaries]
        self._find_folders(folders, fresh, folder_ids)
        known = await self._chat_list.known_ids(name for chat in fresh for name in (chat.summary.id, *chat.tree.nodes))
        added = [_to_add(chat, folder_ids, known) for chat in fresh]
        await self._chat_list.add_chats([(chat.summary, chat.tree) for chat in added])
        return ImportReport(
            chats=report.chats + len(added),
            messages=report.messages + sum(len(chat.tree.nodes) for chat in added),
            already_here=report.already_here + sum(read.chat is not None for read in group) - len(fresh),
            unreadable=report.unreadable + sum(read.problem == "unreadable" for read in group),
            too_large=report.too_large + sum(read.problem == "too_large" for read in group),
            left_out=sum((read.left_out for read in group), report.left_out),
        )

    def _find_folders(self, folders: Iterable[Folder], chats: Iterable[ExchangedChat], ids: dict[str, str]) -> None:
        """Map the folder ids of these chats to the ids of the app's folders, in `ids`.

        A folder is created if none has its name.
        """
        used = {chat.summary.folder_id for chat in chats} - ids.keys()
        if not used:
            return
        ours = {folder.name.casefold(): folder.id for folder in self._chat_list.folders.folders}
        for folder in folders:
            name = " ".join(folder.name.split())[:200]
            if folder.id in used and name:
                known = ours.get(name.casefold())
                ids[folder.id] = known or self._chat_list.folders.add(name).id
                ours[name.casefold()] = ids[folder.id]


@contextlib.asynccontextmanager
async def _opened(path: Path, pictures: ImportedPictures) -> AsyncIterator[ExchangeReader]:
    """Open a file on another thread. It is closed in the end, even if the caller is cancelled while it is opened."""
    opening = asyncio.ensure_future(asyncio.to_thread(ExchangeReader, path, pictures))
    try:
        yield await asyncio.shield(opening)
    finally:
        if not opening.done():
            await asyncio.wait({opening})
        if opening.exception() is None:
            opening.result().close()


def _next_group(items: Iterator[T], reader: ExchangeReader) -> list[T]:
    """Return the next items, from a few megabytes of the file; an empty list at the end. Blocks."""
    group: list[T] = []
    begin = reader.position
    for item in items:
        group.append(item)
        if not 0 <= reader.position - begin < _GROUP_BYTES:
            break
    return group


def file_stem(title: str) -> str:
    """Return a title as a file name that every system accepts, without an ending."""
    stem = _RESERVED.sub(" ", title)
    stem = " ".join(stem.split())[:80].strip(". ") or "Chat"
    return f"{stem} chat" if _DEVICES.fullmatch(stem) else stem


def _content(chats: list[ExchangedChat], folders: tuple[Folder, ...], kind: ExportFormat) -> bytes:
    if kind == "json":
        return export_json(chats, folders)
    if len(chats) == 1:
        return _single(chats[0], kind)
    packed = io.BytesIO()
    taken: set[str] = set()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for chat in chats:
            archive.writestr(_free_name(file_stem(chat.summary.title), ENDINGS[kind], taken), _single(chat, kind))
    return packed.getvalue()


def _single(chat: ExchangedChat, kind: ExportFormat) -> bytes:
    text = (
        export_web_page(chat) if kind == "html" else export_markdown(chat, with_reasoning=kind == "markdown_thoughts")
    )
    return text.encode("utf-8", "replace")


def _free_name(stem: str, ending: str, taken: set[str]) -> str:
    name, count = stem + ending, 1
    while name.casefold() in taken:
        count += 1
        name = f"{stem} ({count}){ending}"
    taken.add(name.casefold())
    return name


def _to_add(chat: ExchangedChat, folders: dict[str, str], known: frozenset[str]) -> ExchangedChat:
    """Return the chat with new ids if its own are taken, and with the id of the app's folder."""
    summary: ChatSummary = msgspec.structs.replace(chat.summary, folder_id=folders.get(chat.summary.folder_id, ""))
    if known.isdisjoint((summary.id, *chat.tree.nodes)):
        return ExchangedChat(summary, chat.tree)
    return ExchangedChat(msgspec.structs.replace(summary, id=new_id()), copied_tree(chat.tree))
