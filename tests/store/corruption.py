"""Chats whose every piece says which message it is of, and ways in which a disk damages their file."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from qwendesk.core.chats import ChatSummary, Folder, SavedDraft
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import Message, Part, TextPart
from qwendesk.store.opening import FILE_NAME, Store, open_store
from tests.store.attachment_files import picture

PAGE_BYTES = 4096
_CHATS, _MESSAGES, _DELETED_CHATS = 12, 24, 5
_MARK = re.compile(rb"<<([a-z0-9-]+)>>")


class Written(msgspec.Struct):
    """What was written, by id of the message."""

    texts: dict[str, str]
    newer: set[str]
    """Messages that the backup does not have."""
    pictures: dict[str, bytes]


def text_of(name: str, chance: random.Random) -> str:
    """Some are longer than a page, so that they go on elsewhere in the file."""
    repeats = chance.choice((1, 3, 10, 10, 30, 300 if chance.random() < 0.3 else 5))
    return " ".join(f"<<{name}>> heron Ä{chance.randrange(1000)} reeds" for _ in range(repeats))


def write_chats(folder: Path, *, is_closed: bool) -> Written:
    """Fill the store in `folder`. If it is not closed, the newest writes are only in the log, as after a crash."""
    live = folder.with_name(f"{folder.name}-live")
    store, _report = open_store(live)
    assert store is not None
    chance = random.Random(13)
    written = Written({}, set(), {})
    store.chats.save_folder(Folder("f", "Work"))
    for chat in range(_CHATS + _DELETED_CHATS):
        summary = ChatSummary(id=f"c{chat}", title=f"Title {chat}", folder_id="f" if chat % 2 else "")
        store.chats.save_summary(summary).result()
    for number in range(_MESSAGES):
        for chat in range(_CHATS + _DELETED_CHATS):
            _add(store, live, (chat, number), written, chance)
    store.chats.set_deleted([f"c{chat}" for chat in range(_CHATS, _CHATS + _DELETED_CHATS)], 1.0)
    store.chats.purge().result()
    store.chats.save_draft("c1", SavedDraft("half a question"), 1.0)
    for name in [name for name in written.texts if int(name[1:].split("-")[0]) >= _CHATS]:
        del written.texts[name]
        written.pictures.pop(name, None)
    assert store.back_up() is not None
    written.newer.update(written.texts)
    for number in range(_MESSAGES, _MESSAGES + 4):
        for chat in range(0, _CHATS, 2):
            _add(store, live, (chat, number), written, chance)
    if is_closed:
        store.close()
        shutil.copytree(live, folder)
    else:
        shutil.copytree(live, folder)
        store.close()
    for path in folder.glob("*-shm"):
        path.unlink()
    written.newer.symmetric_difference_update(written.texts)
    return written


def _add(store: Store, folder: Path, place: tuple[int, int], written: Written, chance: random.Random) -> None:
    """The message of that chat and number, with a picture or without."""
    chat, number = place
    name = f"{'a' if number % 2 else 'q'}{chat}-{number}"
    before = f"{'q' if number % 2 else 'a'}{chat}-{number - 1}" if number else ""
    written.texts[name] = text_of(name, chance)
    parts: tuple[Part, ...] = (TextPart(written.texts[name]),)
    if number % 8 == 0:
        written.pictures[name] = f"picture {name}".encode()
        image = picture(folder / "original.png", written.pictures[name])
        store.attachments.save_copy(image).result()
        parts = (image, *parts)
    message = Message("assistant" if number % 2 else "user", parts)
    node = ChatNode(id=name, parent_id=before, message=message, created_s=number + 1.0)
    store.chats.save_node(f"c{chat}", node).result()


def marks(page: bytes) -> frozenset[str]:
    """The messages a piece of which is on a page: a leaf of a table, or the rest of a long row."""
    return frozenset(mark.decode() for mark in _MARK.findall(page)) if page[:1] in {b"\x0d", b"\0"} else frozenset()


def pages_of(path: Path) -> list[bytes]:
    content = path.read_bytes()
    return [content[at : at + PAGE_BYTES] for at in range(0, len(content), PAGE_BYTES)]


Damage = Callable[[bytearray, int, int, random.Random], set[int]]
"""Changes the content of a file with so many pages at a page, counted from 0; returns the pages it changed."""


def _fill(byte: Callable[[random.Random], int], n_bytes: int) -> Damage:
    def damage(content: bytearray, _n_pages: int, page: int, chance: random.Random) -> set[int]:
        at = page * PAGE_BYTES + chance.randrange(0, PAGE_BYTES - n_bytes + 1)
        content[at : at + n_bytes] = bytes(byte(chance) for _ in range(n_bytes))
        return {page}

    return damage


def _flip(count: int) -> Damage:
    def damage(content: bytearray, _n_pages: int, page: int, chance: random.Random) -> set[int]:
        for _ in range(count):
            content[page * PAGE_BYTES + chance.randrange(PAGE_BYTES)] ^= 1 << chance.randrange(8)
        return {page}

    return damage


def _swap(content: bytearray, n_pages: int, page: int, chance: random.Random) -> set[int]:
    other = chance.randrange(n_pages)
    first, second = (slice(each * PAGE_BYTES, (each + 1) * PAGE_BYTES) for each in (page, other))
    content[first], content[second] = content[second], content[first]
    return {page, other}


def _cut(content: bytearray, n_pages: int, page: int, _chance: random.Random) -> set[int]:
    del content[page * PAGE_BYTES :]
    return set(range(page, n_pages))


DAMAGES: Final[dict[str, Damage]] = {
    "random page": _fill(lambda chance: chance.randrange(256), PAGE_BYTES),
    "zeroed page": _fill(lambda _: 0, PAGE_BYTES),
    "0xff page": _fill(lambda _: 255, PAGE_BYTES),
    "zeroed sector": _fill(lambda _: 0, 512),
    "random 64 bytes": _fill(lambda chance: chance.randrange(256), 64),
    "one bit": _flip(1),
    "ten bits": _flip(10),
    "swapped pages": _swap,
    "cut off": _cut,
}


def damage_file(path: Path, kind: str, chance: random.Random) -> frozenset[str]:
    """Damage a random page; return the messages of which something stood on what was changed."""
    pages = pages_of(path)
    content = bytearray(path.read_bytes())
    changed = DAMAGES[kind](content, len(pages), chance.randrange(len(pages)), chance)
    path.write_bytes(content)
    return frozenset().union(*(marks(pages[page]) for page in changed))


__all__ = ["DAMAGES", "FILE_NAME", "Written", "damage_file", "write_chats"]
